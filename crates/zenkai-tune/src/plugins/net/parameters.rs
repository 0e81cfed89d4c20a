//! ethtool's words for the parameters of a card, and what a knob is to show for them.

use zenkai_host::{EthtoolRequest, Reply};

use crate::Fault;

type Refusal = (Fault, String);

/// ethtool's short and long words for features, and what the kernel calls them; one that ends in `-` is the beginning of several.
const FEATURES: &[(&str, &str, &[&str])] = &[
    ("rx", "rx-checksumming", &["rx-checksum"]),
    ("tx", "tx-checksumming", &["tx-checksum-"]),
    ("sg", "scatter-gather", &["tx-scatter-gather"]),
    ("tso", "tcp-segmentation-offload", &["tx-tcp-", "tx-tcp6-"]),
    ("ufo", "udp-fragmentation-offload", &["tx-udp-fragmentation"]),
    ("gso", "generic-segmentation-offload", &["tx-generic-segmentation"]),
    ("gro", "generic-receive-offload", &["rx-gro"]),
    ("lro", "large-receive-offload", &["rx-lro"]),
    ("rxvlan", "rx-vlan-offload", &["rx-vlan-hw-parse"]),
    ("txvlan", "tx-vlan-offload", &["tx-vlan-hw-insert"]),
    ("ntuple", "ntuple-filters", &["rx-ntuple-filter"]),
    ("rxhash", "receive-hashing", &["rx-hashing"]),
];

/// The letters of ethtool's `wol`, by the bit of `WAKE_*` in `linux/ethtool.h`.
const WAKE: &str = "pumbagsf";

/// The knob's text with what is asked changed.
pub(super) fn wanted(
    request: EthtoolRequest,
    asked: &str,
    shown: &str,
    limits: Option<&Reply>,
) -> Result<String, Refusal> {
    let mut numbers: Vec<(String, u64)> = shown
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .filter_map(|(name, number)| Some((name.to_owned(), number.parse().ok()?)))
        .collect();
    if request == EthtoolRequest::WakeOnLan {
        let supported = limits.and_then(|limits| limits.named("supported"));
        return wake(asked.trim(), supported).map(|options| format!("options={options}"));
    }
    let mut asked = pairs(asked)?;
    if request == EthtoolRequest::Channels {
        asked = queues(asked, limits)?;
    }
    for (name, value) in asked {
        if request == EthtoolRequest::Features {
            let on = switch(&value)
                .ok_or_else(|| (Fault::Profile, format!("{name} is on or off, not `{value}`")))?;
            set_feature(&mut numbers, &name, on)?;
            continue;
        }
        let number = switch(&value).or_else(|| value.parse::<u32>().ok().map(u64::from));
        let Some(number) = number else {
            return Err((Fault::Profile, format!("{name} is a number, on or off, not `{value}`")));
        };
        let field = name.replace('-', "_");
        if let Some(most) = limits.and_then(|limits| limits.named(&format!("{field}_max")))
            && number > most
        {
            return Err((Fault::Machine, format!("{name} can be {most} at most, not {number}")));
        }
        let place = numbers.iter_mut().find(|(known, _)| *known == field);
        place.ok_or_else(|| (Fault::Machine, format!("the driver has no {name}")))?.1 = number;
    }
    let words: Vec<String> = numbers.iter().map(|(name, number)| format!("{name}={number}")).collect();
    Ok(words.join(" "))
}

/// Names and values by turns, separated by blanks, commas, colons or semicolons.
fn pairs(asked: &str) -> Result<Vec<(String, String)>, Refusal> {
    let words: Vec<&str> = asked
        .split(|letter: char| letter.is_whitespace() || ",:;=".contains(letter))
        .filter(|word| !word.is_empty())
        .collect();
    words
        .chunks(2)
        .map(|pair| match pair {
            [name, value] => Ok(((*name).to_owned(), (*value).to_owned())),
            _ => Err((Fault::Profile, format!("{} has no value", pair.concat()))),
        })
        .collect()
}

fn switch(value: &str) -> Option<u64> {
    match value {
        "on" => Some(1),
        "off" => Some(0),
        _ => None,
    }
}

/// Queues in the way the driver has them: a card with combined queues only gets the larger of `rx` and `tx`, one
/// without gets `combined` for both.
fn queues(asked: Vec<(String, String)>, limits: Option<&Reply>) -> Result<Vec<(String, String)>, Refusal> {
    let most = |name: &str| limits.and_then(|limits| limits.named(name)).unwrap_or(0);
    let (both, apart) = (most("combined_max") > 0, most("rx_max") > 0 || most("tx_max") > 0);
    let mut result: Vec<(String, String)> = Vec::new();
    let mut combined: Option<u64> = None;
    for (name, value) in asked {
        match name.as_str() {
            "combined" if !both && apart => {
                result.extend(["rx", "tx"].map(|name| (name.to_owned(), value.clone())));
            }
            "rx" | "tx" if both && !apart => {
                let number = value
                    .parse()
                    .map_err(|_| (Fault::Profile, format!("{name} is a number, not `{value}`")))?;
                combined = combined.max(Some(number));
            }
            _ => result.push((name, value)),
        }
    }
    result.extend(combined.map(|number| ("combined".to_owned(), number.to_string())));
    Ok(result)
}

fn set_feature(numbers: &mut [(String, u64)], name: &str, on: u64) -> Result<(), Refusal> {
    let group = FEATURES.iter().find(|(short, long, _)| name == *short || name == *long);
    let mut any = false;
    for (known, number) in numbers.iter_mut() {
        let matches = group.map_or(known == name, |(_, _, starts)| {
            starts
                .iter()
                .any(|start| if start.ends_with('-') { known.starts_with(start) } else { known == start })
        });
        if !matches {
            continue;
        }
        any = true;
        // Drivers keep it off because it changes the IP header's id field, which breaks fragments: only its own
        // name switches it on.
        if group.is_none() || on == 0 || known != "tx-tcp-mangleid-segmentation" {
            *number = on;
        }
    }
    if any { Ok(()) } else { Err((Fault::Machine, format!("the driver does not let {name} be changed"))) }
}

/// The mask for wake-on-LAN letters.
fn wake(letters: &str, supported: Option<u64>) -> Result<u64, Refusal> {
    let mut mask = 0;
    for letter in letters.chars() {
        match (letter, WAKE.find(letter)) {
            ('d', _) => mask = 0,
            (_, Some(bit)) => mask |= 1 << bit,
            _ => {
                return Err((Fault::Profile, format!("`{letter}` is no letter of {WAKE}, nor d for none")));
            }
        }
    }
    match supported {
        Some(supported) if mask & !supported != 0 => {
            Err((Fault::Machine, format!("the card cannot be woken by {letters}")))
        }
        _ => Ok(mask),
    }
}
