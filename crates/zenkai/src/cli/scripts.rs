//! Asking a profile's own scripts whether all is as they want it.

use zenkai_host::{Act, TunableHost};
use zenkai_tune::{Fault, Plan, State, Want, When};

/// Runs the verify act of every step that has one, and puts its answer into the plan: a step whose act ends with 0 is
/// as asked. `ignore_missing` is handed on to scripts, as tuned does.
///
/// Only for profiles that nobody but root could have written.
pub(super) fn ask(host: &dyn TunableHost, plan: &mut Plan, ignore_missing: bool) {
    for step in &mut plan.steps {
        let (State::Run | State::RunAgain, Want::Run { act, verify: Some(verify), .. }) =
            (&step.state, &mut step.wish.want)
        else {
            continue;
        };
        if let (Act::Script { arguments, .. }, "script", true) =
            (&mut *verify, step.wish.plugin.as_str(), ignore_missing)
        {
            arguments.push("ignore_missing".to_owned());
        }
        step.state = match host.run(verify) {
            Ok(finished) if finished.code == 0 => State::Same { value: answer(0) },
            Ok(finished) => State::Change {
                from: answer(finished.code),
                to: answer(0),
                alternatives: Vec::new(),
                when: When::Now,
            },
            Err(error) => State::Cannot { why: format!("{verify}: {error}"), fault: Fault::Reading },
        };
        // What is shown is what was run.
        *act = verify.clone();
    }
}

fn answer(code: i32) -> zenkai_host::Value {
    format!("exit code {code}").into()
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;
    use zenkai_tune::{Step, Wish, profile::Origin};

    use super::*;

    #[test]
    fn scripts_are_asked_once_and_only_those_that_can_tell() {
        let script = |word: &str| Act::Script {
            path: "/etc/tuned/profiles/a/script.sh".to_owned(),
            arguments: vec![word.to_owned()],
            environment: Vec::new(),
        };
        let step = |plugin: &str, verify: Option<Act>| Step {
            wish: Wish {
                origin: Origin::CommandLine,
                unit: plugin.to_owned(),
                plugin: plugin.to_owned(),
                option: "script".to_owned(),
                device: None,
                asked: String::new(),
                want: Want::Run { act: script("start"), undo: None, verify },
                risk: None,
            },
            state: State::Run,
        };
        let mut plan = Plan {
            steps: vec![
                step("script", Some(script("verify"))),
                step("modules", Some(script("x"))),
                step("script", None),
            ],
        };
        let host = FakeHost::new(&[]);
        ask(&host, &mut plan, true);
        let ran: Vec<String> = host.acts().iter().map(ToString::to_string).collect();
        let path = "/etc/tuned/profiles/a/script.sh";
        assert_eq!(ran, [format!("{path} verify ignore_missing"), format!("{path} x")]);
        assert!(matches!(plan.steps[0].state, State::Same { .. }));
        assert_eq!(plan.steps[2].state, State::Run);
        // Asked once, it is not run again.
        ask(&host, &mut plan, true);
        assert_eq!(host.acts().len(), 2);
    }
}
