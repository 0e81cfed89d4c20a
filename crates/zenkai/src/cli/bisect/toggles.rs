//! What can be toggled: the differences between two sides, those that only make sense together as one.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use zenkai_diagnose::difference::bears_on_security;
use zenkai_host::{Host, Knob, LiveHost};
use zenkai_measure::bisect::Set;
use zenkai_tune::{Plan, State, Step, Want, When, Wish, profile::Library, same, transaction::Store};

use crate::cli::{CommandError, change, diff, profile::Tuned};

/// Settings that disturb each other, by the last part of their paths: one toggle. The kernel zeroes one form of a limit
/// when the other is set, refuses a least clock above the highest, and another scheduler brings its own depth.
const TOGETHER: &[(&str, &[&str])] = &[
    (
        "limits of unwritten memory",
        &["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"],
    ),
    ("limits of committed memory", &["overcommit_memory", "overcommit_ratio", "overcommit_kbytes"]),
    ("governor and preference", &["scaling_governor", "energy_performance_preference"]),
    ("clock limits", &["scaling_min_freq", "scaling_max_freq", "min_perf_pct", "max_perf_pct", "no_turbo"]),
    ("scheduler and its depth", &["scheduler", "nr_requests"]),
];

/// Something that is set as on side A, or as on side B.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Toggle {
    pub(super) name: String,
    /// What B shows.
    pub(super) from: String,
    /// What A shows.
    pub(super) to: String,
    /// What makes it as in A.
    on: Vec<Wish>,
    /// What makes it as in B.
    off: Vec<Wish>,
}

/// The two sides, and what tells them apart.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sides {
    /// What the user calls the side to be like.
    pub(super) a: String,
    /// And the one in question.
    pub(super) b: String,
    /// Whether they are profiles, which stand in for the active one.
    pub(super) are_profiles: bool,
    pub(super) toggles: Vec<Toggle>,
    /// What both sides want, and the machine does not show.
    common: Vec<Wish>,
    /// What differs and is not toggled, with the reason.
    pub(super) left: Vec<(String, String)>,
}

impl Sides {
    /// This machine, and what of `from` can be set on it while it runs.
    pub(super) fn machines(
        from: &str,
        allow_insecure: bool,
        err: &mut dyn Write,
    ) -> Result<Self, CommandError> {
        let (profile, notes) = diff::settings_here(from, allow_insecure)?;
        for note in notes {
            writeln!(err, "zenkai: {}", zenkai_report::printable(&note))?;
        }
        let wishes = if profile.carried == 0 { Vec::new() } else { wishes_of(&profile.text)? };
        let mut sides = Self::new(&LiveHost, [from, "now"], wishes, Vec::new(), allow_insecure);
        sides.left.extend(profile.left);
        Ok(sides)
    }

    /// Two profiles.
    pub(super) fn profiles(good: &str, bad: &str, allow_insecure: bool) -> Result<Self, CommandError> {
        let wishes = |word: &str| -> Result<Vec<Wish>, CommandError> {
            let names = word.strip_prefix("profile:").filter(|names| !names.is_empty()).ok_or_else(|| {
                CommandError::usage(anyhow!("`{word}` is no profile")).hint(format!("profile:{word}"))
            })?;
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            Ok(change::trusted_wishes(&names, change::held()?)?.1)
        };
        let mut sides = Self::new(&LiveHost, [good, bad], wishes(good)?, wishes(bad)?, allow_insecure);
        sides.are_profiles = true;
        Ok(sides)
    }

    fn new(
        host: &dyn Host,
        [a, b]: [&str; 2],
        of_a: Vec<Wish>,
        of_b: Vec<Wish>,
        allow_insecure: bool,
    ) -> Self {
        let (mut common, mut left) = (Vec::new(), Vec::new());
        let mut groups: BTreeMap<String, Vec<Pair>> = BTreeMap::new();
        for pair in pairs(host, of_a, of_b, &mut left) {
            if let Some(wish) = pair.common() {
                common.push(wish.clone());
            } else if !allow_insecure && pair.bears_on_security() {
                left.push((pair.what(), "it bears on security; --allow-insecure toggles it too".to_owned()));
            } else if pair.differs() {
                groups.entry(pair.group()).or_default().push(pair);
            }
        }
        let toggles = groups.into_values().map(toggle).collect();
        Self { a: a.to_owned(), b: b.to_owned(), are_profiles: false, toggles, common, left }
    }

