//! What the user compares: words of the command line, and what they ask of the machine.

use anyhow::anyhow;
use zenkai_host::{Act, Host, Knob, LiveHost, value};
use zenkai_tune::{
    Want, When, Wish, nearest,
    profile::{Library, MainConf},
};

use crate::cli::{CommandError, change};

/// Parts of an arm are joined by this: `profile:balanced + set:vm.swappiness=10`.
const JOIN: &str = " + ";

/// An arm as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ArmSpec {
    /// Its parts in order; empty for the machine as it is.
    parts: Vec<Part>,
    /// The words of the command line that make it.
    pub(super) words: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// The machine under these profiles instead of its own.
    Profile(Vec<String>),
    /// One knob.
    Set(Knob, String),
    /// What was asked for before, except this knob.
    Without(String),
    /// The user's own commands.
    Hook { enter: String, leave: Option<String> },
    /// A workload of its own.
    Command(String),
    /// The workload gets this share of the CPU time it could have, in per cent.
    CpuMax(u8),
    /// What another command worked out.
    Wishes { wishes: Vec<Wish>, instead_of_profile: bool },
}

/// The arms in `words`. `leave=` belongs to the `enter=` before it; every other word is an arm.
pub(super) fn arms(words: &[String]) -> Result<Vec<ArmSpec>, CommandError> {
    let mut arms: Vec<ArmSpec> = Vec::new();
    for word in words {
        if let Some(text) = word.strip_prefix("leave=") {
            let hook = arms.last_mut().and_then(|arm| Some((arm.parts.last_mut()?, &mut arm.words)));
            match hook {
                Some((Part::Hook { leave, .. }, arm_words)) if leave.is_none() => {
                    *leave = Some(text.to_owned());
                    arm_words.push(word.clone());
                }
                _ => return Err(wrong(format!("`{word}` has no `enter=` before it"))),
            }
            continue;
        }
        // What a shell gets is taken as it is: it may contain anything.
        let whole = word.starts_with("enter=") || word.starts_with("cmd:");
        let pieces = if whole { vec![word.as_str()] } else { word.split(JOIN).collect() };
        let parts: Vec<Option<Part>> = pieces.into_iter().map(part).collect::<Result<_, _>>()?;
        arms.push(ArmSpec { parts: parts.into_iter().flatten().collect(), words: vec![word.clone()] });
    }
    Ok(arms)
}

/// The one arm that these words make.
pub(super) fn one(words: &[String]) -> Result<ArmSpec, CommandError> {
    match arms(words)?.as_slice() {
        [arm] => Ok(arm.clone()),
        _ => Err(wrong(format!("`{}` is not one arm", words.join(" ")))),
    }
}

fn part(text: &str) -> Result<Option<Part>, CommandError> {
    let (kind, rest) = text.split_once([':', '=']).unwrap_or((text, ""));
    match (kind, rest) {
        ("now", "") => Ok(None),
        ("profile", names) if !names.trim().is_empty() => {
            let names = names.split([',', ' ']).filter(|name| !name.is_empty());
            Ok(Some(Part::Profile(names.map(str::to_owned).collect())))
        }
        ("set", rest) => set(rest).map(Some),
        ("without", knob) if !knob.trim().is_empty() => Ok(Some(Part::Without(knob.trim().to_owned()))),
        ("enter", command) if !command.trim().is_empty() => {
            Ok(Some(Part::Hook { enter: command.to_owned(), leave: None }))
        }
        ("cmd", command) if !command.trim().is_empty() => Ok(Some(Part::Command(command.to_owned()))),
        ("cpu-max", share) => match share.strip_suffix('%').unwrap_or(share).parse() {
            Ok(share @ 1..=99) => Ok(Some(Part::CpuMax(share))),
            _ => Err(wrong(format!("`{text}`: the share of CPU time is 1% to 99%"))),
        },
        _ => Err(unknown(text)),
    }
}

