//! `script`: a profile's own programs, run with `start`, and with `stop` to undo.

use zenkai_host::Act;

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Instance, OptionText, Scene};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "script",
    summary: "Runs scripts of the profile",
    options: &[OptionSpec {
        name: "script",
        help: "Absolute path of a script in a profile directory, several one a line: run with `start` to apply, \
               `verify` to verify, `stop full_rollback` to undo",
        default: "",
    }],
    devices: None,
    plan,
};

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in instance.options.iter().filter(|option| option.name == "script") {
        for path in option.value.lines().map(str::trim).filter(|line| !line.is_empty()) {
            one(scene, instance, option, path, wishes);
        }
    }
}

fn one(scene: &Scene, instance: &Instance, option: &OptionText, path: &str, wishes: &mut Wishes) {
    let below =
        |dir: &String| path.strip_prefix(dir.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    if path.split('/').any(|part| part == "..") || !instance.profile_dirs.iter().any(below) {
        let dirs = instance.profile_dirs.join(", ");
        wishes.cannot(option, "", Fault::Profile, format!("{path} is not below {dirs}"));
        return;
    }
    if !scene.exists(path) {
        wishes.cannot(option, "", Fault::Profile, format!("{path} does not exist"));
        return;
    }
    let environment: Vec<(String, String)> =
        instance.variables.iter().map(|(name, value)| (format!("TUNED_{name}"), value.clone())).collect();
    let act = |arguments: &[&str]| Act::Script {
        path: path.to_owned(),
        arguments: arguments.iter().map(ToString::to_string).collect(),
        environment: environment.clone(),
    };
    // An undo is what tuned calls a full rollback: nothing of the profile stays, also not for the next boot.
    let undo = act(&["stop", "full_rollback"]);
    wishes.run(option, act(&["start"]), Some(undo), Some(act(&["verify"]))).risk =
        Some("a script can change anything; only its own `stop` undoes that".to_owned());
}

#[cfg(test)]
mod tests {
    use zenkai_host::Act;

    use crate::{Want, plugins::testing::Bench};

    #[test]
    fn a_script_of_the_profile_is_run_with_its_variables() {
        let bench = Bench::new("script", &[("/etc/tuned/profiles/a/script.sh", "#!/bin/sh\n")]);
        let plan = bench.plan(&[("script", "/etc/tuned/profiles/a/script.sh")]);
        assert_eq!(
            plan.lines(),
            "run: /etc/tuned/profiles/a/script.sh start (undo: /etc/tuned/profiles/a/script.sh stop full_rollback)\n"
        );
        let Want::Run { verify: Some(Act::Script { arguments, environment, .. }), .. } =
            &plan.steps[0].wish.want
        else {
            panic!("{plan:?}");
        };
        assert_eq!(arguments, &["verify"]);
        assert_eq!(environment, &[("TUNED_x".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn scripts_from_elsewhere_are_refused() {
        let bench = Bench::new("script", &[("/tmp/x.sh", ""), ("/etc/tuned/profiles-x/s", "")]);
        for path in
            ["/tmp/x.sh", "/etc/tuned/profiles/../../../tmp/x.sh", "/etc/tuned/profiles-x/s", "script.sh"]
        {
            let plan = bench.plan(&[("script", path)]);
            assert_eq!(plan.lines(), format!("cannot: {path} is not below /etc/tuned/profiles\n"));
            assert_eq!(plan.mistakes().count(), 1);
        }
        let plan = bench.plan(&[("script", "/etc/tuned/profiles/gone.sh")]);
        assert_eq!(plan.lines(), "cannot: /etc/tuned/profiles/gone.sh does not exist\n");
    }
}
