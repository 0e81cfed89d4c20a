//! Which control group hierarchies are mounted, and where we are in them (`man 7 cgroups`).

use serde::Serialize;

use crate::{Observed, Reader, Reason};

/// Groups are nested at most this deep for us; systemd and Kubernetes together reach about eight.
const DEPTH_LIMIT: usize = 32;

const MOUNTS: &str = "/proc/self/mountinfo";
const OWN: &str = "/proc/self/cgroup";

/// Which version of control groups is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// One tree for each controller.
    V1,
    /// One tree for all.
    V2,
    /// Both are mounted; the controllers are in the trees of version 1.
    Hybrid,
}

/// A mounted tree.
#[derive(Debug, Clone)]
struct Mount {
    version: Version,
    /// The group that the mount point shows; `/` unless a container was given a part only.
    root: String,
    dir: String,
    /// Mount options, which name the controllers of a version 1 tree.
    options: Vec<String>,
}

/// Where we are in one tree.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) version: Version,
    pub(super) dir: String,
    /// Our group below the mount point, without slashes at the ends.
    group: String,
}

impl Place {
    /// The directory of our own group.
    pub(super) fn own_dir(&self) -> String {
        if self.group.is_empty() { self.dir.clone() } else { format!("{}/{}", self.dir, self.group) }
    }

    /// The directories from our own group up to the mount point.
    pub(super) fn dirs(&self) -> Vec<String> {
        let mut dirs = vec![self.own_dir()];
        let mut group = self.group.as_str();
        while let Some((parent, _)) = group.rsplit_once('/') {
            dirs.push(format!("{}/{parent}", self.dir));
            group = parent;
        }
        dirs.truncate(DEPTH_LIMIT);
        if !self.group.is_empty() {
            dirs.push(self.dir.clone());
        }
        dirs
    }

    /// The name of a group by its directory: `/` for the mount point.
    pub(super) fn name(&self, dir: &str) -> String {
        match dir.strip_prefix(self.dir.as_str()) {
            Some("") | None => "/".to_owned(),
            Some(group) => group.to_owned(),
        }
    }
}

/// All trees, and our place in each.
#[derive(Debug)]
pub(super) struct Hierarchies {
    mounts: Observed<Vec<Mount>>,
    /// Controller list and path, as `/proc/self/cgroup` gives them.
    own: Observed<Vec<(String, String)>>,
}

impl Hierarchies {
    pub(super) fn observe(reader: &Reader<'_>) -> Self {
        Self {
            mounts: reader.text(MOUNTS).map(|text| text.lines().filter_map(mount).collect()),
            own: reader.text(OWN).map(|text| text.lines().filter_map(membership).collect()),
        }
    }

    pub(super) fn version(&self) -> Observed<Version> {
        self.mounts
            .clone()
            .map(|mounts| {
                let has = |version| mounts.iter().any(|mount| mount.version == version);
                (has(Version::V1), has(Version::V2))
            })
            .parse(|found| match found {
                (true, true) => Ok(Version::Hybrid),
                (true, false) => Ok(Version::V1),
                (false, true) => Ok(Version::V2),
                (false, false) => Err("no control groups are mounted".to_owned()),
            })
    }

    /// Our place in the tree that a controller is in.
    pub(super) fn place(&self, controller: &str) -> Result<Place, (String, Reason)> {
        let fail = |source: &str, reason: &Reason| (source.to_owned(), reason.clone());
        let mounts = self.mounts.outcome().map_err(|reason| fail(MOUNTS, reason))?;
        let own = self.own.outcome().map_err(|reason| fail(OWN, reason))?;
        let names = |list: &str| list.split(',').any(|name| name == controller);
        let old = mounts
            .iter()
            .find(|mount| mount.version == Version::V1 && mount.options.iter().any(|one| one == controller));
        let mount = old.or_else(|| mounts.iter().find(|mount| mount.version == Version::V2));
        let not_there = || {
            let why = format!("no tree of control groups has the controller {controller}");
            (MOUNTS.to_owned(), Reason::NotApplicable(why))
        };
        let mount = mount.ok_or_else(not_there)?;
        let path = own
            .iter()
            .find(|(list, _)| if mount.version == Version::V1 { names(list) } else { list.is_empty() })
            .map(|(_, path)| path.as_str())
            .ok_or_else(not_there)?;
        Ok(Place {
            version: mount.version,
            dir: mount.dir.clone(),
            group: below(&mount.root, path).to_owned(),
        })
    }
}

/// What is left of a group's path below the group that is mounted; the mount itself when the path is outside.
fn below<'a>(root: &str, path: &'a str) -> &'a str {
    let root = root.trim_end_matches('/');
    let rest = match path.strip_prefix(root) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_matches('/'),
        _ => "",
    };
    if rest.split('/').any(|part| part == ".." || part == ".") { "" } else { rest }
}

/// `32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:4 - cgroup cgroup rw,cpu` (`man 5 proc`).
fn mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let version = match kind.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let options = kind.nth(1)?.split(',').map(str::to_owned).collect();
    let mut place = place.split(' ').skip(3);
    let (root, dir) = (place.next()?.to_owned(), place.next()?);
    let dir = dir.trim_end_matches('/').to_owned();
    dir.starts_with('/').then_some(Mount { version, root, dir, options })
}

/// `4:memory:/a/b`, `0::/a`.
fn membership(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    Some((controllers.to_owned(), path.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_below() {
        assert_eq!(below("/", "/a/b"), "a/b");
        assert_eq!(below("/docker/1", "/docker/1"), "");
        assert_eq!(below("/docker/1", "/docker/12"), "");
        assert_eq!(below("/", "/../other"), "");
        let place = Place { version: Version::V2, dir: "/c".into(), group: "a/b".into() };
        assert_eq!(place.dirs(), ["/c/a/b", "/c/a", "/c"]);
        assert_eq!(place.name("/c/a"), "/a");
        assert_eq!(place.name("/c"), "/");
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9a-z:/ ,.-]{0,80}") {
            let _ = (mount(&text), membership(&text), below(&text, &text));
            let place = Place { version: Version::V2, dir: String::new(), group: text };
            prop_assert!(place.dirs().len() <= DEPTH_LIMIT + 1);
        }
    }
}
