//! What a process writes, in bounded memory.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::OFlags,
    io::{Errno, retry_on_intr},
};

/// At most this much is read at a time, so that the end of the process is seen soon.
const CHUNK: usize = 64 * 1024;
/// After the end, at most this much is read: the largest pipe that root may make is not larger (`pipe-max-size`).
const REST: usize = 1024 * 1024;

/// The reading end of a pipe, and the last bytes that came out of it.
#[derive(Debug, Default)]
pub(super) struct Drain {
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    limit: usize,
    /// Whether earlier bytes were thrown away.
    pub(super) cut: bool,
}

impl Drain {
    /// Keeps the last `limit` bytes of `pipe`.
    pub(super) fn new(pipe: OwnedFd, limit: usize) -> io::Result<Self> {
        // What a process left behind may hold the writing end open: never wait for it.
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Self { pipe: Some(pipe), bytes: Vec::new(), limit, cut: false })
    }

    /// What to poll, until the end has come.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads once. Gives how much there was.
    pub(super) fn read(&mut self) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        let mut chunk = vec![0_u8; CHUNK];
        let count = match retry_on_intr(|| rustix::io::read(pipe, &mut chunk)) {
            Err(Errno::AGAIN) => return Ok(0),
            count => count?,
        };
        if count == 0 {
            self.pipe = None;
        }
        self.bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        // Dropping only when twice the limit is reached moves each byte once on average.
        if self.bytes.len() >= self.limit.saturating_mul(2).max(CHUNK) {
            self.shorten();
        }
        Ok(count)
    }

    /// Reads what is still in the pipe.
    pub(super) fn rest(&mut self) -> io::Result<()> {
        let mut total = 0;
        while total < REST {
            match self.read()? {
                0 => break,
                count => total += count,
            }
        }
        Ok(())
    }

    /// The last bytes.
    pub(super) fn kept(mut self) -> Vec<u8> {
        self.shorten();
        self.bytes
    }

    fn shorten(&mut self) {
        let over = self.bytes.len().saturating_sub(self.limit);
        self.cut |= over > 0;
        self.bytes.drain(..over);
    }
}
