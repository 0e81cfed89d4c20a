//! Services that tune the machine and may fight over it, and the active tuned profile.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use zenkai_host::{Query, probe::Reading};

use crate::{Observed, Reader, Reason, reader::join};

/// Services that tune, and the tuned profile.
#[derive(Debug, Clone, Serialize)]
pub struct Services {
    /// The services that are running or enabled. The list itself is unavailable where the machine's services
    /// cannot be seen, as in a container.
    pub present: Observed<Vec<Service>>,
    /// The active tuned profile.
    pub tuned: Tuned,
}

impl Services {
    /// The service of this name, when it runs or is enabled.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.present.get()?.iter().find(|service| service.name == name)
    }
}

/// A service that tunes.
#[derive(Debug, Clone, Serialize)]
pub struct Service {
    /// Name without `.service`.
    pub name: String,
    /// What it changes.
    pub touches: &'static [Touches],
    /// Whether it has processes now; not applicable to those that act once at boot.
    pub running: Observed<bool>,
    /// Whether it is started at boot.
    pub enabled: Observed<bool>,
}

impl Service {
    /// Whether it acts on this machine: it runs, or acts at every boot.
    pub fn is_active(&self) -> bool {
        self.running.value() == Some(true)
            || (self.enabled.value() == Some(true)
                && matches!(self.running.reason(), Some(Reason::NotApplicable(_))))
    }
}

/// What a service changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touches {
    /// Governor, energy preference, turbo.
    CpuClock,
    /// Which CPU serves which interrupt.
    Interrupts,
    /// Where processes and their memory live.
    Numa,
    /// Merging of equal memory pages.
    Ksm,
    /// Kernel and memory settings.
    Sysctl,
    /// Clock limits when it gets hot.
    Heat,
}

/// The active tuned profile.
#[derive(Debug, Clone, Serialize)]
pub struct Tuned {
    /// Its name, or several separated by blanks; absent without tuned.
    pub active_profile: Observed<String>,
    /// `manual` when somebody chose it, `auto` when tuned did.
    pub mode: Observed<String>,
    /// For each name where it is defined, and what it builds on.
    pub profiles: Vec<TunedProfile>,
    /// How far the machine is as they ask.
    pub in_force: Observed<InForce>,
}

/// How far the machine is as the active profile asks: what can be turned at once and stays, compared by the program, since
/// facts know nothing of profiles. What it makes the boot loader, scripts and single processes do is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// How many settings were compared.
    pub compared: usize,
    /// Those of them that are not as asked.
    pub differing: Vec<Differing>,
    /// Those that could not be looked at.
    pub unread: Vec<Unread>,
}

/// A setting that is not as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differing {
    /// The sysctl, the path, or the name of what is no file.
    pub setting: String,
    /// What it shows.
    pub shows: String,
    /// What the profile asks for.
    pub asked: String,
    /// File and line of the profile.
    pub at: String,
}

/// A setting that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The sysctl, the path, or the name of what is no file.
    pub setting: String,
    /// Why, in [`Reason::word`] and [`Reason::detail`].
    pub why: (String, String),
}

impl Unread {
    /// It, with why it could not be looked at.
    pub fn new(setting: String, why: &Reason) -> Self {
        Self { setting, why: (why.word().to_owned(), why.detail().unwrap_or_default().to_owned()) }
    }

    /// The reading that failed.
    pub fn reading(&self) -> Observed<()> {
        let (word, detail) = &self.why;
        Observed::unavailable(&self.setting, Reason::from_word(word, detail.clone()))
    }
}

/// One profile of tuned.
#[derive(Debug, Clone, Serialize)]
pub struct TunedProfile {
    /// Its name.
    pub name: String,
    /// The profiles it includes; the source is the file that defines it. Absent when there is no such file.
    pub includes: Observed<Vec<String>>,
}

/// A service we know: what it changes, whether it stays, the command it runs as (15 letters at most).
struct Known {
    name: &'static str,
    touches: &'static [Touches],
    stays: bool,
    command: &'static str,
}

const fn daemon(name: &'static str, touches: &'static [Touches], command: &'static str) -> Known {
    Known { name, touches, stays: true, command }
}

const fn once(name: &'static str, touches: &'static [Touches]) -> Known {
    Known { name, touches, stays: false, command: "" }
}

const KNOWN: [Known; 15] = [
    daemon("tuned", &[Touches::CpuClock, Touches::Sysctl], "tuned"),
    once("cpupower", &[Touches::CpuClock]),
    once("cpufrequtils", &[Touches::CpuClock]),
    once("ondemand", &[Touches::CpuClock]),
    once("tlp", &[Touches::CpuClock]),
    daemon("thermald", &[Touches::Heat], "thermald"),
    daemon("power-profiles-daemon", &[Touches::CpuClock], "power-profiles-"),
    daemon("auto-cpufreq", &[Touches::CpuClock], "auto-cpufreq"),
    daemon("cpuspeed", &[Touches::CpuClock], "cpuspeed"),
    daemon("irqbalance", &[Touches::Interrupts], "irqbalance"),
    daemon("numad", &[Touches::Numa], "numad"),
    daemon("ksmtuned", &[Touches::Ksm], "ksmtuned"),
    once("ksm", &[Touches::Ksm]),
    once("saptune", &[Touches::CpuClock, Touches::Sysctl]),
    once("sapconf", &[Touches::CpuClock, Touches::Sysctl]),
];

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>) -> Services {
    Services { present: present(reader), tuned: tuned(reader) }
}

