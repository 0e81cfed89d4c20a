//! Network devices, and the state and settings of the network stack.
//!
//! All of it belongs to the network namespace we run in: in a container it is the container's view.

mod bond;
mod counters;
mod ethtool;
mod interface;
mod routes;
mod settings;

use serde::Serialize;

use crate::{Observed, Reader, pcie::Paths};

pub use bond::{Bond, BondMember};
pub use counters::{Conntrack, Protocols, SocketMemory, Softnet};
pub use ethtool::{
    Channels, Coalesce, DriverInfo, Eee, Ethtool, FEATURES, Feature, Link, Pause, Rings, STATISTICS,
};
pub use interface::{Hardware, Interface, Kind, Queue, Queues, Statistics};
pub use settings::Settings;

/// Where the kernel keeps everything about network devices.
pub(crate) const CLASS_DIR: &str = "/sys/class/net";

/// Network devices and the network stack.
#[derive(Debug, Clone, Serialize)]
pub struct Net {
    /// Every interface of this namespace, by name.
    pub interfaces: Observed<Vec<Interface>>,
    /// Interfaces with an IPv4 default route, best first.
    pub default_route: Observed<Vec<String>>,
    /// Interfaces with an IPv6 default route, best first.
    pub default_route_ipv6: Observed<Vec<String>>,
    /// Receive processing per CPU since boot.
    pub softnet: Observed<Vec<Softnet>>,
    /// Counters of the protocols since boot.
    pub protocols: Protocols,
    /// Memory the sockets hold.
    pub socket_memory: SocketMemory,
    /// Connection tracking.
    pub conntrack: Conntrack,
    /// Settings of the stack.
    pub settings: Settings,
}

impl Net {
    /// The interfaces that were found; none when they could not be listed.
    pub fn interfaces(&self) -> &[Interface] {
        self.interfaces.get().map_or(&[], Vec::as_slice)
    }

    /// The interface of this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces().iter().find(|interface| interface.name == name)
    }
}

/// Reads this subsystem.
pub fn observe(reader: &Reader<'_>, paths: &Paths<'_>) -> Net {
    Net {
        interfaces: interface::observe(reader, paths),
        default_route: routes::ipv4(reader),
        default_route_ipv6: routes::ipv6(reader),
        softnet: counters::softnet(reader),
        protocols: counters::protocols(reader),
        socket_memory: counters::socket_memory(reader),
        conntrack: counters::conntrack(reader),
        settings: settings::observe(reader),
    }
}
