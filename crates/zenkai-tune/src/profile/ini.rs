//! The files' syntax: what Python's `configparser` reads when `=` alone separates, `#` after white space starts a
//! comment, keys keep their case and nothing is interpolated (Python library reference, "configparser").

use std::{collections::HashMap, fmt};

/// A larger file is no profile.
const FILE_LIMIT: usize = 1 << 20;
/// A longer line is no option.
const LINE_LIMIT: usize = 64 << 10;
/// More options than this, after `[DEFAULT]` was copied into every section, are an attack.
const ENTRY_LIMIT: usize = 20_000;

/// A `key = value` line, continuation lines joined to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key as it is written.
    pub key: String,
    /// The text behind `=`; none where a key may stand alone and does.
    pub value: Option<String>,
    /// The line of the key, counted from 1.
    pub line: u32,
}

/// A section with all its entries in the order of their first appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The text in brackets; empty for what stands above the first section of a headerless file.
    pub name: String,
    /// The line where it first starts; 0 for what stands above the first section.
    pub line: u32,
    /// Its entries and those of `[DEFAULT]` that it does not have itself.
    pub entries: Vec<Entry>,
}

impl Section {
    /// The entry of this key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The value of this key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.entry(key)?.value.as_deref()
    }
}

/// A whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ini {
    /// The sections in the order of their first appearance, without `[DEFAULT]`.
    pub sections: Vec<Section>,
}

impl Ini {
    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// Which of the two dialects a file is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Profiles and recommend files: every line belongs to a section, every key has a value.
    Sections,
    /// tuned-main.conf and variable files: lines above the first section are allowed, and so are keys alone.
    Headerless,
}

/// A file that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IniError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for IniError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for IniError {}

/// White space as Python's `str.isspace` has it: Unicode's, and the four ASCII separators.
pub(crate) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// Parses a file. `file` is only for messages.
pub fn parse(file: &str, content: &[u8], dialect: Dialect) -> Result<Ini, IniError> {
    let mut parser = Parser::new(dialect);
    let failed = |line: u32, message: String| IniError { file: file.to_owned(), line, message };
    if content.len() > FILE_LIMIT {
        return Err(failed(1, format!("the file is larger than {FILE_LIMIT} bytes; it is no profile")));
    }
    for (number, line) in (1_u32..).zip(lines(content)) {
        checked(line)
            .and_then(|line| parser.line(number, line))
            .map_err(|message| failed(number, message))?;
    }
    parser.finish().map_err(|message| failed(1, message))
}

/// Lines as Python's text mode splits them: at `\n`, `\r\n` and `\r`.
fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(content);
    std::iter::from_fn(move || {
        let all = rest.filter(|all| !all.is_empty())?;
        let Some(end) = all.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            rest = None;
            return Some(all);
        };
        let width = if all[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&all[end + width..]);
        Some(&all[..end])
    })
}

fn checked(line: &[u8]) -> Result<&str, String> {
    if line.len() > LINE_LIMIT {
        return Err(format!("the line is longer than {LINE_LIMIT} bytes; split it"));
    }
    if line.contains(&0) {
        return Err("there is a NUL byte in the line; remove it".to_owned());
    }
    std::str::from_utf8(line).map_err(|_| "the line is not UTF-8; save the file as UTF-8".to_owned())
}

/// A section while it is read: its entries' lines, and where each key is.
struct Open {
    name: String,
    line: u32,
    entries: Vec<(String, Option<Vec<String>>, u32)>,
    index: HashMap<String, usize>,
}

impl Open {
    fn new(name: &str, line: u32) -> Self {
        Self { name: name.to_owned(), line, entries: Vec::new(), index: HashMap::new() }
    }

    /// A repeated key keeps its place and takes the new value.
    fn set(&mut self, key: &str, value: Option<String>, line: u32) -> usize {
        let entry = (key.to_owned(), value.map(|value| vec![value]), line);
        if let Some(at) = self.index.get(key).copied() {
            self.entries[at] = entry;
            return at;
        }
        self.entries.push(entry);
        self.index.insert(key.to_owned(), self.entries.len() - 1);
        self.entries.len() - 1
    }
}

struct Parser {
    dialect: Dialect,
    /// The first is `[DEFAULT]`.
    sections: Vec<Open>,
    names: HashMap<String, usize>,
    section: Option<usize>,
    /// Which entry of the section a continuation line would belong to.
    entry: Option<usize>,
    indent: usize,
}

