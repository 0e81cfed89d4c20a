//! From wishes to a plan: what would change, what is right already, and what cannot act here.

use std::{collections::HashMap, io};

use serde::{Deserialize, Serialize};
use zenkai_host::{Host, Knob, NotRecorded, Value, errno_name, value};

use crate::{Fault, Want, When, Wish, couplings, profile::Origin, transaction::Held};

/// What is to be done, in order. Planning twice without a change in between gives the same plan, and a plan made
/// after it was applied has no changes: that is what verifying is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// One step for each wish, in the order of the profile.
    pub steps: Vec<Step>,
}

/// A wish and what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What is wanted, and where that is written.
    pub wish: Wish,
    /// What that means here and now.
    pub state: State,
}

/// What a wish means here and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The knob shows the wanted value already.
    Same {
        /// The value it shows.
        value: Value,
    },
    /// The knob is to be turned.
    Change {
        /// What it shows now.
        from: Value,
        /// What it is to show.
        to: Value,
        /// Tried in order if the kernel refuses `to`.
        alternatives: Vec<String>,
        /// When it acts.
        when: When,
    },
    /// Something is run.
    Run,
    /// The profile in force has run it since the boot. Applying runs it again, as tuned does, after undoing it.
    RunAgain,
    /// A living process must hold it; a plan that is applied once cannot.
    Hold,
    /// It stays as it is; why.
    Leave(String),
    /// A later wish is for the same knob.
    Overruled {
        /// Where that one is written.
        by: Origin,
    },
    /// It cannot act here.
    Cannot {
        /// Why.
        why: String,
        /// Whose fault that is.
        fault: Fault,
    },
}

impl Wish {
    /// The knob, when the wish is for one.
    pub fn knob(&self) -> Option<&Knob> {
        match &self.want {
            Want::Set { knob, .. } | Want::SetFirst { knob, .. } => Some(knob),
            _ => None,
        }
    }
}

impl Plan {
    /// Looks at each wished knob once. When two wishes are for one knob, or for two forms of one limit, the later one
    /// counts: each is written once.
    pub fn new(host: &dyn Host, wishes: Vec<Wish>) -> Self {
        Self::beside(&Held::default(), host, wishes)
    }

    /// As [`Plan::new`], on a machine where a profile is in force.
    pub fn beside(held: &Held, host: &dyn Host, wishes: Vec<Wish>) -> Self {
        let mut last: HashMap<Target, usize> = HashMap::new();
        for (at, wish) in wishes.iter().enumerate() {
            if let Some(knob) = wish.knob() {
                last.insert(Target::of(knob), at);
            }
        }
        let winner = |wish: &Wish| wish.knob().and_then(|knob| last.get(&Target::of(knob)).copied());
        let overruled: Vec<Option<Origin>> = wishes
            .iter()
            .enumerate()
            .map(|(at, wish)| winner(wish).filter(|by| *by != at).map(|by| wishes[by].origin.clone()))
            .collect();
        let steps = wishes.into_iter().zip(overruled).map(|(wish, overruled)| {
            let state = match overruled {
                Some(by) => State::Overruled { by },
                None => match &wish.want {
                    Want::Run { act, .. } if held.has_run(act) => State::RunAgain,
                    want => state(host, want),
                },
            };
            Step { wish, state }
        });
        Self { steps: steps.collect() }
    }

    /// The steps that turn a knob.
    pub fn changes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| matches!(step.state, State::Change { .. }))
    }

    /// Whether applying would do anything but run again what has run already.
    pub fn is_empty(&self) -> bool {
        self.steps.iter().all(|step| !matches!(step.state, State::Change { .. } | State::Run))
    }

    /// The steps in which the profile itself is wrong.
    pub fn mistakes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| matches!(step.state, State::Cannot { fault: Fault::Profile, .. }))
    }
}

/// Two names of one thing (a sysctl and its file) are the same target, and so are two forms of one limit.
#[derive(PartialEq, Eq, Hash)]
enum Target {
    Path(String),
    Knob(Knob),
}

impl Target {
    fn of(knob: &Knob) -> Self {
        let path = knob.path().map(|path| couplings::limit(&path).map_or(path, str::to_owned));
        path.map_or_else(|| Self::Knob(knob.clone()), Self::Path)
    }
}