/// `KNOB=VALUE`, where the knob is a sysctl's name or a file of the kernel's.
fn set(text: &str) -> Result<Part, CommandError> {
    let Some((knob, value)) =
        text.split_once('=').filter(|(knob, value)| !knob.is_empty() && !value.is_empty())
    else {
        return Err(wrong(format!("`set:{text}` is not `set:KNOB=VALUE`")));
    };
    if !knob.starts_with('/') {
        return Ok(Part::Set(Knob::Sysctl(knob.to_owned()), value.to_owned()));
    }
    let is_kernels = ["/sys/", "/proc/sys/"].iter().any(|root| knob.starts_with(root));
    if !is_kernels || knob.split('/').any(|part| part == "..") {
        return Err(wrong(format!("`{knob}` is no file below /sys or /proc/sys"))
            .hint("enter='COMMAND' leave='COMMAND' for anything else"));
    }
    Ok(Part::Set(Knob::Attribute(knob.to_owned()), value.to_owned()))
}

fn wrong(text: String) -> CommandError {
    CommandError::usage(anyhow!(text))
}

fn unknown(text: &str) -> CommandError {
    let error = wrong(format!("`{text}` is nothing that can be compared"));
    let known = MainConf::read(&LiveHost)
        .map(|conf| Library::new(&LiveHost, conf.profile_directories).list())
        .unwrap_or_default();
    let is_profile = nearest(text, known.iter().map(|(name, _)| name.as_str()));
    match is_profile {
        Some(name) => error.hint(format!("`profile:{name}`")),
        None if text.contains('=') => error.hint(format!("`set:{text}`")),
        None => error.hint(
            "now, profile:NAME, set:KNOB=VALUE, without:KNOB, cmd:'COMMAND', enter='COMMAND' leave='COMMAND'",
        ),
    }
}

/// What people call a knob: files below `/proc/sys` by their sysctl's name (sysctl.d(5)), others as they are.
pub(super) fn called(what: &str) -> String {
    let swapped = |letter: char| match letter {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    let below = what.strip_prefix("/proc/sys/").filter(|name| !name.is_empty());
    below.map_or_else(|| what.to_owned(), |name| name.chars().map(swapped).collect())
}

/// The knob of that name: a file, or else a sysctl.
pub(super) fn knob(what: &str) -> Knob {
    if what.starts_with('/') { Knob::Attribute(what.to_owned()) } else { Knob::Sysctl(what.to_owned()) }
}

/// The kernel parameter of `host` whose name is nearest to this one, which is none, part for part.
pub(super) fn nearest_sysctl(host: &dyn Host, name: &str) -> Option<String> {
    let mut dir = "/proc/sys".to_owned();
    for part in Knob::Sysctl(name.to_owned()).path()?.strip_prefix("/proc/sys/")?.split('/') {
        let entries = host.list(&dir).ok()?;
        let mut known = entries.iter().map(|entry| entry.name.as_str());
        let near = known.clone().find(|known| *known == part).or_else(|| nearest(part, &mut known))?;
        dir = format!("{dir}/{near}");
    }
    let near = called(&dir);
    value(host, &Knob::Sysctl(near.clone())).is_ok().then_some(near)
}

/// Whether a setting is meant by `name`: by its whole name, or by the end of it from a dot or slash on. Several devices
/// have files of one name each; they are all meant.
pub(super) fn named(name: &str, what: &str) -> bool {
    let (name, what) = (called(name), called(what));
    what.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '/']))
}

/// What a wish is called among an arm's settings.
fn shown(wish: &Wish) -> String {
    match &wish.want {
        Want::Set { knob, .. } | Want::SetFirst { knob, .. } => called(&knob.to_string()),
        Want::Run { act, .. } => act.to_string(),
        Want::Hold(_) | Want::Leave(_) | Want::Cannot { .. } => String::new(),
    }
}

impl ArmSpec {
    /// The machine as it is.
    pub(in crate::cli) fn now() -> Self {
        Self { parts: Vec::new(), words: vec!["now".to_owned()] }
    }

    /// This arm without some of its settings, each left as `values` says, or untouched where it says nothing.
    pub(super) fn without(&self, settings: &[(String, Option<String>)]) -> Result<Self, CommandError> {
        let [word] = self.words.as_slice() else {
            return Err(wrong(format!("nothing can be taken out of `{}`: it is one command", self.text())));
        };
        let asked: Vec<String> = self.wishes()?.iter().map(shown).collect();
        let mut words = vec![word.clone()];
        for (what, value) in settings {
            // What the active profile holds is set by no arm, and yet changes where another profile takes its place.
            words.extend(asked.contains(what).then(|| format!("without:{what}")));
            words.extend(value.as_ref().map(|value| format!("set:{what}={value}")));
        }
        one(&[words.join(JOIN)])
    }

