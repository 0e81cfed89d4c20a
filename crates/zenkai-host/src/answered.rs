//! A host together with the result of the active probe.

use std::io;

use crate::{DirEntry, Host, Query, Reply, probe::Probe};

/// Answers [`Query::Probe`] with a probe that was run before, and passes everything else on. So the probe's result
/// reaches the facts, the checks and a capture on the one way that everything takes.
#[derive(Debug)]
pub struct ProbedHost<H> {
    inner: H,
    probe: Probe,
}

impl<H: Host> ProbedHost<H> {
    /// Adds the result of [`crate::probe::run`] to a host.
    pub fn new(inner: H, probe: Probe) -> Self {
        Self { inner, probe }
    }
}

impl<H: Host> Host for ProbedHost<H> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.inner.read(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        self.inner.list(dir)
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        self.inner.resolve(path)
    }

    fn query(&self, query: &Query) -> io::Result<Reply> {
        match query {
            Query::Probe => Ok(Reply::Text(serde_json::to_string(&self.probe)?)),
            other => self.inner.query(other),
        }
    }
}
