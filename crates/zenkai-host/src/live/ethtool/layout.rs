//! The kernel's structures as bytes: pure, checked reading.

use super::link_modes;
use crate::Reply;

/// `struct ethtool_link_settings` without the masks behind it.
pub(super) const LINK_HEAD: usize = 48;
/// Offset of `link_mode_masks_nwords` in it.
pub(super) const LINK_MASK_WORDS: usize = 15;

/// Offset in words and name of what is told of `struct ethtool_ringparam`.
pub(in crate::live) const RINGS: [(usize, &str); 8] = [
    (5, "rx"),
    (1, "rx_max"),
    (6, "rx_mini"),
    (2, "rx_mini_max"),
    (7, "rx_jumbo"),
    (3, "rx_jumbo_max"),
    (8, "tx"),
    (4, "tx_max"),
];
/// The same for `struct ethtool_channels`.
pub(in crate::live) const CHANNELS: [(usize, &str); 8] = [
    (5, "rx"),
    (1, "rx_max"),
    (6, "tx"),
    (2, "tx_max"),
    (7, "other"),
    (3, "other_max"),
    (8, "combined"),
    (4, "combined_max"),
];
/// The same for `struct ethtool_coalesce`.
pub(in crate::live) const COALESCE: [(usize, &str); 22] = [
    (1, "rx_usecs"),
    (2, "rx_frames"),
    (3, "rx_usecs_irq"),
    (5, "tx_usecs"),
    (6, "tx_frames"),
    (7, "tx_usecs_irq"),
    (10, "adaptive_rx"),
    (11, "adaptive_tx"),
    (4, "rx_frames_irq"),
    (8, "tx_frames_irq"),
    (9, "stats_block_usecs"),
    (12, "pkt_rate_low"),
    (13, "rx_usecs_low"),
    (14, "rx_frames_low"),
    (15, "tx_usecs_low"),
    (16, "tx_frames_low"),
    (17, "pkt_rate_high"),
    (18, "rx_usecs_high"),
    (19, "rx_frames_high"),
    (20, "tx_usecs_high"),
    (21, "tx_frames_high"),
    (22, "sample_interval"),
];
/// The same for `struct ethtool_pauseparam`.
pub(in crate::live) const PAUSE: [(usize, &str); 3] = [(1, "autoneg"), (2, "rx"), (3, "tx")];
/// The same for `struct ethtool_wolinfo`.
pub(in crate::live) const WAKE_ON_LAN: [(usize, &str); 2] = [(1, "supported"), (2, "options")];
/// The same for `struct ethtool_eee`.
pub(super) const EEE: [(usize, &str); 4] =
    [(4, "active"), (5, "enabled"), (6, "tx_lpi_enabled"), (7, "tx_lpi_timer_us")];

fn array<const SIZE: usize>(buffer: &[u8], offset: usize) -> Option<[u8; SIZE]> {
    buffer.get(offset..offset.checked_add(SIZE)?)?.try_into().ok()
}

/// The 32-bit number at a byte offset.
pub(in crate::live) fn word(buffer: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(array(buffer, offset)?))
}

/// The 64-bit number at a byte offset.
pub(super) fn wide(buffer: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(array(buffer, offset)?))
}

/// Writes a 32-bit number at a byte offset.
pub(in crate::live) fn put(buffer: &mut [u8], offset: usize, value: u32) {
    let places = buffer.iter_mut().skip(offset);
    places.zip(value.to_ne_bytes()).for_each(|(place, byte)| *place = byte);
}

/// Writes a byte.
pub(super) fn put_byte(buffer: &mut [u8], offset: usize, value: u8) {
    if let Some(place) = buffer.get_mut(offset) {
        *place = value;
    }
}

/// Text up to the first NUL. Drivers have been seen to leave rubbish behind it and bytes that are not UTF-8.
pub(super) fn c_string(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

/// Numbers of 32 bits at known places.
pub(super) fn words(buffer: &[u8], fields: &[(usize, &str)]) -> Option<Reply> {
    let read = |(index, name): &(usize, &str)| {
        Some(((*name).to_owned(), u64::from(word(buffer, index.checked_mul(4)?)?)))
    };
    Some(Reply::Named(fields.iter().map(read).collect::<Option<_>>()?))
}

/// `struct ethtool_drvinfo`. Empty fields and the driver's "N/A" are left out.
pub(super) fn driver(buffer: &[u8]) -> Option<Reply> {
    let fields = [("driver", 4), ("version", 36), ("firmware", 68), ("bus", 100)];
    let mut text = String::new();
    for (name, offset) in fields {
        let value = c_string(&array::<32>(buffer, offset)?);
        if !value.is_empty() && value != "N/A" {
            text.extend([name, " ", value.replace(char::is_control, " ").as_str(), "\n"]);
        }
    }
    Some(Reply::Text(text))
}

/// How many words a mask the kernel wants; it says so negated.
pub(super) fn wanted_mask_words(buffer: &[u8]) -> Option<u8> {
    let shown = i8::from_ne_bytes(array(buffer, LINK_MASK_WORDS)?);
    u8::try_from(i16::from(shown).checked_neg()?).ok().filter(|words| (1..=127).contains(words))
}

/// `struct ethtool_link_settings` with its three masks: supported, advertised, advertised by the partner.
pub(super) fn link(buffer: &[u8]) -> Option<Reply> {
    let byte = |offset: usize| Some(u64::from(*buffer.get(offset)?));
    let speed = word(buffer, 4)?;
    let mut named: Vec<(String, u64)> = Vec::new();
    // SPEED_UNKNOWN is -1; some drivers say 0 without a link.
    if speed != 0 && speed != u32::MAX {
        named.push(("speed_mbps".into(), speed.into()));
    }
    named.push(("duplex".into(), byte(8)?));
    named.push(("autoneg".into(), byte(11)?));
    named.push(("port".into(), byte(9)?));
    let size = usize::from(u8::try_from(byte(LINK_MASK_WORDS)?).ok()?) * 4;
    let masks = ["max_supported_speed_mbps", "max_advertised_speed_mbps", "max_partner_speed_mbps"];
    for (index, name) in masks.iter().enumerate() {
        let start = LINK_HEAD + index * size;
        if let Some(speed) = link_modes::fastest(buffer.get(start..start + size)?) {
            named.push(((*name).to_owned(), speed.into()));
        }
    }
    Some(Reply::Named(named))
}

/// `struct ethtool_gfeatures`: a block of 32 features has the words available, requested, active, never changed.
pub(super) fn features(names: Vec<String>, buffer: &[u8]) -> Option<Reply> {
    let mut pairs = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        let block = 8 + index / 32 * 16;
        let bit = |place: usize| Some(u64::from(word(buffer, block + place * 4)? >> (index % 32) & 1));
        let bits = bit(0)? | bit(2)? << 1 | bit(3)? << 2 | bit(1)? << 3;
        // Bits that this kernel has not given a name to.
        if !name.is_empty() {
            pairs.push((name, bits));
        }
    }
    Some(Reply::Named(pairs))
}