    /// The wishes of the arm in which these toggles are as in A and all others as in B.
    pub(super) fn wishes(&self, on: &[usize]) -> Vec<Wish> {
        let each = self.toggles.iter().enumerate();
        let toggled = each.flat_map(|(nth, toggle)| if on.contains(&nth) { &toggle.on } else { &toggle.off });
        self.common.iter().chain(toggled).cloned().collect()
    }

    /// What is not as it was when this was laid down: each with what it was, and what it is.
    pub(super) fn changed(&self, host: &dyn Host) -> Vec<String> {
        // Several values may stand in another order.
        let parts = |text: &str| text.split(", ").map(str::to_owned).collect::<BTreeSet<_>>();
        let told = |then: &Toggle| {
            let mut left = Vec::new();
            let found = pairs(host, then.on.clone(), then.off.clone(), &mut left);
            if let Some((what, why)) = left.first() {
                return Some(format!("{what}: {why}"));
            }
            let now = toggle(found);
            let sides = [("", &then.from, &now.from), (" as in A", &then.to, &now.to)];
            let moved = sides.iter().find(|(_, then, now)| parts(then) != parts(now));
            moved.map(|(side, before, after)| format!("{}{side}: {before} then, {after} now", then.name))
        };
        self.toggles.iter().filter_map(told).collect()
    }

    /// Leaves out the toggles for which there is a reason.
    pub(super) fn leave_out(&mut self, refused: Vec<Option<String>>) {
        let mut refused = refused.into_iter();
        let left = &mut self.left;
        self.toggles.retain(|toggle| match refused.next().flatten() {
            Some(why) => {
                left.push((toggle.name.clone(), why));
                false
            }
            None => true,
        });
    }

    /// Why there is nothing to search.
    pub(super) fn nothing(&self) -> CommandError {
        let error = anyhow!("nothing that differs between {} and {} can be toggled here", self.a, self.b);
        let mut error = CommandError::usage(error);
        for (what, why) in self.left.iter().take(5) {
            error = error.hint(format!("left out: {what}: {why}"));
        }
        if self.left.iter().any(|(_, why)| why.contains("security")) {
            error = error.hint("--allow-insecure");
        }
        if self.are_profiles { error } else { error.hint(format!("zenkai diff {} now --all", self.a)) }
    }

    /// The name of an arm.
    pub(super) fn arm(&self, set: &Set) -> String {
        let mut numbers = set.iter();
        match (numbers.next(), set.len()) {
            (None, _) => format!("as in {}", self.b),
            (Some(only), 1) => self.name(*only).to_owned(),
            (_, many) if many == self.toggles.len() => format!("all {many} as in {}", self.a),
            (_, many) => format!(
                "{many} as in {} (numbers {})",
                self.a,
                ranges(&set.iter().map(|number| number + 1).collect())
            ),
        }
    }

    pub(super) fn name(&self, toggle: usize) -> &str {
        self.toggles.get(toggle).map_or("", |toggle| toggle.name.as_str())
    }
}

/// The wishes of a profile that is not installed.
fn wishes_of(text: &str) -> Result<Vec<Wish>, CommandError> {
    // Only root can write there, so what is read back is what was written.
    let folder = format!("{}/bisect", Store::DEFAULT);
    let path = format!("{folder}/differences/tuned.conf");
    let written = std::fs::create_dir_all(format!("{folder}/differences"))
        .and_then(|()| std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(&path))
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| anyhow::Error::new(error).context(path))?;
    let mut tuned = Tuned::open_live()?;
    tuned.library = Library::new(&LiveHost, vec![folder]);
    let names = ["differences".to_owned()];
    let profile = tuned.library.load(&names, None, &tuned.functions()).map_err(CommandError::usage)?;
    change::trusted(&profile)?;
    Ok(tuned.wishes(&profile))
}

