//! A regular expression with one group, matched line by line.

use regex_automata::{Input, meta::Regex, util::syntax};

use super::Choice;

/// Largest automaton, in bytes: some thousand times what a pattern for a number needs.
const AUTOMATON: usize = 1024 * 1024;
/// Bytes that may be looked at to find the last match of one line. One search takes time in proportion to the line's
/// rest, and a line can have as many matches as bytes.
const WORK: usize = 256 * 1024 * 1024;

/// Where a number stands in a text.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles `text`. It must have one group; `(?:…)` does not count.
    pub fn parse(text: &str) -> Result<Self, String> {
        let regex = Regex::builder()
            .configure(Regex::config().nfa_size_limit(Some(AUTOMATON)).utf8_empty(false))
            .syntax(syntax::Config::new().utf8(false).nest_limit(50))
            .build(text)
            .map_err(|error| match error.syntax_error() {
                Some(error) => format!("the regular expression is wrong: {error}"),
                None => format!("the regular expression {text:?} is too large"),
            })?;
        match regex.captures_len() {
            2 => Ok(Self { text: text.to_owned(), regex }),
            groups => Err(format!(
                "{text:?} has {} groups and needs one, around the number; write (?:…) for the others",
                groups.saturating_sub(1)
            )),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn name(&self) -> String {
        self.text.clone()
    }

    /// What the group is in the last match of the last line that has one.
    pub(super) fn last(&self, output: &[u8]) -> Result<Option<String>, String> {
        // A progress display ends its lines with a carriage return.
        let lines = output.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
        for line in lines {
            let limit = WORK / line.len().max(1);
            let mut found = None;
            let mut at = 0;
            let mut count = 0;
            let mut captures = self.regex.create_captures();
            while at <= line.len() {
                self.regex.search_captures(&Input::new(line).range(at..), &mut captures);
                let Some(matched) = captures.get_match() else { break };
                found = captures.get_group(1).or(found);
                at = matched.end().max(at + usize::from(matched.is_empty()));
                count += 1;
                if count > limit {
                    return Err(format!("{} matches too often in a line of {} bytes", self.text, line.len()));
                }
            }
            if let Some(span) = found {
                let text = line.get(span.range()).unwrap_or_default();
                return Ok(Some(String::from_utf8_lossy(text).into_owned()));
            }
        }
        Ok(None)
    }
}

impl From<Pattern> for Choice {
    fn from(pattern: Pattern) -> Self {
        Self::Pattern(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(pattern: &str, output: &[u8]) -> Option<String> {
        Pattern::parse(pattern).unwrap().last(output).unwrap()
    }

    #[test]
    fn one_group_is_needed() {
        let why = |text: &str| Pattern::parse(text).unwrap_err();
        assert!(why("a(b)(c)").contains("has 2 groups and needs one"));
        assert!(why("a(?:b)").contains("has 0 groups"));
        assert!(why("a(b").contains("wrong") && why("a(b)(?=c)").contains("wrong"));
        assert!(
            why("(a{1000}{1000}{1000})").contains("too large") || why("(a{1000}{1000})").contains("wrong")
        );
    }

    #[test]
    fn the_last_match_of_the_last_line() {
        assert_eq!(last(r"(\d+)", b"1 2\n3 45\nnone\n").as_deref(), Some("45"));
        assert_eq!(last(r"^x=(.*)$", b"x=1\nx=2\r\ny=3").as_deref(), Some("2"));
        assert_eq!(last(r"(\d*)", b"").as_deref(), Some(""));
        assert_eq!(last(r"a=(\d+)|b", b"a=1 b").as_deref(), Some("1"));
        assert_eq!(last(r"a=(\d+)", b"\xff a=7 \xfe").as_deref(), Some("7"));
        assert_eq!(last(r"z(\d)", b"a\nb"), None);
    }

    #[test]
    fn hostile_output_ends_soon() {
        let output = vec![b'a'; 16 * 1024 * 1024];
        assert_eq!(last("(a*)*b", b""), None);
        assert_eq!(last(r"((?:a+a+)+b)", &output), None);
        let error = Pattern::parse(r"([a-z])").unwrap().last(&output).unwrap_err();
        assert!(error.contains("too often"), "{error}");
    }
}
