//! Tasks: which there are, which group of the profile each belongs to, and which must leave isolated cores.

use std::collections::BTreeMap;

use zenkai_facts::CpuSet;
use zenkai_host::{Knob, TaskParameter};

use super::{cgroups, flag};
use crate::{
    Fault, Instance, OptionText, Scene,
    plugins::{
        Wishes,
        cpus::{parse_cpus, parse_mask},
        irq,
    },
    profile::regex::Pattern,
};

/// `PF_KTHREAD` and `PF_NO_SETAFFINITY` (include/linux/sched.h).
const KERNEL_THREAD: u32 = 0x0020_0000;
const BOUND: u32 = 0x0400_0000;

struct Task {
    tid: u32,
    start_ticks: u64,
    flags: u32,
    name: String,
    /// The process's command line, or the name in brackets for a kernel thread.
    command: String,
}

impl Task {
    fn knob(&self, parameter: TaskParameter) -> Knob {
        Knob::Task { tid: self.tid, start_ticks: self.start_ticks, parameter }
    }
}

/// What the profile wants of a task, and the option that says so.
#[derive(Default)]
struct Wanted<'o> {
    policy: Option<(&'o OptionText, String)>,
    cpus: Option<(&'o OptionText, CpuSet)>,
}

pub(super) fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let isolated = instance.option("isolated_cores").filter(|option| !option.value.trim().is_empty());
    let groups = groups(instance, wishes);
    if isolated.is_none() && groups.is_empty() {
        return;
    }
    let tasks = tasks(scene);
    let mut wanted: BTreeMap<usize, Wanted> = BTreeMap::new();
    if let Some(option) = isolated {
        match free_cpus(scene, &option.value) {
            Ok(free) => isolate(scene, instance, option, &free, &tasks, &mut wanted, wishes),
            Err((fault, why)) => {
                wishes.cannot(option, "", fault, why);
            }
        }
    }
    for group in &groups {
        for (at, task) in tasks.iter().enumerate() {
            if !group.pattern.is_in(&task.command) {
                continue;
            }
            let wanted = wanted.entry(at).or_default();
            if let Some(policy) = &group.policy {
                wanted.policy = Some((group.option, policy.clone()));
            }
            if let Some(cpus) = group.cpus.as_ref().filter(|_| task.flags & BOUND == 0) {
                wanted.cpus = Some((group.option, cpus.clone()));
            }
        }
    }
    for (at, wanted) in wanted {
        let Some(task) = tasks.get(at) else { continue };
        if let Some((option, policy)) = wanted.policy {
            wishes.set(option, &task.name, task.knob(TaskParameter::Policy), policy);
        }
        if let Some((option, cpus)) = wanted.cpus {
            let in_group = option.value.split(':').nth(3).is_some_and(|cpus| cpus.contains("cgroup."))
                || (option.name == "isolated_cores"
                    && instance.option("cgroup_for_isolated_cores").is_some());
            wishes.set(option, &task.name, task.knob(TaskParameter::Affinity), cpus.to_string()).risk =
                in_group.then(|| "the task gets the group's CPUs and is not moved into the group".to_owned());
        }
    }
}

fn free_cpus(scene: &Scene, isolated: &str) -> Result<CpuSet, (Fault, String)> {
    let isolated = parse_cpus(isolated).map_err(|why| (Fault::Profile, why))?;
    let free = scene.online_cpus().difference(&isolated);
    if free.is_empty() {
        return Err((Fault::Machine, "no CPU would be left for all other tasks".to_owned()));
    }
    Ok(free)
}

