//! `--confirm KNOB`: one setting of an arm that made a difference is put to the proof by itself.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use zenkai_host::{LiveHost, value};
use zenkai_measure::{
    experiment::{Comparison, Confirms, Plan, Setting, Trial, analyze},
    statistics::verdict::Verdict,
};
use zenkai_tune::nearest;

use super::arm::{self, ArmSpec};
use crate::cli::CommandError;

/// Settings named in a hint.
const NAMED: usize = 8;

/// The experiment that proves, or does not prove, one setting.
pub(super) struct Confirmation {
    /// The plan of the experiment before; what is laid down there holds again.
    pub(super) base: Plan,
    /// Where the trials of this one go.
    pub(super) dir: PathBuf,
    pub(super) confirms: Confirms,
    /// How many of this experiment's settings were put to the proof so far, this one too.
    pub(super) nth: u32,
    /// How many settings are put to the proof in this run, this one too: they share the error rate.
    pub(super) among: usize,
    /// The arm without the setting, and the whole arm.
    pub(super) specs: [ArmSpec; 2],
}

/// What is to be done about `name` after the experiment that is kept in `dir`; the reason where there is nothing to
/// prove.
pub(super) fn confirmation(
    dir: &Path,
    base: &Plan,
    trials: &[Trial],
    name: &str,
) -> Result<Result<Confirmation, String>, CommandError> {
    let comparisons = analyze(base, trials).map_err(CommandError::usage)?;
    let setting = |found: &&Comparison| !meant(base, found.arm, name).is_empty();
    let with_it: Vec<&Comparison> = comparisons.iter().filter(setting).collect();
    if with_it.is_empty() {
        return Err(unknown(base, name));
    }
    let is_different = |found: &&&Comparison| found.judgement.verdict == Verdict::Different;
    let found = match with_it.iter().filter(is_different).copied().collect::<Vec<_>>().as_slice() {
        [found] => *found,
        [] => return Ok(Err(format!("no arm that sets {name} was found to be different"))),
        _ => {
            let error = anyhow!("{name} is set by several arms that are different");
            return Err(CommandError::usage(error)
                .hint("compare one of them with itself without the setting: 'ARM + without:KNOB' ARM"));
        }
    };
    let look = found.judgement.looks.last();
    let change = look.and_then(|look| look.change);
    let (a, b) = (&base.arms[0], &base.arms[found.arm]);
    let whole = arm::one(&b.parts)?;
    let settings = meant(base, found.arm, name);
    let values: Vec<(String, Option<String>)> =
        settings.iter().map(|setting| as_in_first(base, &whole, setting)).collect::<Result<_, _>>()?;
    let confirms = Confirms {
        dir: dir.display().to_string(),
        knob: name.to_owned(),
        what: values.iter().map(|(what, _)| what.clone()).collect(),
        a: a.name.clone(),
        b: b.name.clone(),
        percent: change.map(|change| change.percent),
        interval: change.map_or([None; 2], |change| [change.low, change.high]),
        among: 1,
    };
    let specs = [whole.without(&values)?, whole];
    let (nth, dir) = free(dir)?;
    Ok(Ok(Confirmation { dir, confirms, nth, among: 1, specs, base: base.clone() }))
}

/// The settings of the arm that are meant by `name`; the one that is called so, if there is one.
fn meant<'a>(plan: &'a Plan, arm: usize, name: &str) -> Vec<&'a Setting> {
    let settings = plan.arms.get(arm).map_or(&[][..], |arm| &arm.settings);
    let exact: Vec<&Setting> = settings.iter().filter(|setting| setting.what == name).collect();
    if exact.is_empty() {
        settings.iter().filter(|setting| arm::named(name, &setting.what)).collect()
    } else {
        exact
    }
}

/// The setting, and the value that it must be given to be as in the first arm; `None` when leaving it alone is enough.
fn as_in_first(
    plan: &Plan,
    whole: &ArmSpec,
    setting: &Setting,
) -> Result<(String, Option<String>), CommandError> {
    let first = &plan.arms[0];
    let in_first = first.settings.iter().find(|other| other.what == setting.what);
    let first_is_profile = arm::one(&first.parts)?.is_profile();
    let wanted = match in_first {
        Some(other) => &other.to,
        // A profile takes the place of the active one, which may have set it.
        None if whole.is_profile() && !first_is_profile => &setting.from,
        None => return Ok((setting.what.clone(), None)),
    };
    let what = &setting.what;
    match wanted {
        Some(wanted) if value(&LiveHost, &arm::knob(what)).is_ok() => {
            Ok((what.clone(), Some(wanted.clone())))
        }
        // Another kind of knob: only an arm that does not touch it leaves it as it was.
        _ if in_first.is_none() => Ok((what.clone(), None)),
        _ => Err(CommandError::usage(anyhow!(
            "{what} cannot be set by itself to what it is in `{}`",
            first.name
        ))),
    }
}

