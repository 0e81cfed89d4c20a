//! The "set" commands of the ethtool ioctl: what is there is read, the named numbers are changed, and all of it is
//! handed back, so that what has no name here stays as it is.

use std::{collections::HashMap, io};

use rustix::io::Errno;

use super::ethtool::{self, Device, layout};
use crate::{EthtoolRequest, Reply};

const SWOL: u32 = 0x06;
const SCOALESCE: u32 = 0x0f;
const SRINGPARAM: u32 = 0x11;
const SPAUSEPARAM: u32 = 0x13;
const SFEATURES: u32 = 0x3b;
const SCHANNELS: u32 = 0x3d;

/// A structure of 32-bit words: how it is read and written, its size in bytes, and the names of its words.
struct Words {
    get: u32,
    set: u32,
    size: usize,
    fields: &'static [(usize, &'static str)],
}

/// Sets the numbers of a text as [`crate::Knob::Ethtool`] has it. A name that the request does not have is `EINVAL`.
pub(super) fn set(device: &str, request: EthtoolRequest, text: &str) -> io::Result<()> {
    let numbers = parse(text).ok_or(Errno::INVAL)?;
    let words = |get, set, size, fields| Words { get, set, size, fields };
    let words = match request {
        EthtoolRequest::Rings => words(ethtool::GRINGPARAM, SRINGPARAM, 36, &layout::RINGS),
        EthtoolRequest::Channels => words(ethtool::GCHANNELS, SCHANNELS, 36, &layout::CHANNELS),
        EthtoolRequest::Coalesce => words(ethtool::GCOALESCE, SCOALESCE, 92, &layout::COALESCE),
        EthtoolRequest::Pause => words(ethtool::GPAUSEPARAM, SPAUSEPARAM, 16, &layout::PAUSE),
        EthtoolRequest::WakeOnLan => words(ethtool::GWOL, SWOL, 20, &layout::WAKE_ON_LAN),
        EthtoolRequest::Features => return set_features(device, &numbers),
        _ => return Err(Errno::OPNOTSUPP.into()),
    };
    let device = Device::open(device)?;
    let mut buffer = device.ask(words.get, words.size)?;
    for (name, number) in numbers {
        let settable = |(_, known): &&(usize, &str)| *known == name && !limit(known);
        let (index, _) = words.fields.iter().find(settable).ok_or(Errno::INVAL)?;
        layout::put(&mut buffer, index * 4, number);
    }
    layout::put(&mut buffer, 0, words.set);
    device.call(&mut buffer)
}

/// Names of what the kernel tells and does not take.
fn limit(name: &str) -> bool {
    name.ends_with("_max") || name == "supported"
}

/// Asks for the features that differ. What the kernel cannot do together with others it leaves as it is, without an
/// error (`__netdev_update_features()`); reading back shows it.
fn set_features(device: &str, wanted: &HashMap<&str, u32>) -> io::Result<()> {
    let Reply::Named(shown) = ethtool::query(device, EthtoolRequest::Features)? else {
        return Err(Errno::PROTO.into());
    };
    let shown: HashMap<&str, u64> = shown.iter().map(|(name, bits)| (name.as_str(), *bits)).collect();
    if wanted.keys().any(|name| !shown.contains_key(name)) || wanted.values().any(|number| *number > 1) {
        return Err(Errno::INVAL.into());
    }
    let device = Device::open(device)?;
    let names = device.strings(ethtool::SET_FEATURES)?;
    // struct ethtool_sfeatures: command, number of blocks, then the words valid and requested for each block.
    let blocks = names.len().div_ceil(32);
    let mut buffer = vec![0; 8 + blocks * 8];
    layout::put(&mut buffer, 0, SFEATURES);
    layout::put(&mut buffer, 4, u32::try_from(blocks).map_err(|_| Errno::FBIG)?);
    let mut any = false;
    for (index, name) in names.iter().enumerate() {
        let (Some(&number), Some(&bits)) = (wanted.get(name.as_str()), shown.get(name.as_str())) else {
            continue;
        };
        if u64::from(number) == bits >> 1 & 1 {
            continue;
        }
        any = true;
        let place = 8 + index / 32 * 8;
        let mut raise = |at: usize, bit: u32| {
            let word = layout::word(&buffer, at).unwrap_or(0);
            layout::put(&mut buffer, at, word | bit << (index % 32));
        };
        raise(place, 1);
        raise(place + 4, number);
    }
    if any { device.call(&mut buffer) } else { Ok(()) }
}

/// `name=number` pairs.
fn parse(text: &str) -> Option<HashMap<&str, u32>> {
    text.split_whitespace()
        .map(|pair| {
            let (name, number) = pair.split_once('=')?;
            Some((name, number.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Knob, LiveHost, TunableHost, Value, value};

    #[test]
    fn nonsense_is_refused_before_the_kernel_sees_it() {
        for text in ["rx", "rx=x", "rx=-1", "rx=4294967296"] {
            assert!(parse(text).is_none(), "{text}");
        }
        let errno = |result: io::Result<()>| result.unwrap_err().raw_os_error();
        let unknown = errno(set("lo", EthtoolRequest::Features, "no-such-feature=1"));
        assert_eq!(unknown, Some(Errno::INVAL.raw_os_error()));
        let refused = errno(set("lo", EthtoolRequest::Driver, ""));
        assert_eq!(refused, Some(Errno::OPNOTSUPP.raw_os_error()));
    }

    /// In a network namespace of its own, where the loopback device is nobody's; without the right to make one there
    /// is nothing to see.
    #[test]
    #[expect(unsafe_code, reason = "leaving the namespace of the process is unsafe in rustix")]
    fn a_feature_goes_off_and_on_again() {
        std::thread::spawn(|| {
            // SAFETY: only this thread leaves the network namespace; it owns no socket of the old one.
            let own = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) };
            if own.is_err() {
                return;
            }
            let knob = Knob::Ethtool { device: "lo".into(), request: EthtoolRequest::Features };
            let before = value(&LiveHost, &knob).unwrap();
            let text = before.text().unwrap();
            assert!(text.contains("tx-tcp-segmentation=1"), "{text}");
            let off = text.replace("tx-tcp-segmentation=1", "tx-tcp-segmentation=0");
            LiveHost.set(&knob, &off.as_str().into()).unwrap();
            let reply = LiveHost
                .query(&crate::Query::Ethtool { device: "lo".into(), request: EthtoolRequest::Features })
                .unwrap();
            assert_eq!(reply.named("tx-tcp-segmentation").unwrap() & 2, 0);
            // The kernel takes away what depends on it (`netdev_fix_features()`), and undoing gives both back.
            assert!(reply.named("tx-tcp-mangleid-segmentation").is_none_or(|bits| bits & 2 == 0));
            let gro = text.replace("rx-gro=1", "rx-gro=0");
            LiveHost.set(&knob, &gro.as_str().into()).unwrap();
            assert_eq!(value(&LiveHost, &knob).unwrap(), Value::Text(gro));
            LiveHost.set(&knob, &before).unwrap();
            assert_eq!(value(&LiveHost, &knob).unwrap(), before);
            let rings = Knob::Ethtool { device: "lo".into(), request: EthtoolRequest::Rings };
            let missing = LiveHost.set(&rings, &"rx=1".into()).unwrap_err();
            assert_eq!(missing.raw_os_error(), Some(Errno::OPNOTSUPP.raw_os_error()));
        })
        .join()
        .unwrap();
    }
}