/// All but the isolated cores for every task that may be moved, and for interrupts.
fn isolate<'o>(
    scene: &Scene,
    instance: &'o Instance,
    option: &'o OptionText,
    free: &CpuSet,
    tasks: &[Task],
    wanted: &mut BTreeMap<usize, Wanted<'o>>,
    wishes: &mut Wishes,
) {
    let (Ok(white), Ok(black), Ok(groups)) = (
        expressions(instance, "ps_whitelist", wishes),
        expressions(instance, "ps_blacklist", wishes),
        expressions(instance, "cgroup_ps_blacklist", wishes),
    ) else {
        return;
    };
    let any = |list: &[Pattern], text: &str| list.iter().any(|pattern| pattern.is_in(text));
    let target = instance
        .option("cgroup_for_isolated_cores")
        .and_then(|group| cgroups::cpus_of(instance, group.value.trim()));
    let allowed = target.as_ref().unwrap_or(free);
    let kernel_threads = flag(instance, "kthread_process", true);
    for (at, task) in tasks.iter().enumerate() {
        if task.flags & BOUND != 0
            || (task.flags & KERNEL_THREAD != 0 && !kernel_threads)
            || (!white.is_empty() && !any(&white, &task.name))
            || any(&black, &task.name)
            || (!groups.is_empty()
                && scene.text(&format!("/proc/{}/cgroup", task.tid)).is_some_and(|text| any(&groups, &text)))
        {
            continue;
        }
        let Some(before) = affinity(scene, task) else { continue };
        wanted.entry(at).or_default().cpus = Some((option, irq::kept(Some(&before), allowed)));
    }
    if flag(instance, "irq_process", true) {
        for number in irq::numbers(scene) {
            irq::one(scene, option, number, free, true, wishes);
        }
    }
    match instance.option("default_irq_smp_affinity").map_or("calc", |option| option.value.trim()) {
        "ignore" => {}
        "calc" => {
            if flag(instance, "irq_process", true) && scene.exists(irq::DEFAULT) {
                irq::default_to(scene, option, free, true, wishes);
            }
        }
        list => match parse_cpus(list) {
            Ok(cpus) if !cpus.is_empty() => irq::default_to(scene, option, &cpus, false, wishes),
            _ => {
                wishes.cannot(option, "", Fault::Profile, format!("`{list}` is no CPU list, calc or ignore"));
            }
        },
    }
}

/// The CPUs that the task could use before the profile in force.
fn affinity(scene: &Scene, task: &Task) -> Option<CpuSet> {
    let status = scene.text(&format!("/proc/{}/status", task.tid))?;
    let now = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    scene.held.before(&task.knob(TaskParameter::Affinity), now.into()).text()?.parse().ok()
}

/// Regular expressions joined by `;` (`\;` is one itself). An error is told as a wish.
fn expressions(instance: &Instance, name: &str, wishes: &mut Wishes) -> Result<Vec<Pattern>, ()> {
    let Some(option) = instance.option(name) else { return Ok(Vec::new()) };
    let text = option.value.replace("\\;", "\0");
    text.split(';')
        .filter(|part| !part.trim().is_empty())
        .map(|part| {
            let part = part.replace('\0', ";");
            Pattern::new(&part).map_err(|why| {
                wishes.cannot(option, "", Fault::Profile, why);
            })
        })
        .collect()
}

/// A `group.*` option.
struct Group<'o> {
    option: &'o OptionText,
    order: i64,
    policy: Option<String>,
    cpus: Option<CpuSet>,
    pattern: Pattern,
}

/// The groups, lowest order first: where several match a task, the last one counts.
fn groups<'o>(instance: &'o Instance, wishes: &mut Wishes) -> Vec<Group<'o>> {
    let mut groups = Vec::new();
    for option in instance.options.iter().filter(|option| option.name.starts_with("group.")) {
        match group(instance, option) {
            Ok(group) => groups.push(group),
            Err(why) => {
                wishes.cannot(option, "", Fault::Profile, why);
            }
        }
    }
    groups.sort_by_key(|group| group.order);
    groups
}

fn group<'o>(instance: &Instance, option: &'o OptionText) -> Result<Group<'o>, String> {
    let parts: Vec<&str> = option.value.splitn(5, ':').collect();
    let [order, policy, priority, cpus, regex] = parts[..] else {
        return Err("a group is order:policy:priority:mask:expression".to_owned());
    };
    let order = order.trim().parse().map_err(|_| format!("`{order}` is no order"))?;
    let policy = match policy.trim() {
        "*" => None,
        letter @ ("f" | "r") => {
            let priority = priority.trim().parse::<u32>().ok().filter(|number| (1..=99).contains(number));
            let priority = priority.ok_or_else(|| format!("policy {letter} has a priority of 1 to 99"))?;
            Some(format!("{letter}:{priority}"))
        }
        letter @ ("b" | "o") => Some(format!("{letter}:0")),
        other => return Err(format!("`{other}` is none of the policies f, b, r, o, *")),
    };
    let cpus = match cpus.trim() {
        "*" | "" => None,
        cpus => Some(match cpus.strip_prefix("cgroup.") {
            Some(name) => cgroups::cpus_of(instance, name)
                .ok_or_else(|| format!("no option cgroup.{name} says which CPUs it has"))?,
            None => parse_mask(cpus)?,
        }),
    };
    let pattern = Pattern::new(regex)?;
    Ok(Group { option, order, policy, cpus, pattern })
}

/// All threads of all processes but our own.
fn tasks(scene: &Scene) -> Vec<Task> {
    let own = scene.host.resolve("/proc/self").ok();
    let mut tasks = Vec::new();
    for pid in scene.names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
        if own.as_deref() == Some(format!("/proc/{pid}").as_str()) {
            continue;
        }
        let command = command(scene, pid);
        for tid in scene.names(&format!("/proc/{pid}/task")).iter().filter_map(|name| name.parse().ok()) {
            tasks.extend(task(scene, tid, command.as_deref()));
        }
    }
    tasks
}

