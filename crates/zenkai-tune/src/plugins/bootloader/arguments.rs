//! Kernel arguments as words, and what is to change about them.

use crate::OptionText;

/// Letters that a boot loader's configuration gives a meaning of its own; an argument with one of them is refused,
/// since each loader quotes differently and a wrong guess leaves a machine that does not boot.
const SPECIAL: &[char] = &['"', '\'', '`', '\\', '$', ';', '&', '|', '<', '>', '{', '}', '#'];

/// What is to change about a kernel command line.
#[derive(Debug, Default, Clone)]
pub(super) struct Edit {
    /// Arguments that an earlier profile brought; they go unless they are wanted again.
    pub(super) ours: Vec<String>,
    /// Keys whose arguments go, whatever their value.
    pub(super) keys: Vec<String>,
    /// Arguments that are wanted, in this order.
    pub(super) add: Vec<String>,
}

impl Edit {
    /// The command line as it is to be; the same text when nothing changes. Everything after `--` is for init.
    pub(super) fn apply(&self, line: &str) -> String {
        let (kernel, init) = match line.split_once(" -- ") {
            Some((kernel, init)) => (kernel, Some(init)),
            None => (line, None),
        };
        let old: Vec<&str> = kernel.split_whitespace().collect();
        let goes = |word: &str| {
            let wanted = self.add.iter().any(|argument| argument == word);
            !wanted
                && (self.ours.iter().any(|argument| argument == word)
                    || self.keys.iter().any(|k| k == key(word)))
        };
        let mut new: Vec<&str> = old.iter().copied().filter(|word| !goes(word)).collect();
        let missing: Vec<&str> =
            self.add.iter().map(String::as_str).filter(|argument| !new.contains(argument)).collect();
        if self.order_matters() && !missing.is_empty() {
            new.extend(self.add.iter().map(String::as_str));
        } else {
            new.extend(missing);
        }
        if new == old {
            return line.to_owned();
        }
        let mut text = new.join(" ");
        if let Some(init) = init {
            text.push_str(" -- ");
            text.push_str(init);
        }
        text
    }

    /// Whether one argument gives another its meaning, as `hugepagesz=` does for the `hugepages=` that follow it.
    fn order_matters(&self) -> bool {
        let repeated = |at: usize, word: &String| self.add[..at].iter().any(|other| key(other) == key(word));
        self.add.iter().enumerate().any(|(at, word)| key(word) == "hugepages" || repeated(at, word))
    }

    /// The wanted arguments that this command line does not have.
    pub(super) fn missing_in<'e>(&'e self, line: &str) -> Vec<&'e str> {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.add.iter().map(String::as_str).filter(|argument| !words.contains(argument)).collect()
    }
}

/// The name of an argument.
pub(super) fn key(word: &str) -> &str {
    word.split_once('=').map_or(word, |(key, _)| key)
}

/// All `cmdline…` options together, in the order of the profile: `+` adds, `-` takes a word away that an earlier one
/// added, anything else adds too; `\+`, `\-` and `\\` are those letters themselves.
pub(super) fn combined(options: &[OptionText]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for option in options.iter().filter(|option| option.name.starts_with("cmdline")) {
        let value = option.value.trim();
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        if let Some(gone) = value.strip_prefix('-') {
            words.retain(|word| !gone.split_whitespace().any(|other| other == word));
            continue;
        }
        let escaped = value.strip_prefix('\\').filter(|rest| rest.starts_with(['\\', '+', '-']));
        let value = escaped.unwrap_or_else(|| value.strip_prefix('+').unwrap_or(value));
        words.extend(value.split_whitespace().map(ToOwned::to_owned));
    }
    words
}

/// The first argument that cannot be written safely.
pub(super) fn unsafe_word(words: &[String]) -> Option<&String> {
    words.iter().find(|word| {
        word.is_empty() || word.contains(SPECIAL) || !word.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Origin;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn operators_of_the_profile() {
        let option = |(name, value): &(&str, &str)| OptionText {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
            origin: Origin::CommandLine,
        };
        let given = [
            ("cmdline_a", "+a=1 b"),
            ("skip_grub_config", "0"),
            ("cmdline_b", "-b"),
            ("cmdline_c", "\"c d=2\""),
            ("cmdline_d", "\\+e"),
        ];
        let options: Vec<OptionText> = given.iter().map(option).collect();
        assert_eq!(combined(&options), words("a=1 c d=2 +e"));
        assert_eq!(unsafe_word(&words("a=1 b=$(x)")).unwrap(), "b=$(x)");
    }

    #[test]
    fn only_what_is_wanted_changes() {
        let edit = Edit { ours: words("old=1 keep=1"), keys: words("idle"), add: words("keep=1 new=2") };
        assert_eq!(edit.apply("root=x  old=1 keep=1 idle=poll"), "root=x keep=1 new=2");
        assert_eq!(edit.apply("root=x   keep=1 new=2"), "root=x   keep=1 new=2");
        assert_eq!(edit.apply("ro -- single"), "ro keep=1 new=2 -- single");
        let pages = Edit { add: words("hugepagesz=2M hugepages=4"), ..Edit::default() };
        assert_eq!(
            pages.apply("hugepagesz=1G hugepages=4"),
            "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=4"
        );
        assert_eq!(edit.missing_in("keep=1"), ["new=2"]);
    }
}