impl Parser {
    fn new(dialect: Dialect) -> Self {
        let mut parser = Self {
            dialect,
            sections: vec![Open::new("DEFAULT", 0)],
            names: HashMap::from([("DEFAULT".to_owned(), 0)]),
            section: None,
            entry: None,
            indent: 0,
        };
        if dialect == Dialect::Headerless {
            parser.open("", 0);
        }
        parser
    }

    fn open(&mut self, name: &str, line: u32) {
        let next = self.sections.len();
        let at = *self.names.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.sections.push(Open::new(name, line));
        }
        self.section = Some(at);
        self.entry = None;
    }

    fn line(&mut self, number: u32, line: &str) -> Result<(), String> {
        let comment = comment_start(line);
        let value = line[..comment.unwrap_or(line.len())].trim_matches(is_space);
        if value.is_empty() {
            // Only a line that is really empty belongs to a value that goes on below it.
            if comment.is_none()
                && let Some(text) = self.current()
            {
                text.push(String::new());
            }
            return Ok(());
        }
        let indent = line.chars().take_while(|letter| is_space(*letter)).count();
        if indent > self.indent && self.entry.is_some() {
            let Some(text) = self.current() else {
                return Err("this line continues a key that has no value; indent it less".to_owned());
            };
            text.push(value.to_owned());
            return Ok(());
        }
        self.indent = indent;
        if let Some(name) = header(value) {
            self.open(name, number);
            return Ok(());
        }
        self.option(number, value)
    }

    /// The text lines of the value that is being read.
    fn current(&mut self) -> Option<&mut Vec<String>> {
        self.sections.get_mut(self.section?)?.entries.get_mut(self.entry?)?.1.as_mut()
    }

    fn option(&mut self, number: u32, text: &str) -> Result<(), String> {
        let section = self.section.and_then(|at| self.sections.get_mut(at));
        let Some(section) = section else {
            return Err("this line stands before the first [section]".to_owned());
        };
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => {
                (key.trim_end_matches(is_space), Some(value.trim_matches(is_space).to_owned()))
            }
            None if self.dialect == Dialect::Headerless => (text, None),
            None => return Err("neither a [section] nor key=value".to_owned()),
        };
        if key.is_empty() {
            return Err("there is no key before `=`".to_owned());
        }
        self.entry = Some(section.set(key, value, number));
        Ok(())
    }

    fn finish(self) -> Result<Ini, String> {
        let mut sections = self.sections.into_iter().map(|open| {
            let join = |lines: Vec<String>| lines.join("\n").trim_end_matches(is_space).to_owned();
            let close = |(key, value, line): (String, Option<Vec<String>>, u32)| Entry {
                key,
                value: value.map(join),
                line,
            };
            let entries: Vec<Entry> = open.entries.into_iter().map(close).collect();
            (Section { name: open.name, line: open.line, entries }, open.index)
        });
        let defaults = sections.next().map(|(section, _)| section.entries).unwrap_or_default();
        let mut count = 0;
        let mut ini = Ini::default();
        for (mut section, index) in sections {
            count += section.entries.len() + defaults.len();
            if count > ENTRY_LIMIT {
                return Err(format!("there are more than {ENTRY_LIMIT} options; it is no profile"));
            }
            section.entries.extend(defaults.iter().filter(|entry| !index.contains_key(&entry.key)).cloned());
            ini.sections.push(section);
        }
        Ok(ini)
    }
}

/// Where a comment starts: `#` at the start or after white space, or a whole line of `#` or `;`.
fn comment_start(line: &str) -> Option<usize> {
    if line.trim_start_matches(is_space).starts_with(['#', ';']) {
        return Some(0);
    }
    let mut before = None;
    line.char_indices().find_map(|(at, letter)| {
        let starts = letter == '#' && before.is_none_or(is_space);
        before = Some(letter);
        starts.then_some(at)
    })
}

