//! What was read from a machine, as plain text.
//!
//! A capture is a list of answers, one record each, sorted so that two captures can be compared with `diff`:
//!
//! ```text
//! zenkai-capture 2
//! read /proc/sys/vm/swappiness = 60          content of one line, ending in a newline
//! read /proc/stat                            several lines; `~` marks a last line without a newline
//! |cpu  1 2 3
//! |btime 4
//! bytes /sys/firmware/dmi/tables/DMI         not text: hexadecimal, 32 bytes a line
//! :0018000001020301
//! fail-read /sys/class/net/eth0/speed EINVAL
//! list /sys/class/net                        `d` directory, `l` link, `f` anything else
//! -l eth0
//! link /sys/class/net/eth0 = /sys/devices/virtual/net/eth0
//! query msr 0 0x1a0
//! #0x850089
//! fail-query msr 0 0x1ad EIO
//! end 14                                     the number of lines above
//! ```
//!
//! Names are written with `%XX` for blanks, `=`, `%` and anything unprintable. A reader refuses what it does not
//! understand and names the line: half a machine would be diagnosed wrongly. Version 1 had no last line, so that a
//! capture cut at the end of a line could not be told from a whole one ([`Capture::may_be_cut`]).

mod read;
mod write;

use std::{collections::BTreeMap, io};

use rustix::io::Errno;

use crate::{DirEntry, NotRecorded, Query, Reply, anonymise};

/// An answer or the error number that came instead.
pub(crate) type Answer<T> = Result<T, i32>;

/// Everything that was asked of one machine and what it answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    pub(crate) reads: BTreeMap<String, Answer<Vec<u8>>>,
    pub(crate) lists: BTreeMap<String, Answer<Vec<DirEntry>>>,
    pub(crate) links: BTreeMap<String, Answer<String>>,
    pub(crate) queries: BTreeMap<Query, Answer<Reply>>,
    may_be_cut: bool,
}

/// Why a text is no capture. The line counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct CaptureError {
    /// Where the text could no longer be understood.
    pub line: usize,
    /// What is wrong there, and what to do about it.
    pub problem: String,
}

impl Capture {
    /// Parses the text form.
    pub fn parse(text: &str) -> Result<Self, CaptureError> {
        read::parse(text)
    }

    /// The text form; [`Capture::parse`] gives the same capture back.
    pub fn to_text(&self) -> String {
        write::to_text(self)
    }

    /// A copy without serial numbers, MAC addresses, UUIDs and host names. Each is replaced by a stand-in that
    /// is the same wherever the original was the same, so that what belonged together still does.
    #[must_use]
    pub fn anonymised(self) -> Self {
        anonymise::anonymise(self)
    }

    /// Whether nothing in the text that it was read from tells that it is whole: older captures have no end mark.
    pub fn may_be_cut(&self) -> bool {
        self.may_be_cut
    }

    /// The files that were asked for, by path.
    pub fn read_paths(&self) -> impl Iterator<Item = &str> {
        self.reads.keys().map(String::as_str)
    }

    pub(crate) fn record_read(&mut self, path: &str, result: &io::Result<Vec<u8>>) {
        record(&mut self.reads, path.to_owned(), result);
    }

    pub(crate) fn record_list(&mut self, dir: &str, result: &io::Result<Vec<DirEntry>>) {
        record(&mut self.lists, dir.to_owned(), result);
    }

    pub(crate) fn record_link(&mut self, path: &str, result: &io::Result<String>) {
        record(&mut self.links, path.to_owned(), result);
    }

    pub(crate) fn record_query(&mut self, query: &Query, result: &io::Result<Reply>) {
        record(&mut self.queries, query.clone(), result);
    }
}

fn record<K: Ord, V: Clone>(map: &mut BTreeMap<K, Answer<V>>, key: K, result: &io::Result<V>) {
    let answer = match result {
        Ok(value) => Ok(value.clone()),
        Err(error) if NotRecorded::is(error) => return,
        Err(error) => Err(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())),
    };
    map.insert(key, answer);
}

