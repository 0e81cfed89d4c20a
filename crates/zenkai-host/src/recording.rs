//! A host that remembers everything it was asked: the source of captures.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Capture, DirEntry, Host, Query, Reply};

/// Passes every question on and keeps the answer, the errors too.
#[derive(Debug)]
pub struct RecordingHost<H> {
    inner: H,
    capture: Mutex<Capture>,
}

impl<H: Host> RecordingHost<H> {
    /// Records what is asked of `inner` from now on.
    pub fn new(inner: H) -> Self {
        Self { inner, capture: Mutex::new(Capture::default()) }
    }

    /// The machine itself: what is asked of it here is not recorded.
    pub fn inner(&self) -> &H {
        &self.inner
    }

    /// What was recorded, exactly as read: call [`Capture::anonymised`] before it leaves the machine.
    pub fn into_capture(self) -> Capture {
        self.capture.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files that were asked for so far, by path.
    pub fn read_paths(&self) -> Vec<String> {
        self.capture().read_paths().map(str::to_owned).collect()
    }

    fn capture(&self) -> MutexGuard<'_, Capture> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Host> Host for RecordingHost<H> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let result = self.inner.read(path);
        self.capture().record_read(path, &result);
        result
    }

    fn list(&self, dir: &str) -> io::Result<Vec<DirEntry>> {
        let result = self.inner.list(dir);
        self.capture().record_list(dir, &result);
        result
    }

    fn resolve(&self, path: &str) -> io::Result<String> {
        let result = self.inner.resolve(path);
        self.capture().record_link(path, &result);
        result
    }

    fn query(&self, query: &Query) -> io::Result<Reply> {
        let result = self.inner.query(query);
        self.capture().record_query(query, &result);
        result
    }
}
