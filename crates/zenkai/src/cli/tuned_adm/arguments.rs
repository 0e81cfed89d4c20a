//! The command line of `tuned-adm`, read as Python's argparse reads it: scripts that try an option and look at the exit
//! code, or at the last line, find what they find with tuned.

use zenkai_host::is_hidden;

use super::log::Level;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    List {
        plugins: bool,
        verbose: bool,
    },
    Active,
    Off,
    Profile(Vec<String>),
    /// Empty for the active one.
    ProfileInfo(String),
    Recommend,
    Verify {
        ignore_missing: bool,
    },
    AutoProfile,
    ProfileMode,
    AcquireDevices {
        instance: String,
    },
    /// Empty for all plugins.
    GetInstances(String),
    GetDevices(String),
}

/// A command with tuned's global options. `--async` is taken and does nothing: the work is done when we return, and
/// there is no daemon to leave it to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) action: Action,
    /// How long to wait for another change to finish.
    pub(super) timeout_s: u64,
    /// Lines of the log from this level on are shown; none shows nothing.
    pub(super) level: Option<Level>,
}

/// Nothing is done: help, a version, or a mistake.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) text: String,
    pub(super) code: u8,
}

struct Flag {
    long: &'static str,
    short: char,
    takes_value: bool,
    help: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    One,
    Optional,
    Any,
}

struct Command {
    name: &'static str,
    flags: &'static [Flag],
    /// What comes after the name.
    places: &'static [(&'static str, Count)],
    help: &'static str,
}

const fn flag(long: &'static str, short: char, takes_value: bool, help: &'static str) -> Flag {
    Flag { long, short, takes_value, help }
}

const fn command(
    name: &'static str,
    flags: &'static [Flag],
    places: &'static [(&'static str, Count)],
    help: &'static str,
) -> Command {
    Command { name, flags, places, help }
}

const HELP: Flag = flag("help", 'h', false, "show this and end");

const GLOBAL: &[Flag] = &[
    HELP,
    flag("version", 'v', false, "show the version and end"),
    flag("debug", 'd', false, "taken for scripts' sake; see --loglevel"),
    flag("async", 'a', false, "taken for scripts' sake; what is asked for is done at once"),
    flag("timeout", 't', true, "seconds to wait for another change to finish (600)"),
    flag(
        "loglevel",
        'l',
        true,
        "show lines of the log from this level on: debug, info, warn, error, console, none",
    ),
];

const COMMANDS: &[Command] = &[
    command(
        "list",
        &[HELP, flag("verbose", 'v', false, "show the options of plugins and what they are for")],
        &[("{plugins|profiles}", Count::Optional)],
        "list the profiles, or the plugins",
    ),
    command("active", &[HELP], &[], "show the active profile"),
    command("off", &[HELP], &[], "take the profile off"),
    command("profile", &[HELP], &[("profile", Count::Any)], "switch to profiles; without a name, list them"),
    command("profile_info", &[HELP], &[("profile", Count::Optional)], "show what a profile is for"),
    command("recommend", &[HELP], &[], "show which profile fits this machine"),
    command(
        "verify",
        &[HELP, flag("ignore-missing", 'i', false, "what this machine does not have is no failure")],
        &[],
        "compare this machine with the profile",
    ),
    command("auto_profile", &[HELP], &[], "switch to the profile that fits this machine"),
    command("profile_mode", &[HELP], &[], "show who chose the profile"),
    command(
        "instance_acquire_devices",
        &[HELP],
        &[("devices", Count::One), ("instance", Count::One)],
        "give devices to another instance; needs a daemon",
    ),
    command("get_instances", &[HELP], &[("plugin_name", Count::Optional)], "list the instances of plugins"),
    command("instance_get_devices", &[HELP], &[("instance", Count::One)], "list an instance's devices"),
];

