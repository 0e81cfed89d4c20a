//! Write barriers of mounted file systems (ext4(5), `barrier=`).

use std::io;

use rustix::{io::Errno, mount::MountFlags};

use super::LiveHost;
use crate::{Host, Reply, Value, unescape_mount};

/// `on` or `off`. File systems other than ext3 and ext4 are `EOPNOTSUPP`, what is no mount point is `ENOENT`.
pub(super) fn value(point: &str) -> io::Result<Reply> {
    let mount = Mount::of(&mountinfo()?, point)?;
    Ok(Reply::Text(if mount.barriers { "on" } else { "off" }.into()))
}

/// Mounts again with barriers `on` or `off`, and every flag as it is.
pub(super) fn set(point: &str, value: &Value) -> io::Result<()> {
    let data = match value.text() {
        Some("on") => c"barrier=1",
        Some("off") => c"barrier=0",
        _ => return Err(Errno::INVAL.into()),
    };
    let mount = Mount::of(&mountinfo()?, point)?;
    rustix::mount::mount_remount(mount.point.as_slice(), mount.flags()?, data)?;
    Ok(())
}

fn mountinfo() -> io::Result<String> {
    String::from_utf8(LiveHost.read("/proc/self/mountinfo")?).map_err(|_| Errno::ILSEQ.into())
}

/// `MS_NOSYMFOLLOW` (`include/uapi/linux/mount.h`), which rustix has no name for.
const NO_SYMLINKS: MountFlags = MountFlags::from_bits_retain(0x100);

/// One mount, as `/proc/self/mountinfo` shows it.
#[derive(Debug)]
struct Mount {
    /// The mount point, not escaped.
    point: Vec<u8>,
    /// The options of this mount.
    own: Vec<String>,
    /// The options of the file system, which all its mounts share.
    shared: Vec<String>,
    barriers: bool,
}

impl Mount {
    /// The last mount on the point is the one that shows.
    fn of(mountinfo: &str, point: &str) -> io::Result<Self> {
        let mut found = Err(Errno::NOENT);
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let mut left = left.split(' ').skip(4);
            let (Some(place), Some(own)) = (left.next(), left.next()) else { continue };
            let mut right = right.split(' ');
            let (Some(kind), Some(shared)) = (right.next(), right.nth(1)) else { continue };
            let plain = unescape_mount(place);
            if plain != point.as_bytes() {
                continue;
            }
            let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
            let shared = words(shared);
            // ext4 shows only what is not the default, and barriers are (fs/ext4/super.c); ext3's own driver, up to
            // Linux 4.2, shows a number.
            let off = |word: &String| word == "nobarrier" || word == "barrier=0";
            let barriers = !shared.iter().any(off);
            found = match kind {
                "ext3" | "ext4" => Ok(Self { point: plain, own: words(own), shared, barriers }),
                _ => Err(Errno::OPNOTSUPP),
            };
        }
        found.map_err(Into::into)
    }

    /// The flags that keep the mount as it is: `MS_REMOUNT` clears those that are not given (mount(2)).
    fn flags(&self) -> io::Result<MountFlags> {
        let own = |name: &str| self.own.iter().any(|word| word == name);
        let shared = |name: &str| self.shared.iter().any(|word| word == name);
        // One flag stands for both: keeping a read-only mount of a writable file system would make the whole of it
        // read-only.
        if own("ro") != shared("ro") {
            return Err(Errno::ROFS.into());
        }
        let pairs = [
            (own("ro"), MountFlags::RDONLY),
            (own("nosuid"), MountFlags::NOSUID),
            (own("nodev"), MountFlags::NODEV),
            (own("noexec"), MountFlags::NOEXEC),
            (own("noatime"), MountFlags::NOATIME),
            (own("nodiratime"), MountFlags::NODIRATIME),
            (own("relatime"), MountFlags::RELATIME),
            // Neither word means that every access is noted; without a flag the kernel would take relatime.
            (!own("noatime") && !own("relatime"), MountFlags::STRICTATIME),
            (own("nosymfollow"), NO_SYMLINKS),
            (shared("sync"), MountFlags::SYNCHRONOUS),
            (shared("dirsync"), MountFlags::DIRSYNC),
            (shared("mand"), MountFlags::PERMIT_MANDATORY_FILE_LOCKING),
            (shared("lazytime"), MountFlags::LAZYTIME),
        ];
        Ok(pairs.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
        2 1 8:2 / /a\\040b rw,nosuid,nodev,noexec,noatime - ext4 /dev/sda2 rw,lazytime,nobarrier\n\
        3 1 8:3 / /x rw - xfs /dev/sda3 rw\n4 1 8:1 /y /y ro,relatime - ext4 /dev/sda1 rw\n\
        5 1 8:5 / /old rw - ext4 /dev/sda5 rw\n6 1 8:6 / /old rw,nosymfollow - ext3 /dev/sda6 rw,barrier=0\nbroken\n";

    fn error(point: &str) -> Option<i32> {
        Mount::of(MOUNTS, point).and_then(|mount| mount.flags()).unwrap_err().raw_os_error()
    }

    #[test]
    fn what_is_mounted_and_how() {
        let root = Mount::of(MOUNTS, "/").unwrap();
        assert!(root.barriers);
        assert_eq!(root.flags().unwrap(), MountFlags::RELATIME);
        let mount = Mount::of(MOUNTS, "/a b").unwrap();
        assert!(!mount.barriers && mount.point == b"/a b");
        let limits = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        assert_eq!(mount.flags().unwrap(), limits | MountFlags::NOATIME | MountFlags::LAZYTIME);
        let upper = Mount::of(MOUNTS, "/old").unwrap();
        assert!(!upper.barriers, "the later mount hides the earlier");
        assert_eq!(upper.flags().unwrap(), MountFlags::STRICTATIME | NO_SYMLINKS);
    }

    #[test]
    fn what_cannot_be_turned() {
        assert_eq!(error("/x"), Some(Errno::OPNOTSUPP.raw_os_error()));
        assert_eq!(error("/a\\040b"), Some(Errno::NOENT.raw_os_error()), "that is another name");
        assert_eq!(error("/none"), Some(Errno::NOENT.raw_os_error()));
        assert_eq!(error("/y"), Some(Errno::ROFS.raw_os_error()), "the file system would become read-only");
        assert!(set("/", &"maybe".into()).is_err());
    }

    /// `cargo xtask test` runs it in a mount namespace of its own, with a scratch ext4 mounted
    /// `-o nosuid,nodev,noatime` on `/mnt`.
    #[test]
    #[ignore = "needs a scratch file system; cargo xtask test makes one"]
    fn barriers_go_off_and_on_and_flags_stay() {
        let shown = || Mount::of(&mountinfo().unwrap(), "/mnt").unwrap();
        let before = shown();
        assert!(before.barriers);
        set("/mnt", &"off".into()).unwrap();
        assert_eq!(value("/mnt").unwrap(), Reply::Text("off".into()));
        assert_eq!(shown().own, before.own);
        set("/mnt", &"on".into()).unwrap();
        assert_eq!((shown().own, shown().shared), (before.own, before.shared));
    }
}