fn state(host: &dyn Host, want: &Want) -> State {
    match want {
        Want::Set { knob, to, when } => match value(host, knob) {
            Ok(now) if same(&now, to) => State::Same { value: now },
            Ok(from) => State::Change { from, to: to.clone(), alternatives: Vec::new(), when: *when },
            Err(error) => unreadable(knob, &error),
        },
        Want::SetFirst { knob, choices } => match value(host, knob) {
            Ok(now) if choices.iter().any(|choice| same(&now, &choice.as_str().into())) => {
                State::Same { value: now }
            }
            Ok(from) => {
                let Some((first, rest)) = choices.split_first() else {
                    let why = "no value to choose from".to_owned();
                    return State::Cannot { why, fault: Fault::Profile };
                };
                State::Change {
                    from,
                    to: first.as_str().into(),
                    alternatives: rest.to_vec(),
                    when: When::Now,
                }
            }
            Err(error) => unreadable(knob, &error),
        },
        Want::Run { .. } => State::Run,
        Want::Hold(_) => State::Hold,
        Want::Leave(why) => State::Leave(why.clone()),
        Want::Cannot { why, fault } => State::Cannot { why: why.clone(), fault: *fault },
    }
}

fn unreadable(knob: &Knob, error: &io::Error) -> State {
    if NotRecorded::is(error) {
        return State::Cannot { why: format!("{knob}: not in this capture"), fault: Fault::Reading };
    }
    match error.kind() {
        io::ErrorKind::NotFound => {
            State::Cannot { why: format!("{knob} does not exist here"), fault: Fault::Machine }
        }
        io::ErrorKind::Unsupported => {
            State::Cannot { why: format!("{knob} is not supported here"), fault: Fault::Machine }
        }
        _ => State::Cannot {
            why: format!("{knob} cannot be read: {}", errno_name(error)),
            fault: Fault::Reading,
        },
    }
}

/// Whether two spellings mean one value to the kernel: white space between words does not count (sysctls print tabs),
/// numbers are compared as numbers, and masks without their leading zeros.
pub fn same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.text(), other.text()) else { return one == other };
    if one == other || one.split_whitespace().eq(other.split_whitespace()) {
        return true;
    }
    let number = |text: &str| text.trim().parse::<i128>().ok();
    if let (Some(one), Some(other)) = (number(one), number(other)) {
        return one == other;
    }
    (one.contains(',') || other.contains(',')) && mask(one).is_some_and(|digits| Some(digits) == mask(other))
}

/// The digits of a kernel CPU mask (`00000000,0000000f`), without leading zeros; `None` when it is none.
fn mask(text: &str) -> Option<String> {
    let text = text.trim();
    let groups: Vec<&str> = text.split(',').collect();
    let well_formed = |group: &&str| {
        !group.is_empty() && group.len() <= 8 && group.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if !groups.iter().all(well_formed) || groups.iter().skip(1).any(|group| group.len() != 8) {
        return None;
    }
    Some(groups.concat().trim_start_matches('0').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn spellings_of_one_value() {
        let same = |one: &str, other: &str| same(&one.into(), &other.into());
        assert!(same("4096\t87380 6291456", "4096 87380\t6291456"));
        assert!(same("010", "10"));
        assert!(same("00000000,0000000f", "f"));
        assert!(!same("00000000,0000000f", "1,0000000f"));
        assert!(!same("0-3,8", "0-3,9"));
        assert!(!same("10", "1"));
        assert!(!super::same(&Value::Absent, &"".into()));
    }

    #[test]
    fn the_later_wish_counts() {
        let host = FakeHost::new(&[("/proc/sys/vm/swappiness", "60\n")]);
        let wish = |line: u32, knob: Knob, to: &str| Wish {
            origin: Origin::Line { file: "p".into(), line },
            unit: String::new(),
            plugin: String::new(),
            option: String::new(),
            device: None,
            asked: to.to_owned(),
            want: Want::Set { knob, to: to.into(), when: When::Now },
            risk: None,
        };
        let plan = Plan::new(
            &host,
            vec![
                wish(1, Knob::Sysctl("vm.swappiness".into()), "10"),
                wish(2, Knob::Attribute("/proc/sys/vm/swappiness".into()), "20"),
            ],
        );
        assert_eq!(plan.steps[0].state, State::Overruled { by: Origin::Line { file: "p".into(), line: 2 } });
        assert!(matches!(&plan.steps[1].state, State::Change { to, .. } if *to == "20".into()));
        assert_eq!(plan.changes().count(), 1);
        // Two forms of one limit: the earlier would be zeroed by the later, or the other way round if that is right
        // already.
        let host =
            FakeHost::new(&[("/proc/sys/vm/dirty_bytes", "0\n"), ("/proc/sys/vm/dirty_ratio", "20\n")]);
        let bytes = wish(1, Knob::Sysctl("vm.dirty_bytes".into()), "4096");
        let ratio = wish(2, Knob::Attribute("/proc/sys/vm/dirty_ratio".into()), "20");
        let plan = Plan::new(&host, vec![bytes, ratio]);
        assert_eq!(plan.steps[0].state, State::Overruled { by: Origin::Line { file: "p".into(), line: 2 } });
        assert_eq!(plan.steps[1].state, State::Same { value: "20".into() });
    }
}
