//! A machine made of text: a replayed capture, or a few lines in a test.

use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::io::Errno;

use crate::{
    Act, Capture, DirEntry, EntryKind, Finished, Host, Knob, NotRecorded, Query, Reply, TunableHost, Value,
    capture::answer,
};

/// Links are followed this often before the answer is `ELOOP`, like the kernel's own limit (`MAXSYMLINKS`).
const LINK_LIMIT: usize = 40;

/// How a fake attribute reacts to a write, in the ways kernel `store()` functions do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreRule {
    /// Refuses every value with this errno.
    Reject(i32),
    /// Accepts these values only (`EINVAL` otherwise).
    Accept(Vec<String>),
    /// Shows all choices with the chosen one in brackets, like `transparent_hugepage/enabled`.
    Select,
    /// Keeps a number within these bounds.
    Clamp(i64, i64),
    /// Accepting a value also changes another file, like `vm.dirty_bytes` zeroing `vm.dirty_ratio`.
    Couple {
        /// The other file.
        path: String,
        /// Its content afterwards, without newline.
        value: String,
    },
    /// The attribute goes away when written, like a CPU's files when it is taken offline.
    Vanish,
    /// The n-th write, counted from 1, fails with this errno; others are kept.
    FailOnWrite(usize, i32),
}

#[derive(Debug, Default)]
struct State {
    capture: Capture,
    rules: BTreeMap<String, StoreRule>,
    writes: BTreeMap<String, usize>,
    acts: Vec<Act>,
}

/// A machine that exists only in memory. It can be written to, and reacts as its [`StoreRule`]s say.
#[derive(Debug, Default)]
pub struct FakeHost {
    state: Mutex<State>,
    /// A world written out by hand is complete: what is not in it does not exist (`ENOENT`), and directories
    /// follow from the files. A capture is not: what is not in it was never looked at.
    complete: bool,
}

impl FakeHost {
    /// Replays a capture.
    pub fn from_capture(capture: Capture) -> Self {
        Self { state: Mutex::new(State { capture, ..State::default() }), complete: false }
    }

    /// A complete small world from `(path, content)` pairs. Content is given as the kernel would: with its
    /// newline.
    pub fn new(files: &[(&str, &str)]) -> Self {
        files.iter().fold(Self { complete: true, ..Self::default() }, |host, (path, content)| {
            host.file(path, content)
        })
    }

    /// Adds or replaces a file.
    #[must_use]
    pub fn file(self, path: &str, content: &str) -> Self {
        self.bytes(path, content.as_bytes())
    }

    /// Adds or replaces a file that is no text.
    #[must_use]
    pub fn bytes(self, path: &str, content: &[u8]) -> Self {
        self.state().capture.record_read(path, &Ok(content.to_vec()));
        self
    }

    /// Makes reading a file fail with an errno.
    #[must_use]
    pub fn unreadable(self, path: &str, errno: i32) -> Self {
        self.state().capture.record_read(path, &Err(io::Error::from_raw_os_error(errno)));
        self
    }