/// The name of a section: everything up to the last bracket, whatever follows it.
fn header(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    let name = &inside[..inside.rfind(']')?];
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        let ini = match parse("t", text.as_bytes(), Dialect::Sections) {
            Ok(ini) => ini,
            Err(error) => return error.to_string(),
        };
        let entry = |entry: &Entry| {
            format!("{}@{}={:?}", entry.key, entry.line, entry.value.as_deref().unwrap_or("-"))
        };
        let section = |section: &Section| {
            format!("[{}]{}", section.name, section.entries.iter().map(entry).collect::<Vec<_>>().join(" "))
        };
        ini.sections.iter().map(section).collect()
    }

    #[test]
    fn values_as_configparser_reads_them() {
        for (text, wanted) in [
            ("[s]\na=1 #c\nb=1#c\n", r#"[s]a@2="1" b@3="1#c""#),
            ("[s]\nc=\"x # y\"\nd=x ; y\n", r#"[s]c@2="\"x" d@3="x ; y""#),
            ("[s]\na:b=3\nh=a=b\nf=\ng = %(x)s\r\n", r#"[s]a:b@2="3" h@3="a=b" f@4="" g@5="%(x)s""#),
            ("[s]\na=1\n  2\n\n  3\n\nb=4", r#"[s]a@2="1\n2\n\n3" b@7="4""#),
            ("[s]\na=1\n  # not part\n  2\n", r#"[s]a@2="1\n2""#),
            ("[s]\na=1\nA=2\na=3\n[t]\nx=1\n[s]\nb=2\n", r#"[s]a@4="3" A@3="2" b@8="2"[t]x@6="1""#),
            ("[DEFAULT]\nd=1\na=9\n[s]\na=1\n", r#"[s]a@5="1" d@2="1""#),
            ("[a][b] junk\nx=1\n", r#"[a][b]x@2="1""#),
            ("[s]\r\na=1\rb=2\n", r#"[s]a@2="1" b@3="2""#),
            ("; c\n# d\n\n[s]\n  a=1\n  b=2\n", r#"[s]a@5="1" b@6="2""#),
            ("", ""),
        ] {
            assert_eq!(shown(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        for (text, wanted) in [
            ("[s]\nno value\n", "t:2: neither a [section] nor key=value"),
            ("x=1\n[s]\n", "t:1: this line stands before the first [section]"),
            ("\u{feff}[s]\n", "t:1: this line stands before the first [section]"),
            ("[s]\n=1\n", "t:2: there is no key before `=`"),
            ("[]\n", "t:1: this line stands before the first [section]"),
            ("[s]\na=\0\n", "t:2: there is a NUL byte in the line; remove it"),
        ] {
            assert_eq!(shown(text), wanted, "{text:?}");
        }
        assert_eq!(
            parse("t", b"[s]\na=\xff\n", Dialect::Sections).unwrap_err().to_string(),
            "t:2: the line is not UTF-8; save the file as UTF-8"
        );
        let long = format!("[s]\na={}\n", "x".repeat(LINE_LIMIT));
        assert!(shown(&long).starts_with("t:2: the line is longer"));
        assert!(shown(&"x".repeat(FILE_LIMIT + 1)).starts_with("t:1: the file is larger"));
    }

    #[test]
    fn defaults_cannot_multiply_without_end() {
        let mut text = "[DEFAULT]\n".to_owned();
        (0..5_000).for_each(|number| text.push_str(&format!("k{number}=1\n")));
        (0..5_000).for_each(|number| text.push_str(&format!("[s{number}]\n")));
        assert!(shown(&text).contains("more than"));
    }

    #[test]
    fn headerless_files_take_keys_alone() {
        let ini = parse("t", b"a=1\nflag\n[x]\nb=2\n", Dialect::Headerless).unwrap();
        assert_eq!(ini.sections[0].value("a"), Some("1"));
        assert_eq!(ini.sections[0].entry("flag").unwrap().value, None);
        assert_eq!(ini.section("x").unwrap().value("b"), Some("2"));
        let error = parse("t", b"flag\n more\n", Dialect::Headerless).unwrap_err();
        assert_eq!(error.line, 2);
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(content in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse("t", &content, Dialect::Headerless);
        }

        #[test]
        fn anything_like_a_profile_is_read_or_refused(text in r"([\[\]=#; \t\n\r$\{\}a-c]|DEFAULT){0,200}") {
            for dialect in [Dialect::Sections, Dialect::Headerless] {
                if let Ok(ini) = parse("t", text.as_bytes(), dialect) {
                    for entry in ini.sections.iter().flat_map(|section| &section.entries) {
                        prop_assert!(!entry.key.is_empty() && entry.line > 0);
                    }
                }
            }
        }
    }
}
