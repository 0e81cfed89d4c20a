//! CPU quotas of other services: the service that is slow is seldom the shell that zenkai was started from.

use super::{CpuGroup, Place, Version, groups};
use crate::{Observed, Reader, Reason, reader::join};
use zenkai_host::EntryKind;

/// Groups that are looked at. A server runs some sixty services; a Kubernetes node has more groups, which are then
/// looked at from the top down as far as this goes.
const GROUP_LIMIT: usize = 96;

/// Levels below the root: slice, slice, service, scope.
const DEPTH_LIMIT: usize = 4;

/// The groups with a quota, from the top down.
pub(super) fn limited(
    reader: &Reader<'_>,
    place: Result<Place, (String, Reason)>,
) -> Observed<Vec<CpuGroup>> {
    let place = match place {
        Ok(place) => place,
        Err((source, reason)) => return Observed::unavailable(source, reason),
    };
    let quota_file = if place.version == Version::V2 { "cpu.max" } else { "cpu.cfs_quota_us" };
    let unlimited = if place.version == Version::V2 { "max" } else { "-1" };
    let mut found = Vec::new();
    let mut seen = 0;
    let mut level = vec![place.dir.clone()];
    for depth in 1..=DEPTH_LIMIT {
        let mut next = Vec::new();
        for dir in &level {
            // Services and containers rarely have groups of their own below; slices are where groups live.
            if depth > 1 && dir.strip_suffix(".slice").is_none() {
                continue;
            }
            for entry in reader.entries(dir).get().into_iter().flatten() {
                if entry.kind != EntryKind::Directory || seen >= GROUP_LIMIT {
                    continue;
                }
                seen += 1;
                let child = join(dir, &entry.name);
                let quota = reader.text(&join(&child, quota_file));
                if quota.text().is_some_and(|text| !text.starts_with(unlimited)) {
                    found.push(groups::cpu(reader, &child, &place));
                }
                next.push(child);
            }
        }
        level = next;
    }
    Observed::known(place.dir, found)
}
