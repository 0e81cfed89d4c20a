//! Counts what each subsystem asks of the machine.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use zenkai_facts as facts;
use zenkai_facts::Reader;
use zenkai_host::{Capture, DirEntry, FakeHost, Host, Query, Reply};

/// A captured machine.
pub(crate) fn machine(capture: &str) -> anyhow::Result<FakeHost> {
    Ok(FakeHost::from_capture(Capture::parse(capture)?))
}

/// Opening this file, which is nowhere, marks the end of a subsystem in a trace of system calls.
pub(crate) const MARK: &str = "/zenkai-bench/";

/// Counts the questions that reach another host.
struct Counting<'h> {
    host: &'h dyn Host,
    asked: AtomicUsize,
}

impl Counting<'_> {
    fn count(&self) -> &dyn Host {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.host
    }
}

impl Host for Counting<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.count().read(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        self.count().list(dir)
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        self.count().resolve(path)
    }

    fn query(&self, query: &Query) -> io::Result<Reply> {
        self.count().query(query)
    }
}

/// How many questions each subsystem asks, in the order of `zenkai_facts::observe`. After each the host is asked for
/// a file of its name below [`MARK`].
pub(crate) fn by_subsystem(host: &dyn Host) -> Vec<(&'static str, usize)> {
    let counting = Counting { host, asked: AtomicUsize::new(0) };
    let reader = Reader::new(&counting);
    let mut counts = Vec::new();
    let mut done = |name: &'static str| {
        counts.push((name, counting.asked.swap(0, Ordering::Relaxed)));
        // Nothing is there to read; only the attempt is of use.
        let _ = host.read(&format!("{MARK}{name}"));
    };
    done("start");
    let cpu = facts::cpu::observe(&reader);
    done("cpu");
    let virtualisation = facts::virtualisation::observe(&reader);
    done("virtualisation");
    let paths = facts::pcie::Paths::new(&reader);
    let kernel = facts::kernel::observe(&reader);
    done("kernel");
    let net = facts::net::observe(&reader, &paths);
    done("net");
    facts::idle::observe(&reader, &cpu);
    done("idle");
    facts::thermal::observe(&reader, &cpu, &virtualisation);
    done("thermal");
    facts::msr::observe(&reader, &cpu, &virtualisation);
    done("msr");
    facts::vulnerabilities::observe(&reader, &kernel);
    done("vulnerabilities");
    facts::numa::observe(&reader);
    done("numa");
    facts::memory::observe(&reader);
    done("memory");
    facts::sysctl_files::observe(&reader);
    done("sysctl_files");
    facts::cgroup::observe(&reader);
    done("cgroup");
    facts::block::observe(&reader, &paths);
    done("block");
    facts::pcie::observe(&reader, &paths);
    done("pcie");
    facts::irq::observe(&reader, &net);
    done("irq");
    facts::firmware::observe(&reader);
    done("firmware");
    facts::power::observe(&reader);
    done("power");
    facts::services::observe(&reader);
    done("services");
    counts
}
