//! tuned's log: the lines that scripts look for, in tuned's format.

use std::{
    io::{self, Write},
    time::{SystemTime, UNIX_EPOCH},
};

use zenkai_host::{append_log, local_time};
use zenkai_tune::profile::MainConf;

/// Where tuned writes it.
pub(super) const FILE: &str = "/var/log/tuned/tuned.log";
/// A value or an answer of a script is cut to this many letters.
const VALUE_LIMIT: usize = 200;

/// How grave a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Debug,
    Info,
    Warning,
    Error,
    Console,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
            Self::Console => "CONSOLE",
        }
    }
}

/// Lines that were not written yet.
#[derive(Debug, Default)]
pub(super) struct Log(Vec<(Level, String, String)>);

impl Log {
    /// Adds a line; `module` is the part of tuned that says such a thing, after `tuned.`.
    pub(super) fn add(&mut self, level: Level, module: &str, text: &str) {
        self.0.push((level, module.to_owned(), one_line(text)));
    }

    /// The lines from this level on, as tuned shows them at a terminal.
    pub(super) fn show(&self, from: Level, err: &mut dyn Write) -> io::Result<()> {
        self.0
            .iter()
            .filter(|(level, ..)| *level >= from)
            .try_for_each(|(level, module, text)| writeln!(err, "{:<8} tuned.{module}: {text}", level.word()))
    }

    /// Adds the lines to the log file, which only root may.
    pub(super) fn write(&self, conf: &MainConf) -> io::Result<()> {
        let stamp = stamp();
        let lines: Vec<String> = self
            .0
            .iter()
            .filter(|(level, ..)| *level >= Level::Info)
            .map(|(level, module, text)| format!("{stamp} {:<8} tuned.{module}: {text}\n", level.word()))
            .collect();
        let kept = u32::try_from(conf.log_file_count).unwrap_or(0);
        append_log(FILE, &lines.concat(), conf.log_file_max_size_bytes, kept)
    }
}

/// The time as Python's logging writes it: local, with milliseconds after a comma.
#[expect(clippy::disallowed_methods, reason = "the program's clock is read here, for the log")]
fn stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(now.as_secs()).ok().and_then(local_time).unwrap_or_default();
    format!("{seconds},{:03}", now.subsec_millis())
}

/// A line stays a line, whatever a profile or a script says.
pub(super) fn one_line(text: &str) -> String {
    zenkai_report::printable(&text.replace('\n', " "))
}

/// A value for a line; a whole file is only counted.
pub(super) fn value(text: &str) -> String {
    let text = text.trim();
    let lines = text.lines().count();
    if lines > 1 {
        return format!("a text of {lines} lines");
    }
    let short: String = text.chars().take(VALUE_LIMIT).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{short}{dots}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_scripts_look_for() {
        let mut log = Log::default();
        log.add(Level::Info, "daemon.daemon", "static tuning from profile 'x' applied");
        log.add(Level::Error, "plugins.base", "a\nb\u{1b}[31m");
        let mut shown = Vec::new();
        log.show(Level::Warning, &mut shown).unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), "ERROR    tuned.plugins.base: a b\\u{1b}[31m\n");
        let mut shown = Vec::new();
        log.show(Level::Debug, &mut shown).unwrap();
        assert!(shown.starts_with(b"INFO     tuned.daemon.daemon: static tuning from profile 'x' applied\n"));
    }

    #[test]
    fn the_stamp_is_python_s() {
        let stamp = stamp();
        let shape: String =
            stamp.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
        assert_eq!(shape, "0000-00-00 00:00:00,000");
        assert_eq!(value(&"x".repeat(500)).chars().count(), VALUE_LIMIT + 1);
    }
}
