//! `service`: starts, stops, enables and disables services, and gives them a drop-in file.

use zenkai_host::{Act, Knob, Value, value};

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Instance, OptionText, Scene, plan::same};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "service",
    summary: "Starts, stops, enables and disables services",
    options: &[OptionSpec {
        name: "service.*",
        help: "start or stop, enable or disable, and file:PATH for a drop-in, separated by commas",
        default: "",
    }],
    devices: None,
    plan,
};

/// What is asked of one service.
#[derive(Default)]
struct Asked {
    running: Option<bool>,
    enabled: Option<bool>,
    file: Option<String>,
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in &instance.options {
        let name = option.name.strip_prefix("service.").unwrap_or(&option.name);
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.@\\".contains(&byte);
        if name.is_empty() || name.starts_with(['.', '-']) || !name.bytes().all(safe) {
            wishes.cannot(option, "", Fault::Profile, format!("`{name}` is no name of a service"));
            continue;
        }
        match parse(&option.value) {
            Ok(asked) => one(scene, option, name, &asked, wishes),
            Err(why) => {
                wishes.cannot(option, "", Fault::Profile, why);
            }
        }
    }
}

fn parse(text: &str) -> Result<Asked, String> {
    let mut asked = Asked::default();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "start" => asked.running = Some(true),
            "stop" => asked.running = Some(false),
            "enable" => asked.enabled = Some(true),
            "disable" => asked.enabled = Some(false),
            _ => match word.strip_prefix("file:") {
                Some(path) if path.starts_with('/') && !path.split('/').any(|part| part == "..") => {
                    asked.file = Some(path.to_owned());
                }
                Some(path) => return Err(format!("file:{path} is no absolute path")),
                None => return Err(format!("`{word}` is none of start, stop, enable, disable, file:PATH")),
            },
        }
    }
    Ok(asked)
}

fn one(scene: &Scene, option: &OptionText, name: &str, asked: &Asked, wishes: &mut Wishes) {
    let dropped = asked.file.as_ref().is_some_and(|path| drop_in(scene, option, name, path, asked, wishes));
    if let Some(enabled) = asked.enabled {
        let to = if enabled { "enabled" } else { "disabled" };
        wishes.set(option, "", Knob::ServiceEnabled(name.to_owned()), to);
    }
    if let Some(running) = asked.running {
        let knob = Knob::Service(name.to_owned());
        // A running service takes the new file only when it is started again.
        if dropped && running && value(scene.host, &knob).is_ok_and(|now| now.text() == Some("running")) {
            wishes.run(option, systemctl(&["restart", "--", name]), None, None);
        } else {
            wishes.set(option, "", knob, if running { "running" } else { "stopped" });
        }
    }
}

/// Plans the drop-in; whether it changes anything.
fn drop_in(
    scene: &Scene,
    option: &OptionText,
    name: &str,
    source: &str,
    asked: &Asked,
    wishes: &mut Wishes,
) -> bool {
    let text = scene.host.read(source).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text else {
        wishes.cannot(option, "", Fault::Profile, format!("{source} cannot be read as text"));
        return false;
    };
    let file = source.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or("zenkai.conf");
    let unit = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let knob = Knob::File(format!("/etc/systemd/system/{unit}.d/{file}"));
    let to = Value::Text(text);
    let changes = value(scene.host, &knob).is_ok_and(|now| !same(&now, &to));
    if !changes {
        wishes.set(option, "", knob, to);
        return false;
    }
    // Undoing goes backwards, so what is undone after the file is back is planned before it.
    let nothing = || Act::Command { argv: vec!["true".to_owned()] };
    if asked.running == Some(true) {
        wishes.run(option, nothing(), Some(systemctl(&["try-restart", "--", name])), None);
    }
    wishes.run(option, nothing(), Some(systemctl(&["daemon-reload"])), None);
    wishes.set(option, "", knob, to);
    wishes.run(option, systemctl(&["daemon-reload"]), None, None);
    true
}

fn systemctl(arguments: &[&str]) -> Act {
    let argv = std::iter::once("systemctl").chain(arguments.iter().copied()).map(str::to_owned).collect();
    Act::Command { argv }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    fn bench() -> Bench {
        Bench::new(
            "service",
            &[
                ("/run/systemd/system/x", ""),
                ("/sys/fs/cgroup/system.slice/a.service/cgroup.events", "populated 1\n"),
                ("/usr/lib/systemd/system/a.service", ""),
                ("/usr/lib/systemd/system/b.service", ""),
                ("/etc/systemd/system/multi-user.target.wants/a.service", ""),
                ("/etc/tuned/p/x.conf", "[Service]\nNice=1\n"),
            ],
        )
    }

    #[test]
    fn state_and_boot() {
        assert_eq!(
            bench()
                .plan(&[("service.a", "stop,disable"), ("service.b", "start"), ("service.c", "stop")])
                .lines(),
            "service a at boot: enabled -> disabled\nservice a: running -> stopped\n\
             service b: stopped -> running\ncannot: service c does not exist here\n"
        );
    }

    #[test]
    fn a_drop_in_comes_with_reload_and_restart_both_ways() {
        assert_eq!(
            bench().plan(&[("service.a", "start,file:/etc/tuned/p/x.conf")]).lines(),
            "run: true (undo: systemctl try-restart -- a)\nrun: true (undo: systemctl daemon-reload)\n\
             file /etc/systemd/system/a.service.d/x.conf: (none) -> [Service]\\nNice=1\\n\n\
             run: systemctl daemon-reload\nrun: systemctl restart -- a\n"
        );
        assert!(bench().plan(&[("service.a", "file:x")]).lines().starts_with("cannot: file:x is no"));
        assert!(bench().plan(&[("service.a", "go")]).lines().starts_with("cannot: `go` is none"));
        assert!(bench().plan(&[("service.-rf", "stop")]).lines().starts_with("cannot: `-rf` is no name"));
    }
}