fn task(scene: &Scene, tid: u32, command: Option<&str>) -> Option<Task> {
    let stat = scene.text(&format!("/proc/{tid}/stat"))?;
    // The name may hold anything, brackets too; fields behind it begin with the third (proc_pid_stat(5)).
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let flags = fields.get(9 - 3)?.parse().ok()?;
    let start_ticks = fields.get(22 - 3)?.parse().ok()?;
    let command = match command {
        Some(command) if flags & KERNEL_THREAD == 0 => command.to_owned(),
        _ if flags & KERNEL_THREAD == 0 => name.clone(),
        _ => format!("[{name}]"),
    };
    Some(Task { tid, start_ticks, flags, name, command })
}

/// The arguments joined by blanks; `None` when there are none.
fn command(scene: &Scene, pid: u32) -> Option<String> {
    let bytes = scene.host.read(&format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::plugins::testing::Bench;

    /// A daemon with two threads on CPUs 0-3, a kernel thread that may move and one that may not.
    fn bench() -> Bench {
        let stat = |tid: u32, name: &str, flags: u32| {
            format!(
                "{tid} ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {tid}00 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            )
        };
        let mut host = FakeHost::new(&[
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/proc/5/cmdline", "/usr/bin/daemon\0-x\0"),
            ("/proc/irq/default_smp_affinity", "f\n"),
            ("/proc/irq/7/smp_affinity_list", "0-3\n"),
        ]);
        for (pid, tid, name, flags) in [
            (5, 5, "daemon", 0),
            (5, 6, "worker", 0),
            (8, 8, "kswapd0", super::KERNEL_THREAD),
            (9, 9, "migration/0", super::KERNEL_THREAD | super::BOUND),
        ] {
            host = host
                .file(&format!("/proc/{pid}/task/{tid}/comm"), name)
                .file(&format!("/proc/{tid}/stat"), &stat(tid, name, flags))
                .file(&format!("/proc/{tid}/status"), "Cpus_allowed_list:\t0-3\n");
        }
        Bench::on("scheduler", host)
    }

    #[test]
    fn isolated_cores_are_left_by_all_that_may() {
        assert_eq!(
            bench().plan(&[("isolated_cores", "2-3"), ("ps_blacklist", "^work;x"), ("runtime", "0")]).lines(),
            "/proc/irq/7/smp_affinity_list: 0-3 -> 0-1\n/proc/irq/default_smp_affinity: f -> 3\n\
             task 5 Affinity: 0-3 -> 0-1\ntask 8 Affinity: 0-3 -> 0-1\n"
        );
        let lines =
            bench().plan(&[("isolated_cores", "1"), ("kthread_process", "0"), ("irq_process", "0")]).lines();
        assert_eq!(lines, "task 5 Affinity: 0-3 -> 0,2-3\ntask 6 Affinity: 0-3 -> 0,2-3\nhold: Scheduler\n");
        assert!(
            bench().plan(&[("isolated_cores", "0-3")]).lines().starts_with("cannot: no CPU would be left")
        );
    }

    #[test]
    fn the_group_of_the_highest_order_counts() {
        assert_eq!(
            bench()
                .plan(&[
                    ("group.b", "9:f:3:*:^/usr/bin/daemon"),
                    ("group.a", "0:r:1:2:daemon"),
                    ("group.k", "0:f:2:*:^\\[(kswapd|migration)"),
                    ("runtime", "0"),
                ])
                .lines(),
            "task 5 Policy: o:0 -> f:3\ntask 5 Affinity: 0-3 -> 1\ntask 6 Policy: o:0 -> f:3\n\
             task 6 Affinity: 0-3 -> 1\ntask 8 Policy: o:0 -> f:2\ntask 9 Policy: o:0 -> f:2\n"
        );
    }

    #[test]
    fn groups_that_make_no_sense() {
        for (value, why) in [
            ("0:f", "a group is order"),
            ("0:f:100:*:x", "policy f has"),
            ("0:q:1:*:x", "`q` is none"),
            ("0:f:1:zz:x", "`zz` is no CPU mask"),
            ("0:f:1:*:(", "`(` is no regular expression"),
            ("0:f:1:cgroup.x:a", "no option cgroup.x"),
        ] {
            let lines = bench().plan(&[("group.x", value), ("runtime", "0")]).lines();
            assert!(lines.starts_with(&format!("cannot: {why}")), "{lines}");
        }
    }
}
