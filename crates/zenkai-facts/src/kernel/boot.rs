//! The arguments that the boot loader is configured to give to the kernel.

use serde::Serialize;

use super::{Argument, CommandLine};
use crate::{Observed, Reader, Reason};

/// Where the entries of the Boot Loader Specification are.
const ENTRY_DIR: &str = "/boot/loader/entries";

/// What is configured for the next boot.
#[derive(Debug, Clone, Serialize)]
pub struct Boot {
    /// The arguments in `/etc/default/grub`, in order. On systems with boot loader entries the file only counts
    /// when the entries are made anew.
    pub grub_default: Observed<Vec<BootArgument>>,
    /// How many boot loader entries there are in `/boot/loader/entries`.
    pub entries: Observed<usize>,
    /// The arguments of the entry that starts the running kernel.
    pub entry: Observed<Vec<BootArgument>>,
}

/// One configured argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootArgument {
    /// What stands before the first `=`.
    pub key: String,
    /// What stands behind it; nothing for a bare word.
    pub value: Option<String>,
}

impl From<&Argument> for BootArgument {
    fn from(argument: &Argument) -> Self {
        Self { key: argument.key.clone(), value: argument.value.clone() }
    }
}

impl std::fmt::Display for BootArgument {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(out, "{}={value}", self.key),
            None => out.write_str(&self.key),
        }
    }
}

pub(super) fn observe(reader: &Reader<'_>, release: &Observed<String>) -> Boot {
    let names = reader.names(ENTRY_DIR).map(|names| {
        names.iter().filter_map(|name| name.strip_suffix(".conf").map(str::to_owned)).collect::<Vec<_>>()
    });
    let ours = |name: &&String| release.text().is_some_and(|release| name.ends_with(release));
    let entry = match names.outcome() {
        Err(reason) => Observed::unavailable(ENTRY_DIR, reason.clone()),
        Ok(names) => match names.iter().find(ours) {
            Some(name) => options(reader, &format!("{ENTRY_DIR}/{name}.conf")),
            None => Observed::unavailable(ENTRY_DIR, Reason::Absent),
        },
    };
    Boot {
        grub_default: reader.text("/etc/default/grub").map(|text| grub_default(&text)),
        entries: names.map(|names| names.len()),
        entry,
    }
}

/// The `options` lines of an entry. `$kernelopts` stands for text in GRUB's environment block, which is not read.
fn options(reader: &Reader<'_>, path: &str) -> Observed<Vec<BootArgument>> {
    reader.text(path).parse(|text| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("options"));
        let mut options: Vec<_> = lines.flat_map(|line| arguments(line.trim())).collect();
        if options.iter().any(|option| option.key == "$kernelopts") {
            return Err("the options are in GRUB's environment block".to_owned());
        }
        options.retain(|option| !option.key.starts_with('$'));
        Ok(options)
    })
}

fn arguments(text: &str) -> Vec<BootArgument> {
    CommandLine::parse(text).arguments().iter().map(BootArgument::from).collect()
}

/// The two variables of the shell fragment; the last assignment counts. Substitutions are not carried out, and an
/// argument that has one is left out.
fn grub_default(text: &str) -> Vec<BootArgument> {
    let mut values = [String::new(), String::new()];
    let names = ["GRUB_CMDLINE_LINUX=", "GRUB_CMDLINE_LINUX_DEFAULT="];
    for line in text.lines().map(str::trim) {
        for (name, value) in names.iter().zip(values.iter_mut()) {
            if let Some(rest) = line.strip_prefix(name) {
                *value = shell_word(rest);
            }
        }
    }
    let [always, normal] = values;
    let mut found = arguments(&format!("{always} {normal}"));
    found.retain(|argument| !argument.to_string().contains(['$', '`']));
    found
}

/// The content of a quoted word, or the word up to a blank or comment.
fn shell_word(text: &str) -> String {
    let quote = text.chars().next().filter(|letter| matches!(letter, '"' | '\''));
    match quote {
        None => text.split_whitespace().next().unwrap_or("").to_owned(),
        Some(quote) => {
            let mut word = String::new();
            let mut escaped = false;
            for letter in text.chars().skip(1) {
                match letter {
                    _ if escaped => {
                        word.push(letter);
                        escaped = false;
                    }
                    '\\' if quote == '"' => escaped = true,
                    _ if letter == quote => break,
                    _ => word.push(letter),
                }
            }
            word
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    fn texts(arguments: &[BootArgument]) -> Vec<String> {
        arguments.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_shell_fragment() {
        let text = "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"old\"\nGRUB_CMDLINE_LINUX=\"isolcpus=2-3 x=$(uname)\"\n\
                    GRUB_CMDLINE_LINUX_DEFAULT='quiet splash' # c\n";
        assert_eq!(texts(&grub_default(text)), ["isolcpus=2-3", "quiet", "splash"]);
        assert_eq!(shell_word("\"a \\\"b\\\" c\""), "a \"b\" c");
    }

    #[test]
    fn the_entry_of_the_running_kernel() {
        let host = FakeHost::new(&[
            ("/proc/sys/kernel/osrelease", "5.14.0-1\n"),
            ("/boot/loader/entries/a-5.14.0-1.conf", "title x\noptions root=/dev/sda ro $tuned_params\n"),
            ("/boot/loader/entries/a-0-rescue.conf", "options rescue\n"),
        ]);
        let reader = Reader::new(&host);
        let boot = observe(&reader, &reader.text("/proc/sys/kernel/osrelease"));
        assert_eq!(texts(boot.entry.get().unwrap()), ["root=/dev/sda", "ro"]);
        assert_eq!(boot.entries.value(), Some(2));
        assert!(boot.grub_default.is_absent());
    }

    proptest! {
        #[test]
        fn never_panics(text in "(GRUB_CMDLINE_LINUX=)?[\"'\\\\ a-z=$\n]{0,60}") {
            let _ = grub_default(&text);
        }
    }
}
