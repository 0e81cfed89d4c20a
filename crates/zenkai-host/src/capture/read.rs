//! From text to a capture. The text may come from a stranger: everything is checked, nothing is guessed.

use std::collections::BTreeMap;

use super::{Answer, Capture, CaptureError};
use crate::{
    DirEntry, EntryKind, FILE_SIZE_LIMIT, Query, Reply,
    errno::errno_from_name,
    query::{parse_number, unescape},
};

/// More text than any machine gives: 10 000 CPUs come to about 100 MiB.
const TEXT_SIZE_LIMIT: usize = 512 << 20;

/// Lines that belong to the record above them start with one of these.
const BODY_MARKS: [char; 6] = ['|', '~', ':', '#', '=', '-'];

type Lines<'t> = std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'t>>>;

pub(super) fn parse(text: &str) -> Result<Capture, CaptureError> {
    let fail = |line: usize, problem: &str| CaptureError { line: line + 1, problem: problem.to_owned() };
    if text.len() > TEXT_SIZE_LIMIT {
        return Err(fail(0, "this file is too large to be a capture"));
    }
    let mut lines = text.lines().enumerate().peekable();
    let may_be_cut = match lines.next() {
        Some((_, "zenkai-capture 2")) => false,
        Some((_, "zenkai-capture 1")) => true,
        Some((_, line)) if line.starts_with("zenkai-capture ") => {
            return Err(fail(0, "this capture was made by a newer zenkai; update zenkai to read it"));
        }
        _ => return Err(fail(0, "this is no capture: the first line must be `zenkai-capture 2`")),
    };
    // What we write ends with a line break. Without one a value may have lost digits, and nothing else would tell.
    if !text.ends_with('\n') {
        return Err(fail(
            text.lines().count().saturating_sub(1),
            "the file ends within this line: it was cut short",
        ));
    }
    let mut growing = Growing::default();
    let mut ended = may_be_cut;
    while let Some((number, line)) = lines.next() {
        if line.is_empty() {
            continue;
        }
        if let (Some(count), false) = (line.strip_prefix("end "), may_be_cut) {
            end(count, number).map_err(|problem| fail(number, &problem))?;
            ended = true;
            break;
        }
        let body = body(&mut lines);
        growing.line = number;
        record(&mut growing, line, &body)
            .map_err(|(offset, problem)| CaptureError { line: number + 1 + offset, problem })?;
    }
    if !ended {
        return Err(fail(
            text.lines().count().saturating_sub(1),
            "the capture stops before its end: it was cut short",
        ));
    }
    if let Some((number, _)) = lines.find(|(_, line)| !line.is_empty()) {
        return Err(fail(number, "nothing may follow the end of the capture"));
    }
    let capture = growing.finish().map_err(|line| fail(line, "the same thing is recorded twice"))?;
    Ok(Capture { may_be_cut, ..capture })
}

/// The last line says how many lines stand above it.
fn end(count: &str, above: usize) -> Result<(), String> {
    match count.parse::<usize>() {
        Ok(count) if count == above => Ok(()),
        Ok(count) => Err(format!(
            "{above} lines stand above the end and should be {count}: some were lost; write `end {above}` if you took \
             them out yourself"
        )),
        Err(_) => Err("the end needs the number of lines above it".to_owned()),
    }
}

/// A capture in the making. Its answers are put in order at the end, all at once: a capture is sorted, and to look for the
/// place of each would take a third of the time of reading it.
#[derive(Default)]
struct Growing {
    reads: Answers<String, Vec<u8>>,
    lists: Answers<String, Vec<DirEntry>>,
    links: Answers<String, String>,
    queries: Answers<Query, Reply>,
    /// The line of the record, from 0.
    line: usize,
}

/// What was asked, the answer, and the line where it stands.
type Answers<K, V> = Vec<(K, Answer<V>, usize)>;

impl Growing {
    /// The capture; or the first line that answers what was answered before.
    fn finish(self) -> Result<Capture, usize> {
        let mut twice = None;
        let capture = Capture {
            reads: ordered(self.reads, &mut twice),
            lists: ordered(self.lists, &mut twice),
            links: ordered(self.links, &mut twice),
            queries: ordered(self.queries, &mut twice),
            may_be_cut: false,
        };
        twice.map_or(Ok(capture), Err)
    }
}

fn ordered<K: Ord, V>(mut answers: Answers<K, V>, twice: &mut Option<usize>) -> BTreeMap<K, Answer<V>> {
    answers.sort_by(|(a, _, above), (b, _, below)| a.cmp(b).then(above.cmp(below)));
    for pair in answers.windows(2) {
        if let [(a, ..), (b, _, line)] = pair
            && a == b
        {
            *twice = Some(twice.map_or(*line, |other| other.min(*line)));
        }
    }
    answers.into_iter().map(|(key, answer, _)| (key, answer)).collect()
}

fn body<'t>(lines: &mut Lines<'t>) -> Vec<&'t str> {
    let mut body = Vec::new();
    while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with(BODY_MARKS)) {
        body.push(line);
    }
    body
}

/// A problem and how many lines below the record's head it is.
type Problem = (usize, String);