    /// An arm that another command worked out, by the name that it gave it.
    pub(in crate::cli) fn worked_out(name: String, wishes: Vec<Wish>, instead_of_profile: bool) -> Self {
        Self { parts: vec![Part::Wishes { wishes, instead_of_profile }], words: vec![name] }
    }

    /// As it is shown, and stored.
    pub(in crate::cli) fn text(&self) -> String {
        self.words.join(" ")
    }

    /// Whether entering it may change the machine, so that it needs root, a journal and quiet afterwards.
    pub(super) fn changes_machine(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Profile(_) | Part::Set(..) | Part::Hook { .. } => true,
            Part::Wishes { wishes, instead_of_profile } => *instead_of_profile || !wishes.is_empty(),
            Part::Command(_) | Part::CpuMax(_) | Part::Without(_) => false,
        })
    }

    /// Whether nobody undoes what entering it does.
    pub(super) fn stays(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Hook { leave: None, .. }))
    }

    /// Whether it stands in for the active profile.
    pub(super) fn is_profile(&self) -> bool {
        let is_profile =
            |part: &Part| matches!(part, Part::Profile(_) | Part::Wishes { instead_of_profile: true, .. });
        self.parts.iter().any(is_profile)
    }

    /// Its own command, if it has one. Words for a shell go to a shell.
    pub(super) fn command(&self) -> Option<Vec<String>> {
        self.parts.iter().rev().find_map(|part| match part {
            Part::Command(text) => Some(command_words(text)),
            _ => None,
        })
    }

    /// `cpu.max` of its workload: quota and period in microseconds.
    pub(super) fn cpu_max(&self) -> Option<(u64, u64)> {
        self.parts.iter().rev().find_map(|part| match part {
            Part::CpuMax(share) => Some((u64::from(*share) * 100, 10_000)),
            _ => None,
        })
    }

    /// What it asks of the machine.
    pub(super) fn wishes(&self) -> Result<Vec<Wish>, CommandError> {
        let mut wishes = Vec::new();
        for part in &self.parts {
            match part {
                Part::Profile(names) => wishes.extend(change::trusted_wishes(names, change::held()?)?.1),
                Part::Set(knob, to) => {
                    let want = Want::Set { knob: knob.clone(), to: to.as_str().into(), when: When::Now };
                    wishes.push(Wish::by_hand(want, to));
                }
                Part::Without(name) => {
                    let before = wishes.len();
                    wishes.retain(|wish: &Wish| !named(name, &shown(wish)));
                    if wishes.len() == before {
                        return Err(wrong(format!(
                            "`without:{name}`: `{}` sets nothing of that name",
                            self.text()
                        ))
                        .hint("a sysctl, a file below /sys, or the end of its name from a dot or slash on"));
                    }
                }
                Part::Hook { enter, leave } => {
                    let undo = leave.as_deref().map(shell);
                    wishes.push(Wish::by_hand(Want::Run { act: shell(enter), undo, verify: None }, enter));
                }
                Part::Wishes { wishes: worked_out, .. } => wishes.extend(worked_out.iter().cloned()),
                Part::Command(_) | Part::CpuMax(_) => {}
            }
        }
        Ok(wishes)
    }
}

fn shell(text: &str) -> Act {
    Act::Command { argv: vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()] }
}

