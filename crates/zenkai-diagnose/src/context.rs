//! What the machine is for, as far as we were told.

use std::{fmt, str::FromStr};

use serde::Serialize;

/// The work a machine does. Some settings are right for one and wrong for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Relational databases.
    Database,
    /// Redis.
    Redis,
    /// MongoDB.
    Mongodb,
    /// SAP HANA.
    Hana,
    /// Web and application servers.
    Web,
    /// Computing: all cores, long runs.
    Hpc,
    /// Storage servers.
    Storage,
    /// Packet and bulk network throughput.
    Network,
    /// Latency above all.
    Latency,
}

impl Workload {
    /// All of them, with the name the command line takes.
    pub const ALL: [(&str, Self); 9] = [
        ("database", Self::Database),
        ("redis", Self::Redis),
        ("mongodb", Self::Mongodb),
        ("hana", Self::Hana),
        ("web", Self::Web),
        ("hpc", Self::Hpc),
        ("storage", Self::Storage),
        ("network", Self::Network),
        ("latency", Self::Latency),
    ];
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match Self::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, workload)) => Ok(*workload),
            None => {
                Err(format!("unknown workload; known are {}", Self::ALL.map(|(known, _)| known).join(", ")))
            }
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, workload)| workload == self).map_or("", |(name, _)| name);
        out.write_str(name)
    }
}

/// What a check may know besides the facts.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Context {
    /// The work, when the user named one; without it, advice that depends on the work stays neutral.
    pub workload: Option<Workload>,
}

impl Context {
    /// Whether the user named one of these workloads.
    pub fn works_as(&self, workloads: &[Workload]) -> bool {
        self.workload.is_some_and(|workload| workloads.contains(&workload))
    }
}
