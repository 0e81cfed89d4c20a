//! The functions of profiles, `${f:NAME:ARGUMENT:…}`.
#![expect(clippy::unnecessary_wraps, reason = "all functions in the list have one type")]

mod checks;
mod cpulist;
mod logic;
mod misc;
mod topology;

use std::io;

use zenkai_host::Host;

/// Runs a program for the two functions that cannot do without (`exec`, `lscpu_check`). The program decides whether
/// to hand one over; without it these functions stay unexpanded.
pub trait Commands: Sync {
    /// Standard output of the program, if it ended with exit code 0.
    fn output(&self, argv: &[String]) -> io::Result<String>;
}

/// What functions look at.
#[derive(Clone, Copy)]
pub struct Functions<'h> {
    /// The machine.
    pub host: &'h dyn Host,
    /// Who runs programs; nobody, where only planning or looking at another machine is wanted.
    pub commands: Option<&'h dyn Commands>,
}

/// Why a function gave no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The text stays as it is written; the reason is for a note.
    Unexpanded(String),
    /// An assertion of the profile holds; its text stays too, and there is nothing to say.
    Holds,
    /// An assertion of the profile does not hold: its text.
    Assertion(String),
}

pub(crate) type Answer = Result<String, Refusal>;

/// How one function is called: the machine, the arguments, and where notes go.
type Call = fn(&Functions<'_>, &[String], &mut Vec<String>) -> Answer;

struct Function {
    name: &'static str,
    /// The fewest and the most arguments; 0 for "as many as you like", as in tuned.
    arguments: (usize, usize),
    call: Call,
}

const fn function(name: &'static str, least: usize, most: usize, call: Call) -> Function {
    Function { name, arguments: (least, most), call }
}

/// All of them.
static FUNCTIONS: &[Function] = &[
    function("assertion", 3, 3, logic::assertion),
    function("assertion_non_equal", 3, 3, logic::assertion_non_equal),
    function("calc_isolated_cores", 0, 1, topology::calc_isolated_cores),
    function("check_net_queue_count", 1, 1, topology::check_net_queue_count),
    function("cpuinfo_check", 2, 0, checks::cpuinfo_check),
    function("cpulist2devs", 0, 0, cpulist::devices),
    function("cpulist2hex", 0, 0, cpulist::hex),
    function("cpulist2hex_invert", 0, 0, cpulist::hex_invert),
    function("cpulist_invert", 0, 0, cpulist::invert),
    function("cpulist_online", 0, 0, cpulist::online),
    function("cpulist_pack", 0, 0, cpulist::pack),
    function("cpulist_present", 0, 0, cpulist::present),
    function("cpulist_unpack", 0, 0, cpulist::unpack),
    function("exec", 1, 0, misc::exec),
    function("hex2cpulist", 1, 1, cpulist::from_hex),
    function("intel_recommended_pstate", 0, 0, topology::intel_recommended_pstate),
    function("kb2s", 1, 1, misc::kb2s),
    function("log", 1, 0, misc::log),
    function("lscpu_check", 2, 0, checks::lscpu_check),
    function("package2cpus", 1, 0, topology::package2cpus),
    function("package2uncores", 1, 0, topology::package2uncores),
    function("regex_search_ternary", 4, 4, checks::regex_search_ternary),
    function("s2kb", 1, 1, misc::s2kb),
    function("strip", 1, 0, misc::strip),
    function("virt_check", 2, 2, checks::virt_check),
];

impl Functions<'_> {
    /// Calls a function.
    pub(crate) fn call(&self, name: &str, arguments: &[String], notes: &mut Vec<String>) -> Answer {
        let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
            return unexpanded(format!("there is no function `{name}`"));
        };
        let (least, most) = function.arguments;
        if arguments.len() < least || (most != 0 && arguments.len() > most) {
            return unexpanded(format!("function `{name}` does not take {} arguments", arguments.len()));
        }
        (function.call)(self, arguments, notes).map_err(|refusal| match refusal {
            Refusal::Unexpanded(why) => Refusal::Unexpanded(format!("function `{name}`: {why}")),
            other => other,
        })
    }

    /// A file as text, without white space around it.
    fn text(&self, path: &str) -> Result<String, Refusal> {
        let content =
            self.host.read(path).map_err(|error| Refusal::Unexpanded(format!("{path}: {error}")))?;
        Ok(String::from_utf8_lossy(&content).trim().to_owned())
    }
}

fn unexpanded<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Unexpanded(why.into()))
}

/// A number as Python's `int()` reads it in base ten.
pub(crate) fn python_int(text: &str) -> Option<i64> {
    let text = text.trim_matches(super::ini::is_space);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let underscores = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    if underscores || !digits.chars().all(|letter| letter.is_ascii_digit() || letter == '_') {
        return None;
    }
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
pub(crate) mod testing {
    use zenkai_host::FakeHost;

    use super::*;

    /// Calls `name:argument:…` on a machine; `!` and the reason for what stays unexpanded.
    pub(crate) fn call(host: &FakeHost, commands: Option<&dyn Commands>, text: &str) -> String {
        let mut parts = text.split(':').map(str::to_owned);
        let name = parts.next().unwrap();
        let arguments: Vec<String> = parts.collect();
        match (Functions { host, commands }).call(&name, &arguments, &mut Vec::new()) {
            Ok(text) => text,
            Err(Refusal::Unexpanded(why)) => format!("!{why}"),
            Err(Refusal::Assertion(text)) => format!("!!{text}"),
            Err(Refusal::Holds) => "holds".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn the_list_is_sorted_and_complete() {
        assert_eq!(FUNCTIONS.len(), 25);
        assert!(FUNCTIONS.is_sorted_by_key(|function| function.name));
    }

    #[test]
    fn wrong_calls_stay_unexpanded() {
        let host = FakeHost::new(&[]);
        assert_eq!(testing::call(&host, None, "nope:1"), "!there is no function `nope`");
        assert_eq!(testing::call(&host, None, "kb2s"), "!function `kb2s` does not take 0 arguments");
        assert_eq!(testing::call(&host, None, "kb2s:1:2"), "!function `kb2s` does not take 2 arguments");
    }

    #[test]
    fn numbers_as_python_reads_them() {
        for (text, wanted) in [
            (" 4 ", Some(4)),
            ("1_000", Some(1000)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("", None),
            ("_1", None),
            ("0x1", None),
            ("1.0", None),
        ] {
            assert_eq!(python_int(text), wanted, "{text}");
        }
    }
}
