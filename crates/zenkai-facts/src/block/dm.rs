//! Device mapper: LVM, encryption, multipath.

use serde::Serialize;

use zenkai_host::Query;

use crate::{Observed, Reader, Reason};

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
    /// For LVM: what the volume is built of, in order. Other tables are nobody's business: dm-crypt's hold the key.
    pub targets: Observed<Vec<Target>>,
}

/// One stretch of a mapped device (`dmsetup table`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// `linear`, `striped`, `snapshot`, `thin`, `raid` …
    pub kind: String,
    /// Its length, in bytes.
    pub length_bytes: u64,
    /// For `striped`: over how many devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripes: Option<u32>,
    /// For `striped`: how much goes to one device before the next has its turn, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripe_bytes: Option<u64>,
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
    let targets = match uuid.get().map(|uuid| kind_of(uuid)) {
        Some(DmKind::Lvm) => targets(reader, &format!("{disk_dir}/dev")),
        _ => {
            Observed::unavailable(at("uuid"), Reason::NotApplicable("only LVM's tables are read".to_owned()))
        }
    };
    Dm {
        targets,
        name: reader.text(&at("name")),
        kind: uuid.clone().map(|uuid| kind_of(&uuid)),
        lvm_layer: uuid.map(|uuid| lvm_layer(&uuid).to_owned()),
        suspended: reader.flag(&at("suspended")),
    }
}

fn targets(reader: &Reader<'_>, dev: &str) -> Observed<Vec<Target>> {
    let number = reader.text(dev);
    let parts = number.text().and_then(|text| text.split_once(':'));
    let Some((Ok(major), Ok(minor))) = parts.map(|(major, minor)| (major.parse(), minor.parse())) else {
        let reason = number.reason().cloned();
        return Observed::unavailable(
            dev,
            reason.unwrap_or_else(|| Reason::Malformed("no device number".to_owned())),
        );
    };
    let text = reader.query(&Query::DmTable { major, minor }, |reply| reply.text().map(str::to_owned));
    text.parse(|text| text.lines().map(|line| target(line).ok_or_else(|| format!("`{line}`"))).collect())
}

/// `START LENGTH TYPE PARAMETERS`; those of `striped` begin with the number of stripes and the sectors of a stripe
/// (`Documentation/admin-guide/device-mapper/striped.rst`).
fn target(line: &str) -> Option<Target> {
    const SECTOR_BYTES: u64 = 512;
    let mut words = line.split(' ');
    let length_bytes = words.nth(1)?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)?;
    let kind = words.next()?.to_owned();
    let (mut stripes, mut stripe_bytes) = (None, None);
    if kind == "striped" {
        stripes = Some(words.next()?.parse().ok()?);
        stripe_bytes = Some(words.next()?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)?);
    }
    Some(Target { kind, length_bytes, stripes, stripe_bytes })
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

    #[test]
    fn stripes_of_a_table() {
        let striped = target("0 131072 striped 2 256 8:0 2048 8:16 2048").unwrap();
        assert_eq!((striped.stripes, striped.stripe_bytes), (Some(2), Some(131_072)));
        assert_eq!(striped.length_bytes, 67_108_864);
        assert_eq!(target("0 8 linear 8:0 2048").unwrap().stripes, None);
        for broken in
            ["", "0", "0 x linear", "0 1 striped", "0 1 striped two 1", "0 18446744073709551615 linear"]
        {
            assert_eq!(target(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(uuid in "(LVM-)?[ -~é]{0,80}") {
            let _ = (kind_of(&uuid), lvm_layer(&uuid), target(&uuid));
        }
    }
}