/// Looks an answer up the way a host gives it.
pub(crate) fn answer<K: Ord + ?Sized, Q: Ord + std::borrow::Borrow<K>, V: Clone>(
    map: &BTreeMap<Q, Answer<V>>,
    key: &K,
) -> io::Result<V> {
    match map.get(key) {
        Some(Ok(value)) => Ok(value.clone()),
        Some(Err(number)) => Err(io::Error::from_raw_os_error(*number)),
        None => Err(NotRecorded::error()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{EntryKind, EthtoolRequest};

    fn sample() -> Capture {
        let mut capture = Capture::default();
        capture.record_read("/a", &Ok(b"60\n".to_vec()));
        capture.record_read("/b", &Ok(b"one\ntwo".to_vec()));
        capture.record_read("/b c", &Ok(Vec::new()));
        capture.record_read("/d", &Ok(vec![0, 255, 7]));
        capture.record_read("/e", &Ok(b" = \n".to_vec()));
        capture.record_read("/f", &Err(Errno::INVAL.into()));
        capture.record_list(
            "/g",
            &Ok(vec![
                DirEntry { name: "x y".into(), kind: EntryKind::Link },
                DirEntry { name: "z".into(), kind: EntryKind::Directory },
            ]),
        );
        capture.record_list("/h", &Err(Errno::NOENT.into()));
        capture.record_link("/g/x y", &Ok("/sys/devices/x".into()));
        capture.record_query(&Query::Machine, &Ok(Reply::Text("x86_64".into())));
        let rings = Query::Ethtool { device: "e".into(), request: EthtoolRequest::Rings };
        capture.record_query(&rings, &Ok(Reply::Named(vec![("rx pending".into(), 256), ("tx".into(), 0)])));
        capture.record_query(&Query::Msr { cpu: 0, register: 1 }, &Err(Errno::IO.into()));
        capture.record_query(&Query::Cpuid { leaf: 0, subleaf: 0 }, &Ok(Reply::Numbers(vec![1, u64::MAX])));
        capture.record_query(
            &Query::Ipmi { netfn: 6, command: 1, data: vec![] },
            &Ok(Reply::Bytes((0..=255).collect())),
        );
        capture
    }

    #[test]
    fn text_round_trips() {
        let text = sample().to_text();
        assert_eq!(Capture::parse(&text).unwrap(), sample(), "{text}");
    }

    #[test]
    fn errors_name_the_line() {
        let cases = [
            ("", 1),
            ("hello\n", 1),
            ("zenkai-capture 3\n", 1),
            ("zenkai-capture 1\nread /a = 1\nwrite /b = 2\n", 3),
            ("zenkai-capture 1\nfail-read /a EWHAT\n", 2),
            ("zenkai-capture 1\nread /a%4\n", 2),
            ("zenkai-capture 1\n|stray\n", 2),
            ("zenkai-capture 1\nbytes /a\n:0g\n", 3),
            ("zenkai-capture 1\nread ../a = 1\n", 2),
            ("zenkai-capture 1\nlist /a\n-q x\n", 3),
            ("zenkai-capture 1\nlist /a\n-d ../x\n", 3),
            ("zenkai-capture 1\nquery teapot\n", 2),
            ("zenkai-capture 1\nread /a = 1\nread /a = 2\n", 3),
            ("zenkai-capture 1\nread /a = 1\nend 2\n", 3),
            ("zenkai-capture 2\n", 1),
            ("zenkai-capture 2\nread /a = 1\n", 2),
            ("zenkai-capture 2\nread /a = 1\nend 3\n", 3),
            ("zenkai-capture 2\nread /a = 1\nend 0x2\n", 3),
            ("zenkai-capture 2\nend 1\n\nread /a = 1\n", 4),
            ("zenkai-capture 2\nread /a\nend 2\n|x\n", 4),
        ];
        for (text, line) in cases {
            assert_eq!(Capture::parse(text).unwrap_err().line, line, "{text:?}");
        }
    }

    #[test]
    fn a_capture_tells_where_it_ends() {
        let text = sample().to_text();
        let lines: Vec<&str> = text.lines().collect();
        for kept in 1..lines.len() {
            let cut = lines[..kept].join("\n") + "\n";
            let error = Capture::parse(&cut).unwrap_err();
            assert!(error.line <= kept, "{error}");
        }
        let old = lines[..lines.len() - 1].join("\n").replacen('2', "1", 1) + "\n";
        let read = Capture::parse(&old).unwrap();
        assert!(read.may_be_cut() && !sample().may_be_cut());
        assert_eq!(read.to_text(), text, "written again it is marked");
    }

    proptest! {
        #[test]
        fn any_content_round_trips(path in "/[ -~]{0,20}", content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut capture = Capture::default();
            capture.record_read(&path, &Ok(content));
            prop_assert_eq!(Capture::parse(&capture.to_text()).unwrap(), capture);
        }

        #[test]
        fn hostile_text_never_panics(text in "(zenkai-capture [12]\n)?([a-z-]{0,9} ?[ -~\n|~:#]{0,60}\n?){0,8}") {
            let _ = Capture::parse(&text);
        }
    }
}