/// Reads the arguments after the program's name. `recommend` is whether there is such a command (`recommend_command`
/// in tuned-main.conf).
pub(super) fn parse(args: &[String], recommend: bool) -> Result<Call, Stop> {
    let mut global = Options::new(GLOBAL, String::new(), usage(recommend));
    let mut rest = args;
    let name = loop {
        let Some((first, others)) = rest.split_first() else {
            if global.unknown.is_empty() {
                return Err(Stop { text: usage(recommend), code: 1 });
            }
            return Err(global.unrecognized());
        };
        rest = others;
        if first == "--" || !is_option(first, GLOBAL) {
            break first;
        }
        if let Some(help) = global.option(first, &mut rest)? {
            return Err(Stop {
                text: if help == "help" { full_help(recommend) } else { version() },
                code: 0,
            });
        }
    };
    let mut call = Call { action: Action::Active, timeout_s: 600, level: Some(Level::Console) };
    for (long, value) in &global.values {
        match *long {
            "timeout" => call.timeout_s = timeout(value).map_err(|why| global.wrong("--timeout/-t", &why))?,
            "loglevel" => call.level = level(value).map_err(|why| global.wrong("--loglevel/-l", &why))?,
            _ => {}
        }
    }
    let Some(command) = commands(recommend).find(|command| command.name == name) else {
        let known: Vec<&str> = commands(recommend).map(|command| command.name).collect();
        return Err(global.wrong(&format!("{{{}}}", known.join(",")), &no_choice(name, &known)));
    };
    let mut own = Options::new(command.flags, format!(" {}", command.name), usage_of(command));
    let mut places = own.walk(command, rest)?;
    global.unknown.append(&mut own.unknown);
    call.action = action(command.name, &own, &mut places)?;
    if global.unknown.is_empty() { Ok(call) } else { Err(global.unrecognized()) }
}

fn action(name: &str, own: &Options, places: &mut Vec<String>) -> Result<Action, Stop> {
    let has = |long: &str| own.values.iter().any(|(name, _)| *name == long);
    let first = places.first().cloned().unwrap_or_default();
    Ok(match name {
        "list" => {
            let choices = ["plugins", "profiles"];
            if !places.is_empty() && !choices.contains(&first.as_str()) {
                return Err(own.wrong("{plugins|profiles}", &no_choice(&first, &choices)));
            }
            Action::List { plugins: first == "plugins", verbose: has("verbose") }
        }
        "off" => Action::Off,
        "profile" => Action::Profile(std::mem::take(places)),
        "profile_info" => Action::ProfileInfo(first),
        "recommend" => Action::Recommend,
        "verify" => Action::Verify { ignore_missing: has("ignore-missing") },
        "auto_profile" => Action::AutoProfile,
        "profile_mode" => Action::ProfileMode,
        "instance_acquire_devices" => {
            Action::AcquireDevices { instance: places.get(1).cloned().unwrap_or_default() }
        }
        "get_instances" => Action::GetInstances(first),
        "instance_get_devices" => Action::GetDevices(first),
        _ => Action::Active,
    })
}

/// Options of the program or of one command, as they are met.
struct Options {
    flags: &'static [Flag],
    /// What stands after the program's name in messages.
    command: String,
    usage: String,
    values: Vec<(&'static str, String)>,
    unknown: Vec<String>,
}

impl Options {
    fn new(flags: &'static [Flag], command: String, usage: String) -> Self {
        Self { flags, command, usage, values: Vec::new(), unknown: Vec::new() }
    }

