//! From text to a capture. The text may come from a stranger: everything is checked, nothing is guessed.

use std::collections::BTreeMap;

use super::{Answer, Capture, CaptureError};
use crate::{
    DirEntry, EntryKind, FILE_SIZE_LIMIT, Reply,
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
    match lines.next() {
        Some((_, "zenkai-capture 1")) => {}
        Some((_, line)) if line.starts_with("zenkai-capture ") => {
            return Err(fail(0, "this capture was made by a newer zenkai; update zenkai to read it"));
        }
        _ => return Err(fail(0, "this is no capture: the first line must be `zenkai-capture 1`")),
    }
    // What we write ends with a line break. Without one a value may have lost digits, and nothing else would tell.
    if !text.ends_with('\n') {
        return Err(fail(
            text.lines().count().saturating_sub(1),
            "the file ends within this line: it was cut short",
        ));
    }
    let mut capture = Capture::default();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let body = body(&mut lines);
        record(&mut capture, line, &body)
            .map_err(|(offset, problem)| CaptureError { line: number + 1 + offset, problem })?;
    }
    Ok(capture)
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

fn record(capture: &mut Capture, head: &str, body: &[&str]) -> Result<(), Problem> {
    let here = |problem: &str| (0, problem.to_owned());
    let (verb, rest) = head.split_once(' ').ok_or_else(|| here("a record needs a verb and a name"))?;
    match verb {
        "read" => {
            let (name, content) = match rest.split_once(" = ") {
                Some((name, value)) if body.is_empty() => (name, format!("{value}\n")),
                Some(_) => return Err((1, "a one-line value cannot go on".to_owned())),
                None => (rest, text_body(body)?),
            };
            insert(&mut capture.reads, path(name)?, Ok(content.into_bytes()))
        }
        "bytes" => insert(&mut capture.reads, path(rest)?, Ok(byte_body(body)?)),
        "list" => insert(&mut capture.lists, path(rest)?, Ok(list_body(body)?)),
        "link" => {
            let (name, target) =
                rest.split_once(" = ").ok_or_else(|| here("a link is written `link FROM = TO`"))?;
            insert(&mut capture.links, path(name)?, Ok(path(target)?))
        }
        "query" => {
            let query = rest.parse().map_err(|error| (0, format!("{error}")))?;
            insert(&mut capture.queries, query, Ok(reply_body(body)?))
        }
        "fail-read" | "fail-list" | "fail-link" | "fail-query" => {
            let (name, error) =
                rest.rsplit_once(' ').ok_or_else(|| here("a failure needs a name and an error"))?;
            let number = errno_from_name(error).ok_or_else(|| here("unknown error name"))?;
            match verb {
                "fail-read" => insert(&mut capture.reads, path(name)?, Err(number)),
                "fail-list" => insert(&mut capture.lists, path(name)?, Err(number)),
                "fail-link" => insert(&mut capture.links, path(name)?, Err(number)),
                _ => {
                    let query = name.parse().map_err(|error| (0, format!("{error}")))?;
                    insert(&mut capture.queries, query, Err(number))
                }
            }
        }
        _ => Err(here("unknown record; was the file cut or edited?")),
    }
}

fn insert<K: Ord, V>(map: &mut BTreeMap<K, Answer<V>>, key: K, value: Answer<V>) -> Result<(), Problem> {
    match map.insert(key, value) {
        None => Ok(()),
        Some(_) => Err((0, "the same thing is recorded twice".to_owned())),
    }
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
