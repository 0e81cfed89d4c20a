//! Questions to a machine that are not files, and their answers, both with a text form for captures.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Knob;

/// A request of the ethtool ioctl (`linux/ethtool.h`), all of the "get" kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EthtoolRequest {
    /// `ETHTOOL_GDRVINFO`, as text lines `key value`: `driver`, `version`, `firmware`, `bus` (bus address). What
    /// the driver leaves empty has no line.
    Driver,
    /// `ETHTOOL_GLINKSETTINGS`: `speed_mbps` (missing when unknown), `duplex` (0 half, 1 full, 255 unknown),
    /// `autoneg` (0 off, 1 on, 255 unknown), `port` (0 twisted pair, 3 fibre, 5 direct attach, 239 none,
    /// 255 other), and the fastest mode in each of the three masks, missing when it has none:
    /// `max_supported_speed_mbps`, `max_advertised_speed_mbps`, `max_partner_speed_mbps`.
    Link,
    /// `ETHTOOL_GRINGPARAM`, in descriptors: `rx`, `rx_max`, `rx_mini`, `rx_mini_max`, `rx_jumbo`,
    /// `rx_jumbo_max`, `tx`, `tx_max`.
    Rings,
    /// `ETHTOOL_GCHANNELS`, in queues: `rx`, `rx_max`, `tx`, `tx_max`, `other`, `other_max`, `combined`,
    /// `combined_max`.
    Channels,
    /// `ETHTOOL_GCOALESCE`: `rx_usecs`, `rx_frames`, `rx_usecs_irq`, `tx_usecs`, `tx_frames`, `tx_usecs_irq`,
    /// the switches `adaptive_rx`, `adaptive_tx`, and the rarer numbers of `struct ethtool_coalesce`.
    Coalesce,
    /// `ETHTOOL_GFEATURES`: each feature by the name the kernel gives it; bit 0 available (may be changed),
    /// bit 1 active, bit 2 never changeable, bit 3 requested.
    Features,
    /// `ETHTOOL_GPAUSEPARAM`, all switches: `autoneg`, `rx`, `tx`.
    Pause,
    /// `ETHTOOL_GEEE`: the switches `active` (agreed with the partner), `enabled` and `tx_lpi_enabled`, and
    /// `tx_lpi_timer_us`.
    Eee,
    /// `ETHTOOL_GWOL`, two masks of the `WAKE_*` bits: `supported` and `options`. Needs `CAP_NET_ADMIN`.
    WakeOnLan,
    /// `ETHTOOL_GSTATS`: the driver's own counters by name. A name may come more than once.
    Statistics,
}

impl EthtoolRequest {
    /// The word for it in captures and journals.
    pub fn name(self) -> &'static str {
        ETHTOOL.iter().find(|(known, _)| *known == self).map_or("?", |(_, name)| name)
    }
}

const ETHTOOL: &[(EthtoolRequest, &str)] = &[
    (EthtoolRequest::Driver, "driver"),
    (EthtoolRequest::Link, "link"),
    (EthtoolRequest::Rings, "rings"),
    (EthtoolRequest::Channels, "channels"),
    (EthtoolRequest::Coalesce, "coalesce"),
    (EthtoolRequest::Features, "features"),
    (EthtoolRequest::Pause, "pause"),
    (EthtoolRequest::Eee, "eee"),
    (EthtoolRequest::WakeOnLan, "wake-on-lan"),
    (EthtoolRequest::Statistics, "statistics"),
];

/// A question to the machine that no file answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Query {
    /// The CPUID instruction; answered by four numbers: eax, ebx, ecx, edx.
    Cpuid {
        /// Leaf, in eax.
        leaf: u32,
        /// Sub-leaf, in ecx.
        subleaf: u32,
    },
    /// A model-specific register of one CPU through `/dev/cpu/N/msr`; answered by one number.
    Msr {
        /// Logical CPU number.
        cpu: u32,
        /// Register address.
        register: u32,
    },
    /// `statfs(2)`; answered by named numbers: type, block_size_bytes, blocks, blocks_available, files,
    /// files_free, flags.
    Statfs {
        /// A path on the file system.
        path: String,
    },
    /// The ethtool ioctl on a network device; answered by named numbers (or text for `Driver`).
    Ethtool {
        /// Interface name.
        device: String,
        /// What is asked for.
        request: EthtoolRequest,
    },
    /// One IPMI request to the local baseboard management controller through `/dev/ipmi0`; answered by the
    /// response's bytes, completion code first.
    Ipmi {
        /// Network function.
        netfn: u8,
        /// Command number.
        command: u8,
        /// Request data.
        data: Vec<u8>,
    },
    /// The table of a mapped device (device mapper), by its device number; answered by text, one target a line: start
    /// and length in sectors, type, parameters. Needs root. A dm-crypt target gives its type alone, never its key.
    DmTable {
        /// Major device number.
        major: u32,
        /// Minor device number.
        minor: u32,
    },
    /// The effective user id we run as; answered by one number.
    EffectiveUid,
    /// The machine's hardware name as `uname -m` gives it; answered by text.
    Machine,
    /// The value of a knob that is no file; answered by text, or `ENOENT` where it is absent.
    Knob(Knob),
    /// The result of the active probe as JSON text, when one was made (`zenkai doctor --probe`).
    Probe,
    /// What the active tuned profile asks for and the machine does not show, as JSON text: found by the program, which
    /// knows profiles, before facts are asked for.
    Profile,
}

