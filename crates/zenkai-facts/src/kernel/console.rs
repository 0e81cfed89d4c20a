//! Where kernel messages are printed, and which.

use serde::Serialize;

use super::CommandLine;
use crate::{Observed, Reader};

/// `/proc/sys/kernel/printk` (`Documentation/admin-guide/sysctl/kernel.rst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Levels {
    /// Messages below this level go to the consoles; 8 or more prints everything, debug messages too.
    pub console: u32,
    /// The level of messages that name none.
    pub default_message: u32,
    /// The lowest that the first may be set to.
    pub minimum: u32,
    /// What the first is set to at boot.
    pub default_console: u32,
}

impl std::fmt::Display for Levels {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {} {} {}", self.console, self.default_message, self.minimum, self.default_console)
    }
}

/// A console that kernel messages are printed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Console {
    /// `tty0`, `ttyS0`, `hvc0` …
    pub name: String,
    /// Whether it takes messages now.
    pub enabled: bool,
    /// Whether it is a serial line that prints letter by letter (`ttyS`, `ttyAMA`, `ttyUSB`).
    pub serial: bool,
    /// The speed given on the command line, in baud; nothing when none was given.
    pub baud: Option<u32>,
}

/// Console output.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    /// Which messages are printed.
    pub levels: Observed<Levels>,
    /// Where (`/proc/consoles`).
    pub consoles: Observed<Vec<Console>>,
}

pub(super) fn observe(reader: &Reader<'_>, command_line: &Observed<CommandLine>) -> Output {
    Output {
        levels: reader.text("/proc/sys/kernel/printk").parse(|text| levels(&text)),
        consoles: reader
            .text("/proc/consoles")
            .map(|text| text.lines().filter_map(|line| console(line, command_line.get())).collect()),
    }
}

fn levels(text: &str) -> Result<Levels, String> {
    let numbers: Vec<u32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [console, default_message, minimum, default_console] => Ok(Levels {
            console: *console,
            default_message: *default_message,
            minimum: *minimum,
            default_console: *default_console,
        }),
        _ => Err("not four numbers".to_owned()),
    }
}

/// `ttyS0                -W- (EC  p a)    4:64` (`fs/proc/consoles.c`): E in the parentheses means enabled.
fn console(line: &str, command_line: Option<&CommandLine>) -> Option<Console> {
    let name = line.split_whitespace().next()?;
    let flags = line.split_once('(')?.1.split(')').next()?;
    let options = command_line.and_then(|line| {
        line.all("console").flatten().filter_map(|value| value.split_once(',')).find(|(tty, _)| *tty == name)
    });
    let digits =
        options.map(|(_, options)| options.chars().take_while(char::is_ascii_digit).collect::<String>());
    Some(Console {
        name: name.to_owned(),
        enabled: flags.contains('E'),
        serial: ["ttyS", "ttyAMA", "ttyUSB"].iter().any(|prefix| name.starts_with(prefix)),
        baud: digits.and_then(|digits| digits.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn consoles_with_their_speed() {
        let line = CommandLine::parse("console=tty0 console=ttyS0,115200n8");
        let serial = console("ttyS0                -W- (EC  p a)    4:64", Some(&line)).unwrap();
        assert_eq!((serial.enabled, serial.serial, serial.baud), (true, true, Some(115_200)));
        let screen = console("tty0                 -WU (E   p  )    4:1", Some(&line)).unwrap();
        assert_eq!((screen.serial, screen.baud), (false, None));
        assert_eq!(levels("4\t4\t1\t7").unwrap().console, 4);
        assert!(levels("4 4").is_err());
    }

    proptest! {
        #[test]
        fn never_panics(line in "[a-zA-Z0-9() :-]{0,40}") {
            let _ = console(&line, None);
            let _ = levels(&line);
        }
    }
}