    /// Takes one argument that looks like an option, and its value from `rest`. Gives the name of an option that ends
    /// everything: help or version.
    fn option(&mut self, arg: &str, rest: &mut &[String]) -> Result<Option<&'static str>, Stop> {
        if let Some(text) = arg.strip_prefix("--") {
            let (name, mut value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text, None),
            };
            // An option may be cut short as long as it is the only one that begins so.
            let mut found = self.flags.iter().filter(|flag| flag.long.starts_with(name));
            let (Some(flag), None) = (found.next(), found.next()) else {
                self.unknown.push(arg.to_owned());
                return Ok(None);
            };
            return self.take(flag, &mut value, rest);
        }
        let mut letters = arg.chars();
        let first = letters.nth(1);
        let mut flag = self.flags.iter().find(|flag| Some(flag.short) == first);
        if flag.is_none() {
            self.unknown.push(arg.to_owned());
            return Ok(None);
        }
        while let Some(this) = flag {
            let text = letters.as_str();
            let mut value = (!text.is_empty()).then(|| text.to_owned());
            let next =
                letters.clone().next().and_then(|next| self.flags.iter().find(|flag| flag.short == next));
            if !this.takes_value && value.is_some() && next.is_some() {
                if let Some(end) = self.take(this, &mut None, rest)? {
                    return Ok(Some(end));
                }
                letters.next();
                flag = next;
                continue;
            }
            // `-t=5` is `-t 5`.
            if let Some(text) = value.as_ref().and_then(|text| text.strip_prefix('=')) {
                value = Some(text.to_owned());
            }
            return self.take(this, &mut value, rest);
        }
        Ok(None)
    }

    fn take(
        &mut self,
        flag: &'static Flag,
        value: &mut Option<String>,
        rest: &mut &[String],
    ) -> Result<Option<&'static str>, Stop> {
        let shown = format!("--{}/-{}", flag.long, flag.short);
        let taken = match (flag.takes_value, value.take()) {
            (false, None) => String::new(),
            (false, Some(text)) => {
                return Err(self.wrong(&shown, &format!("ignored explicit argument {}", quoted(&text))));
            }
            (true, Some(text)) => text,
            (true, None) => match rest.split_first() {
                Some((next, others)) if !is_option(next, self.flags) => {
                    *rest = others;
                    next.clone()
                }
                _ => return Err(self.wrong(&shown, "expected one argument")),
            },
        };
        if matches!(flag.long, "help" | "version") {
            return Ok(Some(flag.long));
        }
        // argparse judges a value when it meets it, so the first wrong one is told; later ones count.
        match flag.long {
            "timeout" => timeout(&taken).map(drop).map_err(|why| self.wrong(&shown, &why))?,
            "loglevel" => level(&taken).map(drop).map_err(|why| self.wrong(&shown, &why))?,
            _ => {}
        }
        self.values.push((flag.long, taken));
        Ok(None)
    }

    /// Everything after the command's name.
    fn walk(&mut self, command: &Command, mut rest: &[String]) -> Result<Vec<String>, Stop> {
        let (mut taken, mut next, mut no_more_options) = (Vec::new(), 0, false);
        while !rest.is_empty() {
            // A run of arguments that are no options is given to the places at once.
            let mut run = Vec::new();
            while let Some((arg, others)) = rest.split_first() {
                if arg == "--" && !no_more_options {
                    no_more_options = true;
                    // It ends the options where something may follow; otherwise it is one argument too many.
                    if next == command.places.len() {
                        run.push(arg.clone());
                    }
                } else if no_more_options || !is_option(arg, self.flags) {
                    run.push(arg.clone());
                } else {
                    break;
                }
                rest = others;
            }
            if !run.is_empty() {
                let mut run = run.into_iter().peekable();
                while let Some((_, count)) = command.places.get(next) {
                    match count {
                        Count::One if run.peek().is_none() => break,
                        Count::Any => taken.extend(run.by_ref()),
                        _ => taken.extend(run.next()),
                    }
                    next += 1;
                }
                self.unknown.extend(run);
            }
            if let Some((arg, others)) = rest.split_first() {
                rest = others;
                if self.option(arg, &mut rest)?.is_some() {
                    return Err(Stop { text: help_of(command), code: 0 });
                }
            }
        }
        let missing: Vec<&str> = command.places[next.min(command.places.len())..]
            .iter()
            .filter(|(_, count)| *count == Count::One)
            .map(|(name, _)| *name)
            .collect();
        if missing.is_empty() {
            return Ok(taken);
        }
        Err(self.error(&format!("the following arguments are required: {}", missing.join(", "))))
    }

    fn wrong(&self, argument: &str, why: &str) -> Stop {
        self.error(&format!("argument {argument}: {why}"))
    }

    fn unrecognized(&self) -> Stop {
        self.error(&format!("unrecognized arguments: {}", super::printable(&self.unknown.join(" "))))
    }

    fn error(&self, what: &str) -> Stop {
        Stop { text: format!("{}tuned-adm{}: error: {what}\n", self.usage, self.command), code: 2 }
    }
}