/// What a [`Query`] was not: the text form could not be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryParseError(pub String);

impl fmt::Display for QueryParseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is no known query", self.0)
    }
}

impl std::error::Error for QueryParseError {}

impl fmt::Display for Query {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpuid { leaf, subleaf } => write!(out, "cpuid {leaf:#x} {subleaf:#x}"),
            Self::Msr { cpu, register } => write!(out, "msr {cpu} {register:#x}"),
            Self::Statfs { path } => write!(out, "statfs {}", escape(path)),
            Self::Ethtool { device, request } => {
                write!(out, "ethtool {} {}", escape(device), request.name())
            }
            Self::Ipmi { netfn, command, data } => {
                write!(out, "ipmi {netfn:#x} {command:#x}")?;
                data.iter().try_for_each(|byte| write!(out, " {byte:#x}"))
            }
            Self::DmTable { major, minor } => write!(out, "dm-table {major} {minor}"),
            Self::EffectiveUid => out.write_str("effective-uid"),
            Self::Machine => out.write_str("machine"),
            Self::Probe => out.write_str("probe"),
            Self::Profile => out.write_str("profile"),
            Self::Knob(knob) => {
                let json = serde_json::to_string(knob).map_err(|_| fmt::Error)?;
                write!(out, "knob {}", escape(&json))
            }
        }
    }
}

impl FromStr for Query {
    type Err = QueryParseError;

    fn from_str(text: &str) -> Result<Self, QueryParseError> {
        let bad = || QueryParseError(text.to_owned());
        let words: Vec<&str> = text.split(' ').collect();
        let number = |word: &str| parse_number(word).ok_or_else(bad);
        let small = |word: &str| u32::try_from(number(word)?).map_err(|_| bad());
        let byte = |word: &&str| u8::try_from(number(word)?).map_err(|_| bad());
        Ok(match words.as_slice() {
            ["cpuid", leaf, subleaf] => Self::Cpuid { leaf: small(leaf)?, subleaf: small(subleaf)? },
            ["msr", cpu, register] => Self::Msr { cpu: small(cpu)?, register: small(register)? },
            ["statfs", path] => Self::Statfs { path: unescape(path).ok_or_else(bad)? },
            ["ethtool", device, name] => {
                let (request, _) = ETHTOOL.iter().find(|(_, known)| known == name).ok_or_else(bad)?;
                Self::Ethtool { device: unescape(device).ok_or_else(bad)?, request: *request }
            }
            ["ipmi", netfn, command, data @ ..] => Self::Ipmi {
                netfn: byte(netfn)?,
                command: byte(command)?,
                data: data.iter().map(byte).collect::<Result<_, _>>()?,
            },
            ["dm-table", major, minor] => Self::DmTable { major: small(major)?, minor: small(minor)? },
            ["effective-uid"] => Self::EffectiveUid,
            ["machine"] => Self::Machine,
            ["probe"] => Self::Probe,
            ["profile"] => Self::Profile,
            ["knob", json] => {
                let json = unescape(json).ok_or_else(bad)?;
                Self::Knob(serde_json::from_str(&json).map_err(|_| bad())?)
            }
            _ => return Err(bad()),
        })
    }
}

/// The answer to a [`Query`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Plain numbers in the order the query documents.
    Numbers(Vec<u64>),
    /// Numbers by name, in the order the kernel gave them.
    Named(Vec<(String, u64)>),
    /// Raw bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
}

impl Reply {
    /// The value called `name`, when this is a [`Reply::Named`] that has it.
    pub fn named(&self, name: &str) -> Option<u64> {
        match self {
            Self::Named(pairs) => pairs.iter().find(|(key, _)| key == name).map(|(_, value)| *value),
            _ => None,
        }
    }

    /// The plain numbers, when this is a [`Reply::Numbers`].
    pub fn numbers(&self) -> Option<&[u64]> {
        match self {
            Self::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The text, when this is a [`Reply::Text`].
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A decimal or `0x` number.
pub(crate) fn parse_number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Writes a name so that it holds no blank, `=`, `%` or unprintable byte: those become `%XX`.
pub(crate) fn escape(name: &str) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' && byte != b'=' {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The reverse of [`escape`]; `None` when the text is not something `escape` writes.
pub(crate) fn unescape(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let queries = [
            Query::Cpuid { leaf: 0x8000_0007, subleaf: 1 },
            Query::Msr { cpu: 255, register: 0xc001_0015 },
            Query::Statfs { path: "/mnt/a b=c%".into() },
            Query::Ethtool { device: "eth0".into(), request: EthtoolRequest::Features },
            Query::Ipmi { netfn: 0x2c, command: 2, data: vec![0xdc, 1, 0, 0] },
            Query::DmTable { major: 252, minor: 3 },
            Query::EffectiveUid,
            Query::Machine,
            Query::Probe,
            Query::Profile,
            Query::Knob(Knob::Ethtool { device: "eth 0".into(), request: EthtoolRequest::Rings }),
        ];
        for query in queries {
            assert_eq!(query.to_string().parse::<Query>().unwrap(), query);
        }
        for bad in [
            "",
            "cpuid 1",
            "msr x 0x1",
            "msr 0 0x1ffffffff",
            "ethtool eth0 flash",
            "statfs %zz",
            "ipmi 0x100 1",
        ] {
            assert!(bad.parse::<Query>().is_err(), "{bad}");
        }
    }
}