fn record(growing: &mut Growing, head: &str, body: &[&str]) -> Result<(), Problem> {
    let at = growing.line;
    let here = |problem: &str| (0, problem.to_owned());
    let (verb, rest) = head.split_once(' ').ok_or_else(|| here("a record needs a verb and a name"))?;
    match verb {
        "read" => {
            let (name, content) = match assigned(rest) {
                Some((name, value)) if body.is_empty() => (name, format!("{value}\n")),
                Some(_) => return Err((1, "a one-line value cannot go on".to_owned())),
                None => (rest, text_body(body)?),
            };
            growing.reads.push((path(name)?, Ok(content.into_bytes()), at));
        }
        "bytes" => growing.reads.push((path(rest)?, Ok(byte_body(body)?), at)),
        "list" => growing.lists.push((path(rest)?, Ok(list_body(body)?), at)),
        "link" => {
            let (name, target) = assigned(rest).ok_or_else(|| here("a link is written `link FROM = TO`"))?;
            growing.links.push((path(name)?, Ok(path(target)?), at));
        }
        "query" => {
            let query = rest.parse().map_err(|error| (0, format!("{error}")))?;
            growing.queries.push((query, Ok(reply_body(body)?), at));
        }
        "fail-read" | "fail-list" | "fail-link" | "fail-query" => {
            let (name, error) =
                rest.rsplit_once(' ').ok_or_else(|| here("a failure needs a name and an error"))?;
            let number = errno_from_name(error).ok_or_else(|| here("unknown error name"))?;
            match verb {
                "fail-read" => growing.reads.push((path(name)?, Err(number), at)),
                "fail-list" => growing.lists.push((path(name)?, Err(number), at)),
                "fail-link" => growing.links.push((path(name)?, Err(number), at)),
                _ => {
                    let query = name.parse().map_err(|error| (0, format!("{error}")))?;
                    growing.queries.push((query, Err(number), at));
                }
            }
        }
        _ => return Err(here("unknown record; was the file cut or edited?")),
    }
    Ok(())
}

/// Splits at the first ` = `, looking for one byte at a time only: that is done many bytes at once.
fn assigned(text: &str) -> Option<(&str, &str)> {
    let mut places = text.match_indices('=').map(|(place, _)| place);
    places.find_map(|place| {
        let (name, value) = (text.get(..place)?, text.get(place + 1..)?);
        Some((name.strip_suffix(' ')?, value.strip_prefix(' ')?))
    })
}

fn path(name: &str) -> Result<String, Problem> {
    match unescape(name) {
        Some(path) if path.starts_with('/') => Ok(path),
        _ => Err((0, format!("`{name}` is no absolute path"))),
    }
}

fn text_body(body: &[&str]) -> Result<String, Problem> {
    let mut text = String::new();
    for (index, line) in body.iter().enumerate() {
        if let Some(line) = line.strip_prefix('|') {
            text.push_str(line);
            text.push('\n');
        } else if let (Some(line), true) = (line.strip_prefix('~'), index + 1 == body.len()) {
            text.push_str(line);
        } else {
            return Err((index + 1, "expected a line of text".to_owned()));
        }
    }
    Ok(text)
}

fn byte_body(body: &[&str]) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    for (index, line) in body.iter().enumerate() {
        let problem = || (index + 1, "expected hexadecimal bytes".to_owned());
        let digits = line.strip_prefix(':').filter(|line| line.is_ascii()).ok_or_else(problem)?;
        if digits.len() % 2 != 0 || bytes.len() > FILE_SIZE_LIMIT {
            return Err(problem());
        }
        for start in (0..digits.len()).step_by(2) {
            bytes.push(u8::from_str_radix(&digits[start..start + 2], 16).map_err(|_| problem())?);
        }
    }
    Ok(bytes)
}

fn list_body(body: &[&str]) -> Result<Vec<DirEntry>, Problem> {
    let mut entries = Vec::with_capacity(body.len());
    for (index, line) in body.iter().enumerate() {
        let problem = || (index + 1, "expected `-d`, `-l` or `-f` and a name".to_owned());
        let (kind, name) = line.split_once(' ').ok_or_else(problem)?;
        let kind = match kind {
            "-d" => EntryKind::Directory,
            "-l" => EntryKind::Link,
            "-f" => EntryKind::File,
            _ => return Err(problem()),
        };
        // A name with a slash would let a hostile capture steer path building out of its directory.
        let name =
            unescape(name).filter(|name| !name.is_empty() && !name.contains('/')).ok_or_else(problem)?;
        entries.push(DirEntry { name, kind });
    }
    entries.sort();
    Ok(entries)
}

fn reply_body(body: &[&str]) -> Result<Reply, Problem> {
    let Some((first, rest)) = body.split_first() else { return Ok(Reply::Text(String::new())) };
    if let Some(numbers) = first.strip_prefix('#') {
        let problem = || (1, "expected numbers".to_owned());
        let numbers = numbers.split(' ').filter(|word| !word.is_empty());
        let numbers: Option<Vec<u64>> = numbers.map(parse_number).collect();
        return if rest.is_empty() {
            Ok(Reply::Numbers(numbers.ok_or_else(problem)?))
        } else {
            Err(problem())
        };
    }
    match *first {
        ":" => byte_body(rest).map(Reply::Bytes).map_err(|(offset, problem)| (offset + 1, problem)),
        "=" => {
            let mut pairs = Vec::with_capacity(rest.len());
            for (index, line) in rest.iter().enumerate() {
                let pair = line.strip_prefix('=').and_then(|line| line.split_once(' '));
                let pair = pair.and_then(|(name, value)| Some((unescape(name)?, parse_number(value)?)));
                pairs.push(pair.ok_or_else(|| (index + 2, "expected `=name number`".to_owned()))?);
            }
            Ok(Reply::Named(pairs))
        }
        _ => text_body(body).map(Reply::Text),
    }
}
