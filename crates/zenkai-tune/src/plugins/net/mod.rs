//! `net`: network cards.

mod parameters;

use zenkai_host::{EthtoolRequest, Knob, Query};

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Hold, Instance, OptionText, Scene};

const HASHSIZE: &str = "/sys/module/nf_conntrack/parameters/hashsize";

pub(super) static PLUGIN: Plugin = Plugin {
    name: "net",
    summary: "Tunes network cards",
    options: &[
        OptionSpec { name: "dynamic", help: "1 to follow the load; needs a living process", default: "" },
        OptionSpec {
            name: "wake_on_lan",
            help: "letters of p u m b a g s f, or d for none (ethtool(8) wol)",
            default: "",
        },
        OptionSpec {
            name: "nf_conntrack_hashsize",
            help: "buckets of the connection tracking table",
            default: "",
        },
        OptionSpec { name: "features", help: "pairs of feature and on or off (ethtool -K)", default: "" },
        OptionSpec { name: "coalesce", help: "pairs of parameter and number (ethtool -C)", default: "" },
        OptionSpec {
            name: "pause",
            help: "pairs of autoneg, rx, tx and on or off (ethtool -A)",
            default: "",
        },
        OptionSpec {
            name: "ring",
            help: "pairs of rx, tx, rx-mini, rx-jumbo and number (ethtool -G)",
            default: "",
        },
        OptionSpec {
            name: "channels",
            help: "pairs of rx, tx, other, combined and number (ethtool -L)",
            default: "",
        },
        OptionSpec { name: "txqueuelen", help: "packets in the transmit queue", default: "" },
        OptionSpec { name: "mtu", help: "bytes in a packet", default: "" },
    ],
    devices: Some(devices),
    plan,
};

/// Cards: bridges, tunnels, veth and their like lie below `/sys/devices/virtual`.
fn devices(scene: &Scene) -> Vec<String> {
    let real = |name: &String| {
        scene
            .host
            .resolve(&format!("/sys/class/net/{name}"))
            .is_ok_and(|path| path.starts_with("/sys/devices/") && !path.starts_with("/sys/devices/virtual/"))
    };
    scene.names("/sys/class/net").into_iter().filter(real).collect()
}

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    for option in instance.options.iter().filter(|option| !option.value.trim().is_empty()) {
        match option.name.as_str() {
            "dynamic" => {
                if matches!(option.value.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on") {
                    wishes.hold(option, "", Hold::Dynamic);
                }
            }
            "nf_conntrack_hashsize" => {
                wishes.set_modified(scene, option, "", Knob::Attribute(HASHSIZE.to_owned()));
            }
            name => instance.devices.iter().for_each(|device| one(scene, option, name, device, wishes)),
        }
    }
}

