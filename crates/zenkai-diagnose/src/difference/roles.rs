//! Which disk and which network card of one machine answers to which of the other one.
//!
//! Names are given by order of discovery, so `sda` here may be `nvme0n1` there. What a device is for comes first: the disk
//! under a mount point, the interface with the default route; then its place on PCIe, its name and its model, each
//! only where it says the same of one device on either side.

use std::collections::{BTreeMap, BTreeSet};

use zenkai_facts::{
    Facts,
    block::{Disk, Kind},
    net::Interface,
};

use super::Which;

/// The devices that answer to each other.
#[derive(Debug, Default)]
pub(super) struct Roles {
    a: BTreeMap<String, usize>,
    b: BTreeMap<String, usize>,
    labels: Vec<String>,
}

impl Roles {
    pub(super) fn of(a: &Facts, b: &Facts) -> Self {
        let mut roles = Self::default();
        let (disks_a, disks_b) = (disks(a), disks(b));
        roles.by("the disk under", &under(a, &disks_a), &under(b, &disks_b));
        roles.by("the disk at", &at(&disks_a), &at(&disks_b));
        roles.by(
            "",
            &named(disks_a.iter().map(|disk| &disk.name)),
            &named(disks_b.iter().map(|disk| &disk.name)),
        );
        roles.by("the disk", &models(&disks_a), &models(&disks_b));
        let (cards_a, cards_b) = (a.net.interfaces(), b.net.interfaces());
        roles.by("the interface with", &routed(a), &routed(b));
        roles.by("the interface at", &places(cards_a), &places(cards_b));
        roles.by(
            "",
            &named(cards_a.iter().map(|card| &card.name)),
            &named(cards_b.iter().map(|card| &card.name)),
        );
        roles
    }

    /// Pairs what has the same description on both sides, alone there, and is not paired yet.
    fn by(&mut self, what: &str, a: &[(String, String)], b: &[(String, String)]) {
        let (mine, others) = (alone(a), alone(b));
        for (description, left) in a {
            let both = (mine.get(description.as_str()), others.get(description.as_str()));
            let (Some(Some(_)), Some(Some(right))) = both else { continue };
            if self.a.contains_key(left) || self.b.contains_key(*right) {
                continue;
            }
            self.a.insert(left.clone(), self.labels.len());
            self.b.insert((*right).to_owned(), self.labels.len());
            self.labels.push(match (left == right, what) {
                (true, "" | "the disk at" | "the interface at" | "the disk") => left.clone(),
                (true, _) => format!("{left}, {what} {description}"),
                (false, _) => format!("{what} {description} ({left} ↔ {right})"),
            });
        }
    }

    /// The number that a device and its counterpart share; none for a device without one.
    pub(super) fn find(&self, which: Which, name: &str) -> Option<usize> {
        let map = match which {
            Which::A => &self.a,
            Which::B => &self.b,
        };
        map.get(name).copied()
    }

    /// What the two devices of a number are called.
    pub(super) fn label(&self, number: usize) -> Option<&str> {
        self.labels.get(number).map(String::as_str)
    }

    /// What answers on the other machine to a device of this one.
    pub(super) fn counterpart(&self, which: Which, name: &str) -> Option<&str> {
        let other = match which {
            Which::A => &self.b,
            Which::B => &self.a,
        };
        let number = self.find(which, name)?;
        other.iter().find(|(_, place)| **place == number).map(|(name, _)| name.as_str())
    }
}

type Described = Vec<(String, String)>;

/// What each description stands for; nothing for one that several share.
fn alone(described: &[(String, String)]) -> BTreeMap<&str, Option<&str>> {
    let mut names = BTreeMap::new();
    for (description, name) in described {
        names
            .entry(description.as_str())
            .and_modify(|known: &mut Option<&str>| *known = known.filter(|known| known == name))
            .or_insert(Some(name.as_str()));
    }
    names
}

fn disks(facts: &Facts) -> Vec<&Disk> {
    facts.block.disks.get().into_iter().flatten().collect()
}

/// Disks and volumes by the mount point on them; the topmost one first, so that `/` names a disk and not `/boot`.
fn under(facts: &Facts, disks: &[&Disk]) -> Described {
    let known: BTreeSet<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let mut described = Vec::new();
    let mut mounts: Vec<_> = facts.block.mounts.get().into_iter().flatten().collect();
    mounts.sort_by_key(|mount| (mount.target.len(), &mount.target));
    for mount in mounts {
        let volume = mount.device.as_deref().filter(|device| known.contains(device));
        let below = mount.root_disks.as_slice();
        match (volume, below) {
            // The file system lies on the disk itself or on a partition of it.
            (_, [disk]) if volume.is_none_or(|volume| volume == disk) => {
                described.push((mount.target.clone(), disk.clone()));
            }
            (Some(volume), _) => {
                described.push((mount.target.clone(), volume.to_owned()));
                let below = below.iter().enumerate();
                described.extend(
                    below.map(|(index, disk)| (format!("{} ({})", mount.target, index + 1), disk.clone())),
                );
            }
            _ => {}
        }
    }
    described
}

fn at(disks: &[&Disk]) -> Described {
    let place = |disk: &&Disk| {
        let address = disk.pcie.get()?.first()?;
        (disk.kind == Kind::Physical).then(|| (address.clone(), disk.name.clone()))
    };
    disks.iter().filter_map(place).collect()
}

fn models(disks: &[&Disk]) -> Described {
    let model = |disk: &&Disk| Some((disk.model.text()?.to_owned(), disk.name.clone()));
    disks.iter().filter_map(model).collect()
}

fn named<'f>(names: impl Iterator<Item = &'f String>) -> Described {
    names.map(|name| (name.clone(), name.clone())).collect()
}

fn routed(facts: &Facts) -> Described {
    let routes = [
        ("the default route", &facts.net.default_route),
        ("the IPv6 default route", &facts.net.default_route_ipv6),
    ];
    let first = |(what, route): &(&str, &zenkai_facts::Observed<Vec<String>>)| {
        Some(((*what).to_owned(), route.get()?.first()?.clone()))
    };
    routes.iter().filter_map(first).collect()
}

fn places(cards: &[Interface]) -> Described {
    let place = |card: &Interface| {
        let hops = card.hardware.as_ref()?.pcie.get()?;
        Some((hops.first()?.address.clone(), card.name.clone()))
    };
    cards.iter().filter_map(place).collect()
}