    /// Adds a link to an absolute path.
    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.state().capture.record_link(path, &Ok(target.to_owned()));
        self
    }

    /// Adds the answer to a query.
    #[must_use]
    pub fn reply(self, query: &Query, reply: Reply) -> Self {
        self.state().capture.record_query(query, &Ok(reply));
        self
    }

    /// Makes an attribute react to writes.
    #[must_use]
    pub fn rule(self, path: &str, rule: StoreRule) -> Self {
        self.state().rules.insert(path.to_owned(), rule);
        self
    }

    /// What was run so far, in order.
    pub fn acts(&self) -> Vec<Act> {
        self.state().acts.clone()
    }

    /// How often each file was written to.
    pub fn writes(&self) -> BTreeMap<String, usize> {
        self.state().writes.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In a complete world: the path with every link on the way replaced.
    fn follow(&self, path: &str) -> io::Result<String> {
        let state = self.state();
        let mut path = path.to_owned();
        for _ in 0..LINK_LIMIT {
            let is_prefix = |link: &str| {
                path.strip_prefix(link).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let Some((link, Ok(target))) = state.capture.links.iter().find(|(link, _)| is_prefix(link))
            else {
                return Ok(path);
            };
            path = format!("{target}{}", &path[link.len()..]);
        }
        Err(Errno::LOOP.into())
    }

    fn known_or_absent<T>(&self, result: io::Result<T>) -> io::Result<T> {
        match result {
            Err(error) if self.complete && NotRecorded::is(&error) => Err(Errno::NOENT.into()),
            other => other,
        }
    }

    /// The children of a directory in a complete world.
    fn derived_list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        let dir = self.follow(dir)?;
        let prefix = format!("{}/", dir.trim_end_matches('/'));
        let state = self.state();
        let mut entries: BTreeMap<String, EntryKind> = BTreeMap::new();
        for path in state.capture.reads.keys() {
            let Some(rest) = path.strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                Some((name, _)) => entries.insert(name.to_owned(), EntryKind::Directory),
                None => entries.insert(rest.to_owned(), EntryKind::File),
            };
        }
        for path in state.capture.links.keys() {
            let Some(rest) = path.strip_prefix(&prefix) else { continue };
            let (name, kind) = rest
                .split_once('/')
                .map_or((rest, EntryKind::Link), |(name, _)| (name, EntryKind::Directory));
            entries.insert(name.to_owned(), kind);
        }
        if entries.is_empty() {
            return Err(Errno::NOENT.into());
        }
        Ok(entries.into_iter().map(|(name, kind)| DirEntry { name, kind }).collect())
    }
}

impl Host for FakeHost {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let path = if self.complete { self.follow(path)? } else { path.to_owned() };
        self.known_or_absent(answer(&self.state().capture.reads, path.as_str()))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        if self.complete { self.derived_list(dir) } else { answer(&self.state().capture.lists, dir) }
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        if !self.complete {
            return answer(&self.state().capture.links, path);
        }
        let target = self.follow(path)?;
        if self.state().capture.reads.contains_key(&target) || self.derived_list(&target).is_ok() {
            Ok(target)
        } else {
            Err(Errno::NOENT.into())
        }
    }

    fn query(&self, query: &Query) -> io::Result<Reply> {
        self.known_or_absent(answer(&self.state().capture.queries, query))
    }
}

impl TunableHost for FakeHost {
    fn set(&self, knob: &Knob, value: &Value) -> io::Result<()> {
        let Some(path) = knob.path() else {
            let reply = match value {
                Value::Text(text) => Ok(Reply::Text(text.clone())),
                Value::Absent => Err(Errno::NOENT.into()),
            };
            self.state().capture.record_query(&Query::Knob(knob.clone()), &reply);
            return Ok(());
        };
        let old = match self.read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && knob.may_be_absent() => Vec::new(),
            result => result?,
        };
        let mut state = self.state();
        let writes = state.writes.entry(path.clone()).or_default();
        *writes += 1;
        let nth = *writes;
        let rule = state.rules.get(&path).cloned();
        if let Some(StoreRule::FailOnWrite(n, errno)) = rule
            && n == nth
        {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if let Knob::File(_) = knob {
            let content = value.text().map(|text| text.as_bytes().to_vec());
            state.capture.record_read(&path, &content.ok_or_else(|| Errno::NOENT.into()));
            return Ok(());
        }
        let value = value.text().ok_or(Errno::INVAL)?;
        let old = String::from_utf8_lossy(&old);
        state.store(path, old.trim_end_matches('\n'), value, rule)
    }

    /// Nothing is run in a world of text: it is only written down, see [`FakeHost::acts`].
    fn run(&self, act: &Act) -> io::Result<Finished> {
        self.state().acts.push(act.clone());
        Ok(Finished { code: 0, output: String::new() })
    }
}