fn unknown(plan: &Plan, name: &str) -> CommandError {
    let all: Vec<&str> =
        plan.arms.iter().skip(1).flat_map(|arm| &arm.settings).map(|setting| setting.what.as_str()).collect();
    let error = CommandError::usage(anyhow!("no arm sets `{name}`"));
    if let Some(near) = nearest(name, all.iter().copied()) {
        return error.hint(format!("--confirm {near}"));
    }
    match all.len() {
        0 => error.hint("the arms change nothing on this machine, so no setting can have made a difference"),
        many => {
            let shown = all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let more = if many > NAMED { format!(", and {} more", many - NAMED) } else { String::new() };
            error.hint(format!("the settings: {shown}{more}"))
        }
    }
}

/// A directory below the experiment's that holds no experiment, and its number. It is made with the plan: until then an
/// arm may be refused, and nothing be there to report.
fn free(dir: &Path) -> Result<(u32, PathBuf), CommandError> {
    let numbered = |nth: u32| (nth, dir.join(format!("confirm-{nth}")));
    let is_free = |(_, path): &(u32, PathBuf)| path.join("experiment.json").symlink_metadata().is_err();
    let found = (1..1000).map(numbered).find(is_free);
    found.ok_or_else(|| CommandError::usage(anyhow!("{} has too many confirmations", dir.display())))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use zenkai_measure::experiment::{Arm, Metric, Status, Store};
    use zenkai_measure::statistics::verdict::Better;

    use super::*;

    fn setting(what: &str, from: &str, to: &str) -> Setting {
        Setting { what: what.into(), from: Some(from.into()), to: Some(to.into()) }
    }

    /// An experiment in a directory of its own, in which the second arm takes `factor` times as long.
    fn experiment(name: &str, factor: f64) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("zenkai-confirm-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let word = "set:vm.swappiness=1 + set:vm.dirty_ratio=5";
        let b = Arm {
            parts: vec![word.into()],
            settings: vec![setting("vm.swappiness", "60", "1"), setting("vm.dirty_ratio", "20", "5")],
            ..Arm::new(word, word)
        };
        let a = Arm { parts: vec!["now".into()], ..Arm::new("now", "now") };
        let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
        let plan = Plan::new(vec![a, b], vec!["true".into()], metric, Better::Lower, 1, 10);
        let mut store = Store::create(&dir, plan).unwrap();
        for block in 0..5 {
            for (place, arm) in store.plan.block(block, 0).into_iter().enumerate() {
                let noise = f64::from((block * 7 + u32::try_from(place).unwrap() * 3) % 5) / 1e3;
                let time = if arm == 1 { factor } else { 1.0 } + noise;
                store.append(Trial::new(block, 0, place, arm, Status::Ok, Some(time))).unwrap();
            }
        }
        dir
    }

    #[test]
    fn one_setting_is_left_as_it_was() {
        let dir = experiment("different", 0.8);
        let (plan, trials) = Store::read(&dir).unwrap();
        let found = confirmation(&dir, &plan, &trials, "swappiness").unwrap().unwrap();
        assert_eq!(found.dir, dir.join("confirm-1"));
        let mut texts = String::new();
        for spec in &found.specs {
            writeln!(texts, "{}", spec.text()).unwrap();
        }
        // One that never began, since an arm was refused, takes no number.
        let again = || confirmation(&dir, &plan, &trials, "swappiness").unwrap().unwrap();
        assert_eq!((again().nth, found.dir.symlink_metadata().is_ok()), (1, false));
        std::fs::create_dir(&found.dir).unwrap();
        Store::create(&found.dir, plan.clone()).unwrap();
        assert_eq!((again().nth, again().dir), (2, dir.join("confirm-2")));
        let whole = "set:vm.swappiness=1 + set:vm.dirty_ratio=5";
        assert_eq!(texts, format!("{whole} + without:vm.swappiness\n{whole}\n"));
        assert!(found.confirms.percent.is_some_and(|percent| (-21.0..-19.0).contains(&percent)));
        let error = confirmation(&dir, &plan, &trials, "vm.swapiness").err().unwrap();
        assert_eq!(error.hints, ["--confirm vm.swappiness"]);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn without_a_difference_there_is_nothing_to_confirm() {
        let dir = experiment("same", 1.0);
        let (plan, trials) = Store::read(&dir).unwrap();
        let why = confirmation(&dir, &plan, &trials, "vm.dirty_ratio").unwrap().err().unwrap();
        assert!(why.contains("no arm that sets vm.dirty_ratio was found to be different"), "{why}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
