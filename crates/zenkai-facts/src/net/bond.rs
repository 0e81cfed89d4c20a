//! Bonds (`Documentation/networking/bonding.rst`, `drivers/net/bonding/bond_sysfs*.c`).

use serde::Serialize;

use super::CLASS_DIR;
use crate::{Observed, Reader, reader::join};

/// State of a bond.
#[derive(Debug, Clone, Serialize)]
pub struct Bond {
    /// `balance-rr`, `active-backup`, `balance-xor`, `broadcast`, `802.3ad`, `balance-tlb`, `balance-alb`.
    pub mode: Observed<String>,
    /// What decides the member a packet leaves by, such as `layer2` or `layer3+4`.
    pub transmit_hash_policy: Observed<String>,
    /// How often the links are looked at; 0 means never.
    pub miimon_ms: Observed<u64>,
    /// The aggregator in use (`802.3ad` only).
    pub active_aggregator: Observed<u32>,
    /// The members.
    pub members: Observed<Vec<BondMember>>,
}

/// A member of a bond.
#[derive(Debug, Clone, Serialize)]
pub struct BondMember {
    /// Interface name.
    pub name: String,
    /// `active` or `backup`.
    pub state: Observed<String>,
    /// `up`, `down`, `going down`, `going back`.
    pub link: Observed<String>,
    /// How often the link went away.
    pub link_failures: Observed<u64>,
    /// The aggregator it belongs to (`802.3ad` only).
    pub aggregator: Observed<u32>,
}

pub(super) fn observe(reader: &Reader<'_>, dir: &str) -> Bond {
    let at = |name: &str| join(dir, format_args!("bonding/{name}"));
    // Choices are shown with their number behind: `802.3ad 4`.
    let word = |name: &str| {
        reader.words(&at(name)).parse(|words| words.into_iter().next().ok_or_else(|| "empty".to_owned()))
    };
    Bond {
        mode: word("mode"),
        transmit_hash_policy: word("xmit_hash_policy"),
        miimon_ms: reader.number(&at("miimon")),
        active_aggregator: reader.number(&at("ad_aggregator")),
        members: reader
            .words(&at("slaves"))
            .map(|names| names.into_iter().map(|name| member(reader, name)).collect()),
    }
}

fn member(reader: &Reader<'_>, name: String) -> BondMember {
    let at = |attribute: &str| join(CLASS_DIR, format_args!("{name}/bonding_slave/{attribute}"));
    BondMember {
        state: reader.text(&at("state")),
        link: reader.text(&at("mii_status")),
        link_failures: reader.number(&at("link_failure_count")),
        aggregator: reader.number(&at("ad_aggregator_id")),
        name,
    }
}
