//! Disks, partitions, md, device mapper and LVM, mounts.

use serde::Serialize;

use crate::Reader;

/// Disks, partitions, md, device mapper and LVM, mounts.
#[derive(Debug, Clone, Serialize)]
pub struct Block {}

/// Reads this subsystem.
pub fn observe(_reader: &Reader<'_>) -> Block {
    Block {}
}