/// One thing that a side wants, or both.
struct Pair {
    a: Option<Step>,
    b: Option<Step>,
}

/// What each side wants, by what it is for. What only reads, waits for a reboot or needs a living process is left out.
fn pairs(host: &dyn Host, of_a: Vec<Wish>, of_b: Vec<Wish>, left: &mut Vec<(String, String)>) -> Vec<Pair> {
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    let mut order = Vec::new();
    for (wishes, is_a) in [(of_a, true), (of_b, false)] {
        for step in Plan::new(host, wishes).steps {
            let reason = match (&step.state, &step.wish.want) {
                (State::Cannot { why, .. }, _) => Some(why.as_str()),
                (State::Hold, _) => Some("only a living process can hold it"),
                (_, Want::Set { when: When::AfterReboot, .. }) => Some("it acts after a reboot"),
                (State::Leave(_) | State::Overruled { .. }, _) => continue,
                _ => None,
            };
            if let Some(why) = reason {
                left.push((what(&step.wish), why.to_owned()));
                continue;
            }
            let key = key(&step.wish);
            let pair = pairs.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                Pair { a: None, b: None }
            });
            *(if is_a { &mut pair.a } else { &mut pair.b }) = Some(step);
        }
    }
    order.iter().filter_map(|key| pairs.remove(key)).collect()
}

fn key(wish: &Wish) -> String {
    match wish.knob() {
        Some(knob) => knob.path().unwrap_or_else(|| knob.to_string()),
        None => format!("{:?}", wish.want),
    }
}

fn what(wish: &Wish) -> String {
    wish.knob().map_or_else(|| format!("{} {}", wish.option, wish.asked).trim().to_owned(), Knob::to_string)
}

impl Pair {
    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.a.iter().chain(&self.b)
    }

    /// The wish that both sides have alike.
    fn common(&self) -> Option<&Wish> {
        let (Some(a), Some(b)) = (&self.a, &self.b) else { return None };
        let alike = match (target(a), target(b)) {
            (Some(a), Some(b)) => same(&a.as_str().into(), &b.as_str().into()),
            _ => a.wish.want == b.wish.want,
        };
        alike.then_some(&a.wish)
    }

    /// Whether it is not the same on both sides already: a side that wants nothing has what the machine shows.
    fn differs(&self) -> bool {
        (self.a.is_some() && self.b.is_some())
            || self.steps().any(|step| !matches!(step.state, State::Same { .. }))
    }

    fn bears_on_security(&self) -> bool {
        self.steps().any(|step| {
            let path = step.wish.knob().and_then(Knob::path).unwrap_or_default();
            let sysctl = path.strip_prefix("/proc/sys/").map(|tail| tail.replace('/', "."));
            sysctl.is_some_and(|name| bears_on_security(&name)) || path.starts_with("/sys/kernel/debug/x86/")
        })
    }

    fn what(&self) -> String {
        self.steps().next().map(|step| what(&step.wish)).unwrap_or_default()
    }

    /// What is toggled together has the same: one of [`TOGETHER`], or one option for several devices.
    fn group(&self) -> String {
        let Some(step) = self.steps().next() else { return String::new() };
        let path = key(&step.wish);
        let (folder, last) = path.rsplit_once('/').unwrap_or(("", &path));
        if let Some((name, _)) = TOGETHER.iter().find(|(_, members)| members.contains(&last)) {
            // Of disks each is its own; what belongs to CPUs is for all of them.
            return if folder.starts_with("/sys/block") {
                format!("{folder} {name}")
            } else {
                (*name).to_owned()
            };
        }
        let to = |step: &Option<Step>| step.as_ref().and_then(target).unwrap_or_default();
        let wish = &step.wish;
        if wish.device.is_some() && !wish.option.is_empty() {
            return format!("{} {} {} {}", wish.plugin, wish.option, to(&self.a), to(&self.b));
        }
        if path.starts_with("/sys/devices/system/cpu/") {
            let numberless: String = path.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            return format!("{numberless} {} {}", to(&self.a), to(&self.b));
        }
        path
    }
}

