//! Whether zenkai runs inside a container.

use serde::Serialize;

use crate::{Observed, Reader, Reason};

/// What runs the container we are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// Docker.
    Docker,
    /// Podman, or another tool built on libpod.
    Podman,
    /// LXC, LXD or Incus.
    Lxc,
    /// systemd-nspawn.
    SystemdNspawn,
    /// A Kubernetes pod, whatever its runtime.
    Kubernetes,
    /// Some other.
    Other,
}

/// Markers come first, since a container manager sets them on purpose; what control groups and process numbers
/// tell comes after. `/.dockerenv` alone proves nothing: images made with docker carry it into virtual machines.
pub(super) fn observe(reader: &Reader<'_>) -> Observed<Option<Container>> {
    if let Some(found) = kubernetes(reader) {
        return found;
    }
    let told = reader.text("/run/systemd/container");
    if let Some(name) = told.text() {
        let container = named(name);
        return told.map(|_| Some(container));
    }
    let podman = reader.bytes("/run/.containerenv");
    if podman.get().is_some() {
        return podman.map(|_| Some(Container::Podman));
    }
    for path in ["/proc/self/cgroup", "/proc/1/cgroup"] {
        let groups = reader.text(path);
        if let Some(container) = groups.text().and_then(by_control_group) {
            return groups.map(|_| Some(container));
        }
    }
    by_process_numbers(reader)
}

/// A pod is given a service account unless it asks for none.
fn kubernetes(reader: &Reader<'_>) -> Option<Observed<Option<Container>>> {
    let secrets = reader.names("/run/secrets/kubernetes.io");
    secrets.get().is_some().then(|| secrets.map(|_| Some(Container::Kubernetes)))
}

fn named(name: &str) -> Container {
    match name {
        "docker" => Container::Docker,
        "podman" => Container::Podman,
        "lxc" | "lxc-libvirt" => Container::Lxc,
        "systemd-nspawn" => Container::SystemdNspawn,
        _ => Container::Other,
    }
}

/// Without a control group namespace, a process in a container sees the path its runtime made for it. The path of
/// the runtime's own service (`/system.slice/docker.service`) is not one.
fn by_control_group(groups: &str) -> Option<Container> {
    let parts = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/'));
    for part in parts {
        let container = match part {
            _ if part.starts_with("kubepods") => Container::Kubernetes,
            "docker" => Container::Docker,
            _ if part.starts_with("docker-") && part.rsplit('.').next() == Some("scope") => Container::Docker,
            _ if part.starts_with("libpod-") => Container::Podman,
            "lxc" => Container::Lxc,
            _ if part.starts_with("lxc.payload") => Container::Lxc,
            _ => continue,
        };
        return Some(container);
    }
    None
}

/// In the initial process namespace, and only there, process 2 is the kernel's `kthreadd` (`init/main.c`).
fn by_process_numbers(reader: &Reader<'_>) -> Observed<Option<Container>> {
    let second = reader.text("/proc/2/comm");
    if second.text() == Some("kthreadd") {
        return second.map(|_| None);
    }
    let first = reader.text("/proc/1/comm");
    if first.get().is_none() {
        // Not even process 1 is visible (`hidepid=`, or no /proc): the absence of others proves nothing.
        let reason = first.reason().cloned().unwrap_or(Reason::Absent);
        return Observed::unavailable(first.source(), reason);
    }
    if second.get().is_none() && !second.is_absent() {
        return second.map(|_| None);
    }
    let docker = reader.bytes("/.dockerenv");
    if docker.get().is_some() {
        return docker.map(|_| Some(Container::Docker));
    }
    Observed::known(second.source(), Some(Container::Other))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    fn container(files: &[(&str, &str)]) -> Observed<Option<Container>> {
        observe(&Reader::new(&FakeHost::new(files)))
    }

    const INIT: [(&str, &str); 2] = [("/proc/1/comm", "systemd\n"), ("/proc/2/comm", "kthreadd\n")];

    #[test]
    fn markers_and_paths() {
        let of = |path: &str, content: &str| container(&[(path, content)]).value().flatten();
        assert_eq!(of("/run/systemd/container", "lxc\n"), Some(Container::Lxc));
        assert_eq!(of("/run/.containerenv", ""), Some(Container::Podman));
        assert_eq!(of("/run/secrets/kubernetes.io/serviceaccount", ""), Some(Container::Kubernetes));
        assert_eq!(of("/proc/self/cgroup", "0::/docker/0123\n"), Some(Container::Docker));
        assert_eq!(of("/proc/self/cgroup", "3:cpu:/kubepods/burstable/pod1\n"), Some(Container::Kubernetes));
        assert_eq!(of("/proc/self/cgroup", "0::/system.slice/docker.service\n"), None);
    }

    #[test]
    fn an_image_made_with_docker_is_not_a_container() {
        let files = [INIT.as_slice(), &[("/.dockerenv", ""), ("/proc/self/cgroup", "0::/\n")]].concat();
        assert_eq!(container(&files).value(), Some(None));
    }

    #[test]
    fn a_namespace_of_its_own() {
        let docker = [("/proc/1/comm", "nginx\n"), ("/.dockerenv", ""), ("/proc/self/cgroup", "0::/\n")];
        assert_eq!(container(&docker).value(), Some(Some(Container::Docker)));
        assert_eq!(container(&docker[..1]).value(), Some(Some(Container::Other)));
        assert_eq!(container(&[]).value(), None, "nothing visible, nothing claimed");
    }
}
