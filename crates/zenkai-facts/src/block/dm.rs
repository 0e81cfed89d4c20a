//! Device mapper: LVM, encryption, multipath.

use serde::Serialize;

use crate::{Observed, Reader};

/// `/sys/block/dm-N/dm`.
#[derive(Debug, Clone, Serialize)]
pub struct Dm {
    /// The name below `/dev/mapper`, such as `vg-lv`.
    pub name: Observed<String>,
    /// Who made it, from the prefix of its UUID; the UUID itself is nobody's business.
    pub kind: Observed<DmKind>,
    /// For LVM: the internal part of a volume this is (`real`, `cow`, `tpool`, `tdata`, `tmeta` …); empty for the
    /// volume itself.
    pub lvm_layer: Observed<String>,
    /// Whether it is suspended: its I/O waits.
    pub suspended: Observed<bool>,
}

/// Who made a mapped device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmKind {
    /// LVM.
    Lvm,
    /// dm-crypt, with the format as cryptsetup names it: `LUKS1`, `LUKS2`, `PLAIN` …
    Crypt(String),
    /// multipathd.
    Multipath,
    /// kpartx: a partition of another mapped device.
    Partition,
    /// dm-verity.
    Verity,
    /// VDO.
    Vdo,
    /// Firmware RAID.
    Dmraid,
    /// Something else.
    Other,
}

pub(super) fn observe(reader: &Reader<'_>, disk_dir: &str) -> Dm {
    let at = |name: &str| format!("{disk_dir}/dm/{name}");
    let uuid = reader.text(&at("uuid"));
    Dm {
        name: reader.text(&at("name")),
        kind: uuid.clone().map(|uuid| kind_of(&uuid)),
        lvm_layer: uuid.map(|uuid| lvm_layer(&uuid).to_owned()),
        suspended: reader.flag(&at("suspended")),
    }
}

fn kind_of(uuid: &str) -> DmKind {
    let mut parts = uuid.split('-');
    match (parts.next().unwrap_or_default(), parts.next()) {
        ("LVM", _) => DmKind::Lvm,
        ("CRYPT", format) => DmKind::Crypt(format.unwrap_or_default().to_owned()),
        ("mpath", _) => DmKind::Multipath,
        ("VDO", _) => DmKind::Vdo,
        ("DMRAID", _) => DmKind::Dmraid,
        (prefix, _) if prefix.starts_with("part") => DmKind::Partition,
        (prefix, _) if prefix.starts_with("VERITY") => DmKind::Verity,
        _ => DmKind::Other,
    }
}

/// `LVM-` is followed by 32 characters for the group and 32 for the volume, then `-` and the layer
/// (`build_dm_uuid` in LVM's lib/misc/lvm-string.c).
fn lvm_layer(uuid: &str) -> &str {
    let rest = uuid.strip_prefix("LVM-").and_then(|ids| ids.get(64..));
    rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_made_it() {
        let id = "x".repeat(64);
        assert_eq!(kind_of(&format!("LVM-{id}")), DmKind::Lvm);
        assert_eq!(lvm_layer(&format!("LVM-{id}")), "");
        assert_eq!(lvm_layer(&format!("LVM-{id}-cow")), "cow");
        assert_eq!(kind_of("CRYPT-LUKS2-0123-luks"), DmKind::Crypt("LUKS2".into()));
        assert_eq!(kind_of("mpath-3600"), DmKind::Multipath);
        assert_eq!(kind_of("part1-mpath-3600"), DmKind::Partition);
        assert_eq!(kind_of(""), DmKind::Other);
    }

    proptest! {
        #[test]
        fn never_panics(uuid in "(LVM-)?[ -~é]{0,80}") {
            let _ = (kind_of(&uuid), lvm_layer(&uuid));
        }
    }
}