fn one(scene: &Scene, option: &OptionText, name: &str, device: &str, wishes: &mut Wishes) {
    let attribute = |file: &str| Knob::Attribute(format!("/sys/class/net/{device}/{file}"));
    let (request, risk) = match name {
        "txqueuelen" => {
            wishes.set_modified(scene, option, device, attribute("tx_queue_len"));
            return;
        }
        "mtu" => {
            wishes.set_modified(scene, option, device, attribute("mtu")).risk =
                Some("many drivers take the link down for a moment".to_owned());
            return;
        }
        "wake_on_lan" => (EthtoolRequest::WakeOnLan, None),
        "features" => (EthtoolRequest::Features, None),
        "coalesce" => (EthtoolRequest::Coalesce, None),
        "pause" => (EthtoolRequest::Pause, Some("the link is negotiated anew")),
        "ring" => (EthtoolRequest::Rings, Some("many drivers take the link down for a moment")),
        "channels" => {
            (EthtoolRequest::Channels, Some("many drivers take the link down and place interrupts anew"))
        }
        _ => return,
    };
    let knob = Knob::Ethtool { device: device.to_owned(), request };
    // Parameters that are not named keep what they had before the profile in force.
    let shown = scene.before(&knob);
    let Some(text) = shown.as_ref().ok().and_then(|shown| shown.text()) else {
        // The plan says why it cannot be read.
        wishes.set(option, device, knob, option.value.trim());
        return;
    };
    let limits = scene.host.query(&Query::Ethtool { device: device.to_owned(), request }).ok();
    match parameters::wanted(request, &option.value, text, limits.as_ref()) {
        Ok(to) => wishes.set(option, device, knob, to).risk = risk.map(str::to_owned),
        Err((fault, why)) => {
            let why = if fault == Fault::Machine { format!("{device}: {why}") } else { why };
            wishes.cannot(option, device, fault, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Reply};

    use super::*;
    use crate::plugins::testing::Bench;

    fn bench() -> Bench {
        let named = |pairs: &[(&str, u64)]| {
            Reply::Named(pairs.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect())
        };
        let ask = |request| Query::Ethtool { device: "eth0".into(), request };
        let host = FakeHost::new(&[
            ("/sys/devices/pci0/net/eth0/mtu", "1500\n"),
            ("/sys/devices/pci0/net/eth0/tx_queue_len", "1000\n"),
            ("/sys/devices/virtual/net/lo/mtu", "65536\n"),
        ])
        .link("/sys/class/net/eth0", "/sys/devices/pci0/net/eth0")
        .link("/sys/class/net/lo", "/sys/devices/virtual/net/lo")
        .reply(
            &ask(EthtoolRequest::Rings),
            named(&[
                ("rx", 256),
                ("rx_max", 4096),
                ("rx_mini", 0),
                ("rx_mini_max", 0),
                ("tx", 256),
                ("tx_max", 4096),
            ]),
        )
        .reply(
            &ask(EthtoolRequest::Channels),
            named(&[
                ("rx", 0),
                ("rx_max", 0),
                ("tx", 0),
                ("tx_max", 0),
                ("combined", 8),
                ("combined_max", 16),
            ]),
        )
        .reply(
            &ask(EthtoolRequest::Features),
            named(&[
                ("rx-gro", 3),
                ("tx-tcp-segmentation", 3),
                ("tx-tcp-mangleid-segmentation", 1),
                ("rx-lro", 0),
            ]),
        )
        .reply(&ask(EthtoolRequest::Coalesce), named(&[("rx_usecs", 50), ("adaptive_rx", 1)]))
        .reply(&ask(EthtoolRequest::WakeOnLan), named(&[("supported", 0x2e), ("options", 0x20)]));
        Bench::on("net", host)
    }

    #[test]
    fn a_group_is_one_knob() {
        assert_eq!(
            bench().plan(&[("ring", "rx 4096, tx 512"), ("coalesce", "adaptive-rx off rx-usecs 3")]).lines(),
            "eth0 rings: rx=256 rx_mini=0 tx=256 -> rx=4096 rx_mini=0 tx=512\n\
             eth0 coalesce: rx_usecs=50 adaptive_rx=1 -> rx_usecs=3 adaptive_rx=0\n"
        );
        assert_eq!(
            bench().plan(&[("ring", "rx 8192")]).lines(),
            "cannot: eth0: rx can be 4096 at most, not 8192\n"
        );
        assert_eq!(
            bench().plan(&[("ring", "rx-mini 8")]).lines(),
            "cannot: eth0: rx-mini can be 0 at most, not 8\n"
        );
        assert_eq!(
            bench().plan(&[("coalesce", "cqe-mode-rx on")]).lines(),
            "cannot: eth0: the driver has no cqe-mode-rx\n"
        );
    }

    #[test]
    fn queues_are_named_as_the_driver_has_them() {
        let lines = |value: &str| bench().plan(&[("channels", value)]).lines();
        assert_eq!(lines("rx 4 tx 2"), "eth0 channels: rx=0 tx=0 combined=8 -> rx=0 tx=0 combined=4\n");
        assert_eq!(lines("combined 8"), "eth0 channels: rx=0 tx=0 combined=8\n");
    }

    #[test]
    fn features_by_their_short_names() {
        let lines = |value: &str| bench().plan(&[("features", value)]).lines();
        let before = "eth0 features: rx-gro=1 tx-tcp-segmentation=1 tx-tcp-mangleid-segmentation=0";
        assert_eq!(
            lines("gro off"),
            format!("{before} -> rx-gro=0 tx-tcp-segmentation=1 tx-tcp-mangleid-segmentation=0\n")
        );
        assert_eq!(lines("tso on"), format!("{before}\n"));
        assert_eq!(lines("lro on"), "cannot: eth0: the driver does not let lro be changed\n");
        assert_eq!(lines("gro maybe"), "cannot: gro is on or off, not `maybe`\n");
        assert_eq!(lines("gro"), "cannot: gro has no value\n");
    }

    #[test]
    fn wake_on_lan_and_files() {
        assert_eq!(
            bench().plan(&[("wake_on_lan", "d")]).lines(),
            "eth0 wake-on-lan: options=32 -> options=0\n"
        );
        assert_eq!(
            bench().plan(&[("wake_on_lan", "gu")]).lines(),
            "eth0 wake-on-lan: options=32 -> options=34\n"
        );
        assert!(bench().plan(&[("wake_on_lan", "p")]).lines().starts_with("cannot: eth0: the card cannot"));
        assert!(bench().plan(&[("wake_on_lan", "x")]).lines().starts_with("cannot: `x` is no"));
        assert_eq!(
            bench()
                .plan(&[("mtu", "9000"), ("txqueuelen", ">500"), ("dynamic", "1"), ("pause", "rx on")])
                .lines(),
            "/sys/class/net/eth0/mtu: 1500 -> 9000\n\
             leave: /sys/class/net/eth0/tx_queue_len is 1000, not below 500\nhold: Dynamic\n\
             cannot: eth0 pause does not exist here\n"
        );
    }
}