impl State {
    /// What a `store()` function of the kernel does with the value.
    fn store(&mut self, path: String, old: &str, value: &str, rule: Option<StoreRule>) -> io::Result<()> {
        let stored = match rule {
            Some(StoreRule::Reject(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(StoreRule::Accept(choices)) if choices.iter().all(|choice| choice != value) => {
                return Err(Errno::INVAL.into());
            }
            None | Some(StoreRule::FailOnWrite(..) | StoreRule::Accept(_)) => value.to_owned(),
            Some(StoreRule::Select) => select(old, value)?,
            Some(StoreRule::Clamp(low, high)) => {
                let number: i64 = value.parse().map_err(|_| Errno::INVAL)?;
                number.clamp(low, high).to_string()
            }
            Some(StoreRule::Couple { path: other, value: coupled }) => {
                self.capture.reads.insert(other, Ok(format!("{coupled}\n").into_bytes()));
                value.to_owned()
            }
            Some(StoreRule::Vanish) => {
                self.capture.reads.insert(path, Err(Errno::NOENT.raw_os_error()));
                return Ok(());
            }
        };
        self.capture.reads.insert(path, Ok(format!("{stored}\n").into_bytes()));
        Ok(())
    }
}

/// `always [madvise] never` with another choice marked.
fn select(shown: &str, value: &str) -> io::Result<String> {
    let choices: Vec<&str> = shown.split(' ').map(|word| word.trim_matches(['[', ']'])).collect();
    if !choices.contains(&value) {
        return Err(Errno::INVAL.into());
    }
    let mark = |choice: &&str| if *choice == value { format!("[{choice}]") } else { (*choice).to_owned() };
    Ok(choices.iter().map(mark).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_complete_world_follows_links_and_derives_directories() {
        let host = FakeHost::new(&[("/sys/devices/pci0/net/eth0/mtu", "1500\n")])
            .link("/sys/class/net/eth0", "/sys/devices/pci0/net/eth0");
        assert_eq!(host.read("/sys/class/net/eth0/mtu").unwrap(), b"1500\n");
        assert_eq!(host.list("/sys/class/net").unwrap()[0].kind, EntryKind::Link);
        assert_eq!(host.resolve("/sys/class/net/eth0").unwrap(), "/sys/devices/pci0/net/eth0");
        assert_eq!(host.read("/sys/class/net/eth1/mtu").unwrap_err().kind(), io::ErrorKind::NotFound);
        let cyclic = FakeHost::new(&[]).link("/a", "/b").link("/b", "/a");
        assert_eq!(cyclic.read("/a/x").unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    }

    #[test]
    fn a_capture_says_when_it_does_not_know() {
        let host = FakeHost::from_capture(Capture::default());
        assert!(NotRecorded::is(&host.read("/proc/stat").unwrap_err()));
        assert!(NotRecorded::is(&host.list("/proc").unwrap_err()));
    }

    #[test]
    fn writes_react_like_the_kernel() {
        let errno = Errno::INVAL.raw_os_error();
        let attribute = |path: &str| Knob::Attribute(path.to_owned());
        let host = FakeHost::new(&[
            ("/thp", "always [madvise] never\n"),
            ("/dirty_bytes", "0\n"),
            ("/dirty_ratio", "20\n"),
            ("/clamped", "5\n"),
            ("/fails", "1\n"),
            ("/cpu1/max", "1\n"),
        ])
        .rule("/thp", StoreRule::Select)
        .rule("/dirty_bytes", StoreRule::Couple { path: "/dirty_ratio".into(), value: "0".into() })
        .rule("/clamped", StoreRule::Clamp(1, 10))
        .rule("/fails", StoreRule::FailOnWrite(2, errno))
        .rule("/cpu1/max", StoreRule::Vanish);
        host.set(&attribute("/thp"), &"never".into()).unwrap();
        assert_eq!(value(&host, &attribute("/thp")).unwrap(), "never".into());
        assert_eq!(host.set(&attribute("/thp"), &"maybe".into()).unwrap_err().raw_os_error(), Some(errno));
        host.set(&attribute("/dirty_bytes"), &"4096".into()).unwrap();
        assert_eq!(value(&host, &attribute("/dirty_ratio")).unwrap(), "0".into());
        host.set(&attribute("/clamped"), &"99".into()).unwrap();
        assert_eq!(value(&host, &attribute("/clamped")).unwrap(), "10".into());
        host.set(&attribute("/fails"), &"2".into()).unwrap();
        assert_eq!(host.set(&attribute("/fails"), &"3".into()).unwrap_err().raw_os_error(), Some(errno));
        host.set(&attribute("/cpu1/max"), &"0".into()).unwrap();
        assert_eq!(value(&host, &attribute("/cpu1/max")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(host.set(&attribute("/missing"), &"1".into()).is_err());
    }
}