/// `struct ethtool_stats`.
pub(super) fn statistics(names: Vec<String>, buffer: &[u8]) -> Option<Reply> {
    let read = |(index, name): (usize, String)| Some((name, wide(buffer, 8 + index * 8)?));
    let all: Option<Vec<_>> = names.into_iter().enumerate().map(read).collect();
    Some(Reply::Named(all?.into_iter().filter(|(name, _)| !name.is_empty()).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_link_that_could_be_faster() {
        let mut buffer = vec![0; LINK_HEAD + 24];
        put(&mut buffer, 4, 100);
        put_byte(&mut buffer, 8, 1);
        put_byte(&mut buffer, 11, 1);
        put_byte(&mut buffer, LINK_MASK_WORDS, 2);
        put(&mut buffer, LINK_HEAD, 0b10_1111);
        put(&mut buffer, LINK_HEAD + 12, 1 << 15);
        let reply = link(&buffer).unwrap();
        assert_eq!(reply.named("speed_mbps"), Some(100));
        assert_eq!(reply.named("duplex"), Some(1));
        assert_eq!(reply.named("max_supported_speed_mbps"), Some(1000));
        assert_eq!(reply.named("max_advertised_speed_mbps"), Some(2500));
        assert_eq!(reply.named("max_partner_speed_mbps"), None);
        put(&mut buffer, 4, u32::MAX);
        assert_eq!(link(&buffer).unwrap().named("speed_mbps"), None);
        assert_eq!(link(&buffer[..60]), None);
    }

    #[test]
    fn the_handshake() {
        let mut buffer = vec![0; LINK_HEAD];
        assert_eq!(wanted_mask_words(&buffer), None);
        put_byte(&mut buffer, LINK_MASK_WORDS, 0xfd);
        assert_eq!(wanted_mask_words(&buffer), Some(3));
        put_byte(&mut buffer, LINK_MASK_WORDS, 0x80);
        assert_eq!(wanted_mask_words(&buffer), None);
    }

    #[test]
    fn feature_bits() {
        let mut buffer = vec![0; 8 + 32];
        // Feature 1: available, active; feature 33: requested, never changed.
        put(&mut buffer, 8, 2);
        put(&mut buffer, 16, 2);
        put(&mut buffer, 28, 2);
        put(&mut buffer, 36, 2);
        let names = (0..34).map(|index| if index == 5 { String::new() } else { format!("f{index}") });
        let reply = features(names.collect(), &buffer).unwrap();
        assert_eq!(reply.named("f0"), Some(0));
        assert_eq!(reply.named("f1"), Some(3));
        assert_eq!(reply.named("f33"), Some(12));
        assert_eq!(features(vec![String::from("x"); 65], &buffer), None);
    }

    #[test]
    fn text_of_a_driver() {
        let mut buffer = vec![0; 196];
        for (offset, text) in [(4, "virtio_net"), (36, "1.0.0"), (68, "N/A"), (100, "0000:00:03.0")] {
            buffer[offset..offset + text.len()].copy_from_slice(text.as_bytes());
        }
        let Some(Reply::Text(text)) = driver(&buffer) else { panic!() };
        assert_eq!(text, "driver virtio_net\nversion 1.0.0\nbus 0000:00:03.0\n");
        assert_eq!(c_string(b"a\xff\0rubbish"), "a\u{fffd}");
    }

    proptest! {
        #[test]
        fn never_panics(buffer in proptest::collection::vec(any::<u8>(), 0..300), count in 0_usize..80) {
            let names = || vec![String::from("x"); count];
            let _ = (driver(&buffer), link(&buffer), wanted_mask_words(&buffer), words(&buffer, &COALESCE));
            let _ = (features(names(), &buffer), statistics(names(), &buffer));
        }
    }
}