fn present(reader: &Reader<'_>) -> Observed<Vec<Service>> {
    let running = running(reader);
    if let Some(reason) = running.reason() {
        return Observed::unavailable(running.source(), reason.clone());
    }
    let enabled = enabled(reader);
    let has = |set: &Observed<BTreeSet<String>>, name: &str| set.get().is_some_and(|set| set.contains(name));
    let services = KNOWN
        .iter()
        .filter(|known| has(&running, known.name) || has(&enabled, known.name))
        .map(|known| Service {
            name: known.name.to_owned(),
            touches: known.touches,
            running: if known.stays {
                running.clone().map(|set| set.contains(known.name))
            } else {
                let once = Reason::NotApplicable("it acts once and ends".to_owned());
                Observed::unavailable(running.source(), once)
            },
            enabled: enabled.clone().map(|set| set.contains(known.name)),
        })
        .collect();
    running.map(|_| services)
}

/// Where systemd keeps the control groups of services: version 2, hybrid, version 1.
const SLICES: [&str; 3] = [
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
];

/// The known services that have processes.
fn running(reader: &Reader<'_>) -> Observed<BTreeSet<String>> {
    for slice in SLICES {
        let units = reader.names(slice);
        if let Some(names) = units.get() {
            let with_processes = KNOWN
                .iter()
                .filter(|known| names.iter().any(|unit| unit.strip_suffix(".service") == Some(known.name)))
                .filter(|known| {
                    let processes = reader.text(&format!("{slice}/{}.service/cgroup.procs", known.name));
                    processes.text().is_some_and(|text| !text.is_empty())
                })
                .map(|known| known.name.to_owned())
                .collect();
            return units.map(|_| with_processes);
        }
    }
    by_process_name(reader)
}

/// More processes than this are not looked at one by one.
const PROCESS_LIMIT: usize = 20_000;

/// Without systemd's groups: one pass over the names of all processes. In a container only its own processes are
/// there (process 2 is not the kernel's), so nothing can be said of the machine's services.
fn by_process_name(reader: &Reader<'_>) -> Observed<BTreeSet<String>> {
    let kernel = reader.text("/proc/2/comm");
    match kernel.text() {
        Some("kthreadd") => {}
        Some(_) => {
            let hidden = "inside a container the machine's services cannot be seen";
            return Observed::unavailable(kernel.source(), Reason::NotApplicable(hidden.to_owned()));
        }
        None => return kernel.map(|_| BTreeSet::new()),
    }
    // Most processes of a large machine are the kernel's own threads, and one file names them all where the kernel
    // was built with it (`CONFIG_PROC_CHILDREN`).
    let threads = reader.text("/proc/2/task/2/children");
    let threads: BTreeSet<u32> =
        threads.text().unwrap_or("").split_whitespace().filter_map(|number| number.parse().ok()).collect();
    reader.numbered("/proc", "").map(|processes| {
        let programs = processes.into_iter().filter(|process| *process != 2 && !threads.contains(process));
        let names = programs.take(PROCESS_LIMIT).filter_map(|process| {
            let name = reader.text(&format!("/proc/{process}/comm"));
            let known = KNOWN.iter().find(|known| known.stays && name.text() == Some(known.command))?;
            Some(known.name.to_owned())
        });
        names.collect()
    })
}

/// The known services that a target wants, by the links in `/etc/systemd/system/*.wants`.
fn enabled(reader: &Reader<'_>) -> Observed<BTreeSet<String>> {
    const DIR: &str = "/etc/systemd/system";
    reader.names(DIR).map(|names| {
        let wants = names.iter().filter(|name| name.strip_suffix(".wants").is_some());
        let units = wants.flat_map(|name| reader.names(&join(DIR, name)).get().cloned().unwrap_or_default());
        let services = units.filter_map(|unit| Some(unit.strip_suffix(".service")?.to_owned()));
        services.filter(|name| KNOWN.iter().any(|known| known.name == name)).collect()
    })
}

/// No tuned command line needs more.
const PROFILE_LIMIT: usize = 16;