/// Plain words are run as they are, so that no shell's start is measured with them.
fn command_words(text: &str) -> Vec<String> {
    let is_plain = |letter: char| letter.is_alphanumeric() || " \t_-+=./:,@%".contains(letter);
    if text.chars().all(is_plain) && !text.split_whitespace().next().is_some_and(|word| word.contains('=')) {
        return text.split_whitespace().map(str::to_owned).collect();
    }
    vec!["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<ArmSpec>, CommandError> {
        arms(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn words_become_arms() {
        let found = parse(&["now", "set:vm.swappiness=1 + cpu-max:95%", "enter=a + b", "leave=c"]).unwrap();
        assert_eq!(found.len(), 3);
        assert!(!found[0].changes_machine() && found[1].changes_machine() && found[2].changes_machine());
        assert_eq!(found[1].cpu_max(), Some((9_500, 10_000)));
        let hook = Part::Hook { enter: "a + b".into(), leave: Some("c".into()) };
        assert_eq!(
            (found[2].parts.as_slice(), found[2].text().as_str()),
            (&[hook][..], "enter=a + b leave=c")
        );
        assert!(!found[2].stays() && parse(&["enter=a"]).unwrap()[0].stays());
        let acts = found[2].wishes().unwrap();
        assert!(matches!(&acts[0].want, Want::Run { undo: Some(_), .. }));
        // The stored words make the same arms again.
        let words: Vec<String> = found.iter().flat_map(|arm| arm.words.clone()).collect();
        assert_eq!(arms(&words).unwrap(), found);
    }

    #[test]
    fn a_knob_can_be_left_out() {
        let word = "set:vm.swappiness=1 + set:vm.dirty_ratio=5 + without:swappiness";
        let found = parse(&[word]).unwrap().remove(0);
        let knobs: Vec<String> = found.wishes().unwrap().iter().map(shown).collect();
        assert_eq!(knobs, ["vm.dirty_ratio"]);
        let less = found.without(&[("vm.dirty_ratio".into(), Some("20".into()))]).unwrap();
        assert_eq!(less.text(), format!("{word} + without:vm.dirty_ratio + set:vm.dirty_ratio=20"));
        let wishes = less.wishes().unwrap();
        assert!(matches!(&wishes[..], [Wish { asked, .. }] if asked == "20"), "{wishes:?}");
        let error =
            parse(&["set:vm.swappiness=1 + without:ppiness"]).unwrap().remove(0).wishes().unwrap_err();
        assert!(error.error.to_string().contains("sets nothing of that name"), "{}", error.error);
        let hook = parse(&["enter=a", "leave=b"]).unwrap().remove(0);
        assert!(hook.without(&[("a".into(), None)]).is_err());
    }

    #[test]
    fn an_ending_names_whole_parts() {
        let governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
        assert!(named("scaling_governor", governor) && named("policy0/scaling_governor", governor));
        assert!(named(governor, governor) && !named("governor", governor) && !named("scaling", governor));
        assert!(
            named("vm.swappiness", "/proc/sys/vm/swappiness")
                && named("/proc/sys/vm/swappiness", "vm.swappiness")
        );
        assert_eq!(called("/proc/sys/net/ipv4/conf/eth0.1/forwarding"), "net.ipv4.conf.eth0/1.forwarding");
        assert!(named("swappiness", "vm.swappiness") && !named("", "vm.swappiness"));
    }

    #[test]
    fn the_nearest_parameter_is_found() {
        let near = |name: &str| nearest_sysctl(&LiveHost, name);
        for name in ["vm.swapiness", "vn.swappiness", "vm.swappines"] {
            assert_eq!(near(name).as_deref(), Some("vm.swappiness"));
        }
        for name in ["vm", "vm.nothing_like_it_at_all", "vm.//.//etc.passwd", ""] {
            assert_eq!(near(name), None, "{name}");
        }
    }

    #[test]
    fn commands_go_to_a_shell_only_when_they_need_one() {
        let found = parse(&["cmd:sleep 0.1", "cmd:cat /etc/passwd | wc -l", "cmd:A=1 sleep 1"]).unwrap();
        assert_eq!(found[0].command().unwrap(), ["sleep", "0.1"]);
        assert_eq!(found[1].command().unwrap(), ["/bin/sh", "-c", "cat /etc/passwd | wc -l"]);
        assert_eq!(found[2].command().unwrap()[0], "/bin/sh");
        assert!(!found[1].changes_machine());
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (word, told) in [
            ("leave=x", "no `enter=`"),
            ("set:vm.swappiness", "KNOB=VALUE"),
            ("set:/etc/passwd=x", "no file below /sys"),
            ("set:/sys/../etc/passwd=x", "no file below /sys"),
            ("set:=1", "KNOB=VALUE"),
            ("cpu-max:100%", "1% to 99%"),
            ("profile:", "nothing that can be compared"),
            ("without:", "nothing that can be compared"),
            ("nonsense", "nothing that can be compared"),
            ("", "nothing that can be compared"),
        ] {
            let error = parse(&[word]).unwrap_err();
            assert!(error.error.to_string().contains(told), "{word}: {}", error.error);
        }
        assert_eq!(parse(&["balanced"]).unwrap_err().hints, ["`profile:balanced`"]);
        assert_eq!(parse(&["vm.swappiness=1"]).unwrap_err().hints, ["`set:vm.swappiness=1`"]);
    }
}