/// The value that a step is for.
fn target(step: &Step) -> Option<String> {
    match &step.state {
        State::Same { value } => Some(value.to_string()),
        State::Change { to, .. } => Some(to.to_string()),
        _ => None,
    }
}

/// The value that the machine shows.
fn shown(step: &Step) -> Option<String> {
    match &step.state {
        State::Same { value } => Some(value.to_string()),
        State::Change { from, .. } => Some(from.to_string()),
        _ => None,
    }
}

fn toggle(pairs: Vec<Pair>) -> Toggle {
    let value = |own: fn(&Pair) -> &Option<Step>, other: fn(&Pair) -> &Option<Step>| {
        let mut values: Vec<String> = pairs
            .iter()
            .map(|pair| match (own(pair), other(pair)) {
                (Some(step), _) => target(step).unwrap_or_else(|| "run".to_owned()),
                (None, Some(step)) => shown(step).unwrap_or_else(|| "not run".to_owned()),
                (None, None) => String::new(),
            })
            .collect();
        values.dedup();
        values.join(", ")
    };
    let (from, to) = (value(|pair| &pair.b, |pair| &pair.a), value(|pair| &pair.a, |pair| &pair.b));
    let name = name(&pairs);
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for pair in pairs {
        on.extend(pair.a.map(|step| step.wish));
        off.extend(pair.b.map(|step| step.wish));
    }
    Toggle { name, from, to, on, off }
}

fn name(pairs: &[Pair]) -> String {
    let wishes: Vec<&Wish> =
        pairs.iter().filter_map(|pair| pair.steps().next()).map(|step| &step.wish).collect();
    let last = |wish: &Wish| key(wish).rsplit('/').next().unwrap_or_default().to_owned();
    let Some(first) = wishes.first() else { return String::new() };
    let alike = wishes.iter().all(|wish| last(wish) == last(first));
    if !alike
        && let Some((name, _)) = TOGETHER.iter().find(|(_, members)| members.contains(&last(first).as_str()))
    {
        return (*name).to_owned();
    }
    let path = key(first);
    let option = if path.starts_with("/sys/") { last(first) } else { what(first) };
    let devices: Vec<String> = wishes.iter().filter_map(|wish| device(wish)).collect();
    match devices.as_slice() {
        [] if wishes.len() == 1 => what(first),
        [] => format!("{option} ({} places)", wishes.len()),
        devices => format!("{option} of {}", listed(devices)),
    }
}

/// Whose setting it is: `vda`, `cpu3`.
fn device(wish: &Wish) -> Option<String> {
    if let Some(device) = &wish.device {
        return Some(device.clone());
    }
    let path = wish.knob()?.path()?;
    let tail =
        ["/sys/block/", "/sys/class/net/", "/sys/devices/system/cpu/cpufreq/", "/sys/devices/system/cpu/"]
            .iter()
            .find_map(|folder| path.strip_prefix(folder))?;
    tail.split_once('/').map(|(device, _)| device.to_owned())
}

/// `cpu0-31`, or up to four names.
fn listed(devices: &[String]) -> String {
    let numbered = |device: &String| {
        let stem = device.trim_end_matches(|letter: char| letter.is_ascii_digit());
        Some((stem.to_owned(), device[stem.len()..].parse::<usize>().ok()?))
    };
    let parsed: Option<Vec<(String, usize)>> = devices.iter().map(numbered).collect();
    if let Some(parsed) = parsed
        && let Some((stem, _)) = parsed.first()
        && parsed.iter().all(|(other, _)| other == stem)
    {
        let numbers: Set = parsed.iter().map(|(_, number)| *number).collect();
        return format!("{stem}{}", ranges(&numbers));
    }
    match devices {
        [first, second, third, _, more @ ..] if !more.is_empty() => {
            format!("{first}, {second}, {third} and {} more", more.len() + 1)
        }
        few => few.join(", "),
    }
}

/// `1-4,7`.
fn ranges(numbers: &Set) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let text = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