fn tuned(reader: &Reader<'_>) -> Tuned {
    let active_profile = reader.understood("/etc/tuned/active_profile", |text| {
        let none = || Err(Reason::NotApplicable("no profile is active".to_owned()));
        if text.is_empty() { none() } else { Ok(text.to_owned()) }
    });
    let names = active_profile.text().unwrap_or("").split_whitespace().take(PROFILE_LIMIT);
    let profiles = names
        .filter(|name| !name.contains('/'))
        .map(|name| TunedProfile { name: name.to_owned(), includes: profile(reader, name) })
        .collect();
    let in_force = match active_profile.reason() {
        None => in_force(reader),
        Some(reason) => Observed::unavailable(active_profile.source(), reason.clone()),
    };
    Tuned { mode: reader.text("/etc/tuned/profile_mode"), active_profile, profiles, in_force }
}

fn in_force(reader: &Reader<'_>) -> Observed<InForce> {
    let text = reader.query(&Query::Profile, |reply| reply.text().map(str::to_owned));
    match text.parse(|text| serde_json::from_str(&text).map_err(|error| error.to_string())) {
        // Not asked by a program that knows profiles.
        reading if matches!(reading.reason(), Some(Reason::Failed(_))) => {
            let how = "`zenkai profile verify` compares the machine with the profile";
            Observed::unavailable(reading.source(), Reason::NotAsked(how.to_owned()))
        }
        reading => reading.parse(|in_force| match in_force {
            Reading::Value(in_force) => Ok(in_force),
            Reading::Absent(why) => Err(why),
        }),
    }
}

/// Where tuned looks for a profile, in its order: the administrator's before the distribution's, each in the
/// place of version 2.23 and later, then in the older one.
const PROFILE_DIRS: [&str; 4] =
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

fn profile(reader: &Reader<'_>, name: &str) -> Observed<Vec<String>> {
    for dir in PROFILE_DIRS {
        let text = reader.text(&format!("{dir}/{name}/tuned.conf"));
        if !text.is_absent() {
            return text.map(|text| includes(&text));
        }
    }
    Observed::unavailable(format!("/usr/lib/tuned/{name}/tuned.conf"), Reason::Absent)
}

/// `include=` in the section `[main]`.
fn includes(text: &str) -> Vec<String> {
    let main = text.lines().map(str::trim).skip_while(|line| *line != "[main]").skip(1);
    let lines = main.take_while(|line| !line.starts_with('['));
    let values = lines.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "include").then(|| value.to_owned())
    });
    values
        .flat_map(|value| value.split([',', ' ']).map(|name| name.trim().to_owned()).collect::<Vec<_>>())
        .filter(|name| !name.is_empty())
        .take(PROFILE_LIMIT)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    fn active(files: &[(&str, &str)]) -> Vec<String> {
        let services = observe(&Reader::new(&FakeHost::new(files)));
        let services = services.present.get().cloned().unwrap_or_default();
        services.into_iter().filter(Service::is_active).map(|service| service.name).collect()
    }

    #[test]
    fn by_control_group_and_by_links() {
        let wants = "/etc/systemd/system/multi-user.target.wants";
        let files = [
            ("/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs", "812\n"),
            ("/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs", ""),
            (&format!("{wants}/cpupower.service") as &str, ""),
            (&format!("{wants}/thermald.service"), ""),
            (&format!("{wants}/sshd.service"), ""),
        ];
        assert_eq!(
            active(&files),
            ["tuned", "cpupower"],
            "an enabled daemon that does not run is not active"
        );
    }

    #[test]
    fn by_process_name_without_systemd() {
        let host =
            [("/proc/1/comm", "init\n"), ("/proc/2/comm", "kthreadd\n"), ("/proc/99/comm", "irqbalance\n")];
        assert_eq!(active(&host), ["irqbalance"]);
        let thread = [&host[..], &[("/proc/2/task/2/children", "99 101 \n")]].concat();
        assert!(active(&thread).is_empty(), "a thread of the kernel is no service, whatever its name");
        let container = FakeHost::new(&[("/proc/1/comm", "sh\n"), ("/proc/2/comm", "tuned\n")]);
        let services = observe(&Reader::new(&container));
        assert!(matches!(services.present.reason(), Some(Reason::NotApplicable(_))));
    }

    #[test]
    fn profiles_are_looked_up_in_order() {
        let host = FakeHost::new(&[
            ("/etc/tuned/active_profile", "mine gone\n"),
            ("/etc/tuned/profile_mode", "manual\n"),
            (
                "/etc/tuned/mine/tuned.conf",
                "[main]\nsummary=x\ninclude = balanced, virtual-guest\n[cpu]\ninclude=no\n",
            ),
            ("/usr/lib/tuned/mine/tuned.conf", "[main]\n"),
        ]);
        let tuned = observe(&Reader::new(&host)).tuned;
        assert_eq!(tuned.profiles[0].includes.get().unwrap(), &["balanced", "virtual-guest"]);
        assert!(tuned.profiles[1].includes.is_absent());
        assert_eq!(tuned.mode.text(), Some("manual"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\[main\\]\n)?([ -~]{0,30}\n){0,4}") {
            let _ = includes(&text);
        }
    }
}