/// Whether argparse takes it for an option: a hyphen and more, but no number, and a blank only after an option it knows.
fn is_option(arg: &str, flags: &[Flag]) -> bool {
    let Some(rest) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else { return false };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = match rest.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part) && !part.is_empty(),
        None => digits(rest),
    };
    let is_known = match rest.strip_prefix('-') {
        Some(long) => {
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            flags.iter().any(|flag| flag.long.starts_with(name))
        }
        None => flags.iter().any(|flag| rest.starts_with(flag.short)),
    };
    is_known || (!is_number && !arg.contains(' '))
}

fn timeout(text: &str) -> Result<u64, String> {
    // tuned's own words, though it refuses 0.
    let wrong = || format!("{} has to be >= 0", super::printable(text));
    text.trim().parse().ok().filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

fn level(text: &str) -> Result<Option<Level>, String> {
    match text.to_lowercase().as_str() {
        "none" => Ok(None),
        "debug" => Ok(Some(Level::Debug)),
        "info" => Ok(Some(Level::Info)),
        "warn" => Ok(Some(Level::Warning)),
        "error" => Ok(Some(Level::Error)),
        "console" => Ok(Some(Level::Console)),
        _ => Err(format!(
            "Invalid log level: {}. Valid log levels: debug, info, warn, error, console, none.",
            super::printable(text)
        )),
    }
}

fn no_choice(given: &str, known: &[&str]) -> String {
    let known: Vec<String> = known.iter().map(|name| quoted(name)).collect();
    format!("invalid choice: {} (choose from {})", quoted(given), known.join(", "))
}

/// The text as Python's `repr` shows it.
fn quoted(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut shown = String::from(mark);
    for letter in text.chars() {
        match letter {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            letter if letter == mark => shown.extend(['\\', letter]),
            letter if is_hidden(letter) => shown.push_str(&match u32::from(letter) {
                code @ ..=0xff => format!("\\x{code:02x}"),
                code @ ..=0xffff => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
            letter => shown.push(letter),
        }
    }
    shown.push(mark);
    shown
}

fn commands(recommend: bool) -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(move |command| recommend || command.name != "recommend")
}

fn usage(recommend: bool) -> String {
    let names: Vec<&str> = commands(recommend).map(|command| command.name).collect();
    let room = " ".repeat("usage: tuned-adm ".len());
    format!(
        "usage: tuned-adm [-h] [--version] [--debug] [--async] [--timeout TIMEOUT]\n\
         {room}[--loglevel LOGLEVEL]\n{room}{{{}}}\n{room}...\n",
        names.join(",")
    )
}

fn usage_of(command: &Command) -> String {
    let flags: Vec<String> = command.flags.iter().skip(1).map(|flag| format!(" [--{}]", flag.long)).collect();
    let places: Vec<String> = command
        .places
        .iter()
        .map(|(name, count)| match count {
            Count::One => format!(" {name}"),
            Count::Optional => format!(" [{name}]"),
            Count::Any => format!(" [{name} ...]"),
        })
        .collect();
    format!("usage: tuned-adm {} [-h]{}{}\n", command.name, flags.concat(), places.concat())
}

fn help_of(command: &Command) -> String {
    format!("{}\n{}\n\noptions:\n{}", usage_of(command), command.help, flags_help(command.flags))
}

fn full_help(recommend: bool) -> String {
    let commands: Vec<String> =
        commands(recommend).map(|command| format!("  {:<26}{}\n", command.name, command.help)).collect();
    let commands = commands.concat();
    format!(
        "{}\ntuned's commands, done by zenkai without a daemon.\n\ncommands:\n{commands}\noptions:\n{}",
        usage(recommend),
        flags_help(GLOBAL)
    )
}

fn flags_help(flags: &[Flag]) -> String {
    let value = |flag: &Flag| {
        if flag.takes_value { format!(" {}", flag.long.to_uppercase()) } else { String::new() }
    };
    let line = |flag: &Flag| {
        let long = format!("--{}{}", flag.long, value(flag));
        format!("  -{}, {long:<22}{}\n", flag.short, flag.help)
    };
    flags.iter().map(line).collect::<Vec<String>>().concat()
}

/// The first three words are what scripts compare; the rest is the truth.
fn version() -> String {
    format!("tuned-adm 2.28.0 (zenkai {})\n", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy as _;

    use super::*;

    fn parse_line(line: &str) -> Result<Call, Stop> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&args, true)
    }

    fn last_line(line: &str) -> String {
        let stop = parse_line(line).unwrap_err();
        assert_eq!(stop.code, 2, "{line}: {}", stop.text);
        stop.text.lines().last().unwrap().to_owned()
    }

    #[test]
    fn commands_and_options() {
        let call = parse_line("-dat5 --log=WARN profile a b").unwrap();
        assert_eq!(call.action, Action::Profile(vec!["a".into(), "b".into()]));
        assert_eq!((call.timeout_s, call.level), (5, Some(Level::Warning)));
        assert_eq!(parse_line("profile").unwrap().action, Action::Profile(Vec::new()));
        assert_eq!(parse_line("profile -- -rf").unwrap().action, Action::Profile(vec!["-rf".into()]));
        assert_eq!(
            parse_line("list -v plugins").unwrap().action,
            Action::List { plugins: true, verbose: true }
        );
        assert_eq!(parse_line("verify --ig").unwrap().action, Action::Verify { ignore_missing: true });
        assert_eq!(
            parse_line("instance_acquire_devices sda x").unwrap().action,
            Action::AcquireDevices { instance: "x".into() }
        );
        assert_eq!(parse_line("").unwrap_err().code, 1);
        assert_eq!(parse_line("-l none active").unwrap().level, None);
    }

    #[test]
    fn mistakes_in_the_words_of_argparse() {
        let end = |line: &str, wanted: &str| {
            let last = last_line(line);
            assert!(last.ends_with(wanted), "{line}: {last}");
        };
        end("active --", "tuned-adm: error: unrecognized arguments: --");
        end("verify -x", "tuned-adm: error: unrecognized arguments: -x");
        end("profile_info a b", "tuned-adm: error: unrecognized arguments: b");
        end("-t 0 list", "tuned-adm: error: argument --timeout/-t: 0 has to be >= 0");
        end("-t", "tuned-adm: error: argument --timeout/-t: expected one argument");
        end("-d3 list", "tuned-adm: error: argument --debug/-d: ignored explicit argument '3'");
        end(
            "list nope",
            "tuned-adm list: error: argument {plugins|profiles}: invalid choice: 'nope' (choose from 'plugins', \
             'profiles')",
        );
        end(
            "instance_acquire_devices sda",
            "tuned-adm instance_acquire_devices: error: the following arguments are required: instance",
        );
        assert!(last_line("no\u{1b}pe").contains("invalid choice: 'no\\x1bpe' (choose from 'list', "));
        assert!(!last_line("active \u{1b}[31m").contains('\u{1b}'));
        assert!(parse(&["recommend".to_owned()], false).unwrap_err().text.contains("invalid choice"));
    }

    proptest::proptest! {
        #[test]
        fn any_arguments_are_read_or_refused(
            args in proptest::collection::vec(
                proptest::prop_oneof![
                    "-{0,2}[a-z=0-9 -]{0,6}",
                    proptest::sample::select(vec!["list", "profile", "verify", "--", "-t", "5", "instance_acquire_devices"])
                        .prop_map(str::to_owned),
                    "\\PC{0,4}",
                    "[a\u{1b}\u{202e}\u{e0041}'\"\\\\]{0,3}",
                ],
                0..6,
            )
        ) {
            if let Err(stop) = parse(&args, true) {
                proptest::prop_assert!(stop.code <= 2 && stop.text.ends_with('\n'), "{:?}", stop);
                proptest::prop_assert!(stop.text.chars().all(|letter| letter == '\n' || !is_hidden(letter)), "{:?}", stop);
            }
        }
    }

    #[test]
    fn help_and_version() {
        for line in ["-h", "list --help", "--version", "-dv nope"] {
            assert_eq!(parse_line(line).unwrap_err().code, 0, "{line}");
        }
        assert!(parse_line("-v").unwrap_err().text.starts_with("tuned-adm 2.28.0 "));
        for command in COMMANDS {
            assert!(usage(true).contains(command.name));
        }
    }
}
