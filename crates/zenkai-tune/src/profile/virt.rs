//! What `virt-what` would print, from our own facts and without a child process.

use zenkai_facts::{
    Reader,
    virtualisation::{self, Container, Kind},
};
use zenkai_host::Host;

/// The words, one a line in virt-what's output; none on metal. An error where it cannot be told.
pub(crate) fn words(host: &dyn Host) -> Result<Vec<String>, String> {
    let reader = Reader::new(host);
    let facts = virtualisation::observe(&reader);
    let mut words: Vec<String> = Vec::new();
    if let Some(Some(container)) = facts.container.get() {
        words.push(container_word(*container).to_owned());
    }
    match facts.kind.get() {
        Some(kind) => words.extend(kind_words(kind).iter().map(|word| (*word).to_owned())),
        None if words.is_empty() => return Err("whether this is a virtual machine cannot be told".to_owned()),
        None => {}
    }
    if let Some(Kind::Other(name)) = facts.kind.get() {
        words.push(name.clone());
    }
    if facts.is_guest() == Some(true)
        && reader.text("/sys/class/dmi/id/sys_vendor").text() == Some("Amazon EC2")
    {
        words.push("aws".to_owned());
    }
    Ok(words)
}

/// virt-what(1), "FACTS".
fn kind_words(kind: &Kind) -> &'static [&'static str] {
    match kind {
        Kind::Metal | Kind::Other(_) => &[],
        Kind::Kvm | Kind::Firecracker => &["kvm"],
        Kind::Vmware => &["vmware"],
        Kind::HyperV | Kind::HyperVRoot => &["hyperv"],
        Kind::XenDom0 => &["xen", "xen-dom0"],
        Kind::XenPv | Kind::XenPvh => &["xen", "xen-domU"],
        Kind::XenHvm => &["xen", "xen-hvm"],
        Kind::Qemu => &["qemu"],
    }
}

fn container_word(container: Container) -> &'static str {
    match container {
        Container::Docker => "docker",
        Container::Podman => "podman",
        Container::Lxc => "lxc",
        Container::SystemdNspawn => "systemd_nspawn",
        Container::Kubernetes | Container::Other => "oci",
    }
}
