//! A host together with what was found out about it before.

use std::io;

use crate::{DirEntry, Host, Query, Reply};

/// Answers one query with a reply that is known already, and passes everything else on. So the active probe's result, and
/// what a profile's comparison says, reach the facts, the checks and a capture on the one way that everything takes.
#[derive(Debug)]
pub struct AnsweredHost<H> {
    inner: H,
    query: Query,
    reply: Reply,
}

impl<H: Host> AnsweredHost<H> {
    /// Adds the reply to one query to a host.
    pub fn new(inner: H, query: Query, reply: Reply) -> Self {
        Self { inner, query, reply }
    }
}

impl<H: Host> Host for AnsweredHost<H> {
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
        if *query == self.query { Ok(self.reply.clone()) } else { self.inner.query(query) }
    }
}
