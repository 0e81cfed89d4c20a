//! The baseboard management controller, as the kernel and the controller itself tell of it.

use serde::Serialize;
use zenkai_host::{
    Query, Reply,
    dcmi::{self, DCMI, GROUP_EXTENSION, NoReading},
};

use crate::{Observed, Reader, Reason};

/// The management controller.
#[derive(Debug, Clone, Serialize)]
pub struct Bmc {
    /// Whether the kernel talks to one (`/sys/class/ipmi`, there when ipmi_devintf is loaded).
    pub present: Observed<bool>,
    /// Whether the firmware describes one (ACPI device `IPI0001`), driver or not.
    pub described: Observed<bool>,
    /// The draw of the whole machine (DCMI "Get Power Reading").
    pub power_reading: Observed<PowerReading>,
    /// The cap on the draw of the whole machine (DCMI "Get Power Limit").
    pub power_limit: Observed<PowerLimit>,
}

/// DCMI 1.5, section 6.6.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PowerReading {
    /// Now, in W.
    pub current_watts: u16,
    /// Highest in the controller's statistics window, in W.
    pub max_watts: u16,
    /// Average in that window, in W.
    pub average_watts: u16,
}

/// DCMI 1.5, section 6.6.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerLimit {
    /// Nobody set one, or it is switched off.
    Unlimited,
    /// In force, in W.
    Watts(u16),
}

/// Completion code of "Get Power Limit" when there is none.
const NO_LIMIT_SET: u8 = 0x80;

pub(super) fn observe(reader: &Reader<'_>) -> Bmc {
    let has = |dir: &str, prefix: &str| {
        reader.names(dir).map(|names| names.iter().any(|name| name.starts_with(prefix)))
    };
    let present = has("/sys/class/ipmi", "ipmi");
    let there = present.value() == Some(true);
    Bmc {
        present,
        described: has("/sys/bus/acpi/devices", "IPI0001"),
        power_reading: ask(reader, there, dcmi::POWER_READING, &dcmi::POWER_READING_DATA, reading),
        power_limit: ask(reader, there, 0x03, &[DCMI, 0, 0], limit),
    }
}

/// Asks only a controller that is there: a missing one costs two seconds of waiting.
fn ask<T>(
    reader: &Reader<'_>,
    there: bool,
    command: u8,
    data: &[u8],
    parse: fn(&[u8]) -> Result<T, Reason>,
) -> Observed<T> {
    let query = Query::Ipmi { netfn: GROUP_EXTENSION, command, data: data.to_vec() };
    if !there {
        return Observed::unavailable(query.to_string(), Reason::Absent);
    }
    let answer = reader.query(&query, |reply| match reply {
        Reply::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    });
    match answer.outcome().map(|bytes| parse(bytes)) {
        Ok(Ok(value)) => Observed::known(query.to_string(), value),
        Ok(Err(reason)) => Observed::unavailable(query.to_string(), reason),
        Err(reason) => Observed::unavailable(query.to_string(), reason.clone()),
    }
}

/// The two bytes at `at`, low byte first.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*pair))
}

fn refused(bytes: &[u8]) -> Reason {
    match bytes.first() {
        Some(0) | None => Reason::Malformed(NoReading::TooShort.to_string()),
        Some(&code) => Reason::NotApplicable(NoReading::Refused(code).to_string()),
    }
}

fn reading(bytes: &[u8]) -> Result<PowerReading, Reason> {
    match dcmi::PowerReading::parse(bytes) {
        Ok(dcmi::PowerReading { current_watts, max_watts, average_watts, .. }) => {
            Ok(PowerReading { current_watts, max_watts, average_watts })
        }
        Err(short @ NoReading::TooShort) => Err(Reason::Malformed(short.to_string())),
        Err(other) => Err(Reason::NotApplicable(other.to_string())),
    }
}

fn limit(bytes: &[u8]) -> Result<PowerLimit, Reason> {
    match (bytes.first(), word(bytes, 5)) {
        (Some(0), Some(watts)) => Ok(PowerLimit::Watts(watts)),
        (Some(&NO_LIMIT_SET), _) => Ok(PowerLimit::Unlimited),
        _ => Err(refused(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn a_capped_machine() {
        let power = Query::Ipmi { netfn: 0x2c, command: 2, data: vec![0xdc, 1, 0, 0] };
        let cap = Query::Ipmi { netfn: 0x2c, command: 3, data: vec![0xdc, 0, 0] };
        let host = FakeHost::new(&[("/sys/class/ipmi/ipmi0/dev", "240:0\n")])
            .reply(&power, Reply::Bytes(vec![0, 0xdc, 245, 0, 100, 0, 44, 1, 200, 0, 0, 0, 0, 0]))
            .reply(&cap, Reply::Bytes(vec![0, 0xdc, 0, 0, 0, 0x2c, 1, 0, 0, 0, 0, 0, 0, 0]));
        let bmc = observe(&Reader::new(&host));
        assert_eq!(bmc.power_reading.value().unwrap().current_watts, 245);
        assert_eq!(bmc.power_reading.value().unwrap().max_watts, 300);
        assert_eq!(bmc.power_limit.value(), Some(PowerLimit::Watts(300)));
        assert_eq!(limit(&[0x80]), Ok(PowerLimit::Unlimited));
        assert!(matches!(limit(&[0xc1]), Err(Reason::NotApplicable(_))));
        let none = observe(&Reader::new(&FakeHost::new(&[])));
        assert!(none.present.is_absent() && none.power_limit.is_absent());
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = reading(&bytes);
            let _ = limit(&bytes);
        }
    }
}
