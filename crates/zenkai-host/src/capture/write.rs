//! From a capture to its text.

use std::fmt::{Display, Write as _};
use std::io;

use super::{Answer, Capture};
use crate::{DirEntry, EntryKind, Reply, errno_name, query::escape};

/// Bytes per line of hexadecimal.
const BYTES_PER_LINE: usize = 32;

pub(super) fn to_text(capture: &Capture) -> String {
    let mut out = String::from("zenkai-capture 2\n");
    for (path, answer) in &capture.reads {
        entry(&mut out, "read", &escape(path), answer, |out, content| read(out, path, content));
    }
    for (path, answer) in &capture.lists {
        entry(&mut out, "list", &escape(path), answer, |out, entries| list(out, path, entries));
    }
    for (path, answer) in &capture.links {
        entry(&mut out, "link", &escape(path), answer, |out, target| {
            push(out, format_args!("link {} = {}", escape(path), escape(target)));
        });
    }
    for (query, answer) in &capture.queries {
        entry(&mut out, "query", query, answer, |out, reply| {
            push(out, format_args!("query {query}"));
            write_reply(out, reply);
        });
    }
    let lines = out.lines().count();
    push(&mut out, format_args!("end {lines}"));
    out
}

fn entry<T>(
    out: &mut String,
    verb: &str,
    name: &dyn Display,
    answer: &Answer<T>,
    write: impl FnOnce(&mut String, &T),
) {
    match answer {
        Ok(value) => write(out, value),
        Err(number) => {
            let error = errno_name(&io::Error::from_raw_os_error(*number));
            push(out, format_args!("fail-{verb} {name} {error}"));
        }
    }
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{line}");
}

fn read(out: &mut String, path: &str, content: &[u8]) {
    let name = escape(path);
    match std::str::from_utf8(content) {
        Ok(text) if text.chars().all(|letter| letter == '\n' || letter == '\t' || !letter.is_control()) => {
            match text.strip_suffix('\n') {
                Some(line) if !line.contains('\n') => push(out, format_args!("read {name} = {line}")),
                _ => {
                    push(out, format_args!("read {name}"));
                    write_lines(out, text);
                }
            }
        }
        _ => {
            push(out, format_args!("bytes {name}"));
            write_bytes(out, content);
        }
    }
}

fn list(out: &mut String, path: &str, entries: &[DirEntry]) {
    push(out, format_args!("list {}", escape(path)));
    for DirEntry { name, kind } in entries {
        let kind = match kind {
            EntryKind::Directory => 'd',
            EntryKind::Link => 'l',
            EntryKind::File => 'f',
        };
        push(out, format_args!("-{kind} {}", escape(name)));
    }
}

fn write_lines(out: &mut String, text: &str) {
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => push(out, format_args!("|{line}")),
            None => push(out, format_args!("~{line}")),
        }
    }
}

fn write_bytes(out: &mut String, content: &[u8]) {
    for chunk in content.chunks(BYTES_PER_LINE) {
        out.push(':');
        for byte in chunk {
            let _ = write!(out, "{byte:02x}");
        }
        out.push('\n');
    }
}

fn write_reply(out: &mut String, reply: &Reply) {
    match reply {
        Reply::Numbers(numbers) => {
            out.push('#');
            for (index, number) in numbers.iter().enumerate() {
                let _ = write!(out, "{}{number:#x}", if index == 0 { "" } else { " " });
            }
            out.push('\n');
        }
        Reply::Named(pairs) => {
            out.push_str("=\n");
            for (name, value) in pairs {
                push(out, format_args!("={} {value}", escape(name)));
            }
        }
        Reply::Bytes(bytes) => {
            out.push_str(":\n");
            write_bytes(out, bytes);
        }
        Reply::Text(text) => write_lines(out, text),
    }
}
