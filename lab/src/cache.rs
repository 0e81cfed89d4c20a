//! Where the laboratory keeps what it builds: a folder outside the repository, with a folder in it for each build,
//! named after a hash of the sources it was made from. So a stale build is simply a missing one, and checkouts with
//! different sources can share the cache.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::LabError;
use crate::error::Doing;
use crate::hash::Hash;

/// Builds and snapshots that nobody used for this long are removed.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

/// A part of the laboratory that is built on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The stock kernel with a busybox initramfs: about 10 seconds.
    Mini,
    /// A Debian root with systemd, tuned, mdadm, lvm2 and more, and Xen: one or two minutes.
    Full,
    /// A QEMU with a table of model specific registers: about five minutes.
    Qemu,
}

impl Tier {
    /// All tiers, in the order in which they are built.
    pub const ALL: [Self; 3] = [Self::Mini, Self::Full, Self::Qemu];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mini => "mini",
            Self::Full => "full",
            Self::Qemu => "qemu",
        }
    }

    /// The tier of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }

    /// The files of `lab/` whose change makes a new build necessary.
    fn sources(self) -> &'static [&'static str] {
        match self {
            Self::Mini => &["build/images.sh", "guest/init", "guest/agent", "guest/rdmsr", "guest/wrmsr"],
            Self::Full => &["guest/lab-job.service", "guest/xen-dom0"],
            Self::Qemu => &["build/qemu.sh", "build/patch-qemu.py"],
        }
    }

    /// What the finished folder must hold.
    fn products(self) -> &'static [&'static str] {
        match self {
            Self::Mini => &["vmlinux", "base.cpio", "kernel-version", "kernel-folder"],
            Self::Full => &["root.ext4", "xen.elf"],
            Self::Qemu => &["qemu-lab"],
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The folder of the laboratory's sources: `lab/` of the repository this crate was compiled in.
pub(crate) fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The laboratory's cache folder.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache of this user: `$ZENKAI_LAB_CACHE`, else `/var/cache/zenkai-lab` for root, else
    /// `$XDG_CACHE_HOME/zenkai-lab` or `~/.cache/zenkai-lab`. The folder is made if need be.
    pub fn open() -> Result<Self, LabError> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = var("ZENKAI_LAB_CACHE")
            .or_else(|| is_root().then(|| PathBuf::from("/var/cache/zenkai-lab")))
            .or_else(|| var("XDG_CACHE_HOME").map(|cache| cache.join("zenkai-lab")))
            .or_else(|| var("HOME").map(|home| home.join(".cache/zenkai-lab")))
            .unwrap_or_else(|| PathBuf::from("/tmp/zenkai-lab"));
        Self::at(root)
    }

    /// A cache in a given folder, which is made if need be.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, LabError> {
        let root = root.into();
        for name in ["locks", "snapshots", "derived"] {
            let dir = root.join(name);
            fs::create_dir_all(&dir).with_path("make the folder", &dir)?;
        }
        Ok(Self { root })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the build of a tier from today's sources belongs, whether or not it is there.
    fn place(&self, tier: Tier) -> Result<PathBuf, LabError> {
        let mut hash = Hash::new();
        if tier == Tier::Full {
            // Its modules must match the kernel.
            hash.add(self.place(Tier::Mini)?.as_os_str().as_encoded_bytes());
        }
        for name in tier.sources() {
            let path = sources().join(name);
            hash.add(&fs::read(&path).with_path("read", &path)?);
        }
        Ok(self.root.join(format!("{tier}-{}", hash.hex())))
    }

    /// The folder of a built tier, or [`LabError::Missing`].
    pub fn tier(&self, tier: Tier) -> Result<PathBuf, LabError> {
        let place = self.place(tier)?;
        if tier.products().iter().all(|name| place.join(name).exists()) {
            touch(&place);
            return Ok(place);
        }
        let older = self.entries("").iter().any(|path| belongs_to(path, tier));
        let reason =
            if older { "the build there is was made from older sources" } else { "it was never built here" };
        Err(self.missing(tier, reason))
    }

    /// The error for a tier that cannot be used, with the reason and the way out.
    pub(crate) fn missing(&self, tier: Tier, reason: &str) -> LabError {
        let at = self.root.display();
        LabError::Missing { tier, how: format!("{reason} ({at}): run `cargo xtask lab build {tier}`") }
    }

    /// Builds a tier, and what it rests on, unless it is there already. Packages are installed with apt-get when they
    /// are missing, which needs root. Returns the tier's folder.
    pub fn build(&self, tier: Tier) -> Result<PathBuf, LabError> {
        if tier != Tier::Mini {
            self.build(Tier::Mini)?;
        }
        let _lock = self.lock(&format!("build-{tier}"))?;
        if let Ok(place) = self.tier(tier) {
            return Ok(place);
        }
        let place = self.place(tier)?;
        let fresh = tempfile::Builder::new()
            .prefix(&format!("new-{tier}-"))
            .tempdir_in(&self.root)
            .with_path("make a folder in", &self.root)?;
        let script = if tier == Tier::Qemu { "build/qemu.sh" } else { "build/images.sh" };
        let mut command = Command::new(sources().join(script));
        if tier != Tier::Qemu {
            command.arg(tier.name());
        }
        command.arg(fresh.path()).arg(&self.root);
        if tier == Tier::Full {
            command.arg(self.tier(Tier::Mini)?);
        }
        let output = command.stdin(Stdio::null()).output().doing(|| format!("cannot run {script}"))?;
        if !output.status.success() {
            let log = tail(&String::from_utf8_lossy(&output.stderr), 3000).to_owned();
            return Err(LabError::BuildFailed { tier, log });
        }
        drop(fs::remove_dir_all(&place));
        let fresh = fresh.keep();
        fs::rename(&fresh, &place).with_path("move the build to", &place)?;
        self.remove_unused(|path| belongs_to(path, tier), &place);
        self.tier(tier)
    }

    /// A file made from others, under a name that holds a hash of them: made once, by the first who asks.
    pub(crate) fn derived(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), LabError>,
    ) -> Result<PathBuf, LabError> {
        let path = self.root.join("derived").join(name);
        if path.exists() {
            return Ok(path);
        }
        let _lock = self.lock(&format!("derived-{name}"))?;
        if !path.exists() {
            let fresh = path.with_extension("new");
            make(&fresh)?;
            fs::rename(&fresh, &path).with_path("move a new file to", &path)?;
        }
        Ok(path)
    }

    /// The folder of a snapshot: made under a lock by the first who asks, `make` being given a new folder to fill.
    pub(crate) fn snapshot(
        &self,
        machine: &str,
        hash: &str,
        make: impl FnOnce(&Path) -> Result<(), LabError>,
    ) -> Result<(PathBuf, bool), LabError> {
        let name = format!("{machine}-{hash}");
        let place = self.root.join("snapshots").join(&name);
        if place.exists() {
            touch(&place);
            return Ok((place, false));
        }
        let _lock = self.lock(&format!("snapshot-{name}"))?;
        if place.exists() {
            return Ok((place, false));
        }
        let fresh = tempfile::Builder::new()
            .prefix("new-")
            .tempdir_in(self.root.join("snapshots"))
            .with_path("make a folder in", &self.root)?;
        make(fresh.path())?;
        fs::rename(fresh.keep(), &place).with_path("move a snapshot to", &place)?;
        self.remove_unused(|path| path.parent().is_some_and(|dir| dir.ends_with("snapshots")), &place);
        Ok((place, true))
    }

    /// Waits for and takes a lock that all processes on this host respect; it is given back when dropped.
    pub(crate) fn lock(&self, name: &str) -> Result<File, LabError> {
        let path = self.root.join("locks").join(name);
        let file = File::create(&path).with_path("write", &path)?;
        file.lock().with_path("lock", &path)?;
        Ok(file)
    }

    /// Waits until one of the host's places for a running guest is free, and takes it. There is one for each CPU: more
    /// guests at once would only make each slower, up to its time limit. Who waits longest is next, also when somebody
    /// else runs one guest after the other.
    pub(crate) fn guest_slot(&self) -> Result<File, LabError> {
        let _turn = self.lock("guest-turn")?;
        let slots = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        loop {
            for slot in 0..slots {
                let path = self.root.join("locks").join(format!("guest-{slot}"));
                let file = File::create(&path).with_path("write", &path)?;
                if file.try_lock().is_ok() {
                    return Ok(file);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn entries(&self, below: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join(below));
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// Makes room: removes what nobody used for a week.
    fn remove_unused(&self, of_kind: impl Fn(&Path) -> bool, keep: &Path) {
        for path in self.entries("").into_iter().chain(self.entries("snapshots")) {
            let age = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
            let age = age.and_then(|time| SystemTime::now().duration_since(time).ok());
            if of_kind(&path) && path != keep && age.is_some_and(|age| age > UNUSED) {
                drop(fs::remove_dir_all(&path));
            }
        }
    }
}

fn belongs_to(path: &Path, tier: Tier) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.trim_start_matches("new-").starts_with(&format!("{tier}-")))
}

/// Notes in a folder's time that it was used.
fn touch(dir: &Path) {
    if let Ok(file) = File::open(dir) {
        drop(file.set_modified(SystemTime::now()));
    }
}

fn is_root() -> bool {
    // The owner of our own entry in /proc is our effective user.
    std::os::linux::fs::MetadataExt::st_uid(&match fs::metadata("/proc/self") {
        Ok(meta) => meta,
        Err(_) => return false,
    }) == 0
}

/// The last bytes of a text, from the start of a line.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut start = text.len() - bytes;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].split_once('\n').map_or(&text[start..], |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::{Cache, Tier, tail};
    use crate::LabError;

    #[test]
    fn an_empty_cache_says_how_to_build() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        match cache.tier(Tier::Full) {
            Err(LabError::Missing { tier: Tier::Full, how }) => {
                assert!(how.contains("never built") && how.contains("cargo xtask lab build full"), "{how}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_build_from_other_sources_is_stale() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join("mini-000000000000")).unwrap();
        let error = cache.tier(Tier::Mini).unwrap_err().to_string();
        assert!(error.contains("older sources"), "{error}");
    }

    #[test]
    fn derived_files_are_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let write = |path: &std::path::Path| {
            std::fs::write(path, "x").unwrap();
            Ok(())
        };
        let path = cache.derived("a.bin", write).unwrap();
        assert_eq!(cache.derived("a.bin", |_| panic!("made twice")).unwrap(), path);
    }

    #[test]
    fn who_waits_for_a_guest_is_next() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut taken: Vec<_> = (0..count).map(|_| cache.guest_slot().unwrap()).collect();
        let order = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _slot = cache.guest_slot().unwrap();
                order.lock().unwrap().push("waiting");
            });
            let turn = std::fs::File::create(dir.path().join("locks/guest-turn")).unwrap();
            let waits = || turn.try_lock().is_err() || turn.unlock().is_err();
            for _ in 0..1_000 {
                if waits() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            drop(turn);
            taken.pop();
            let _again = cache.guest_slot().unwrap();
            order.lock().unwrap().push("again");
        });
        assert_eq!(order.into_inner().unwrap(), ["waiting", "again"]);
    }

    #[test]
    fn a_tail_starts_at_a_line() {
        assert_eq!(tail("one\ntwo\nthree", 7), "three");
        assert_eq!(tail("é\n", 100), "é\n");
    }
}
