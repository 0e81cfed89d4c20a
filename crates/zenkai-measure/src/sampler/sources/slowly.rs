//! What takes long to read is read in a thread of its own, so that no sample waits for it.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Readings farther apart than this have a gap between them.
pub(super) const APART: Duration = Duration::from_secs(5);
/// From one reading to the next.
const PERIOD: Duration = Duration::from_secs(1);

/// Does something once a second until it is dropped. It is not waited for then: a device that does not answer must hold
/// nobody up.
pub(super) struct Slowly(Arc<Stop>);

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    told: Condvar,
}

impl Slowly {
    /// Begins at once. `work` says whether to go on.
    pub(super) fn start(name: &str, mut work: impl FnMut() -> bool + Send + 'static) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let theirs = Arc::clone(&stop);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut due = Instant::now();
            while work() {
                due = (due + PERIOD).max(Instant::now());
                if theirs.wait(due) {
                    return;
                }
            }
        })?;
        Ok(Self(stop))
    }
}

impl Stop {
    /// Waits until then, or until it is stopped; says whether it is.
    fn wait(&self, until: Instant) -> bool {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if *stopped || left.is_zero() {
                return *stopped;
            }
            stopped = self.told.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Slowly {
    fn drop(&mut self) {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.told.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn it_begins_at_once_and_ends_when_it_is_dropped() {
        let (tell, told) = mpsc::channel();
        let slowly = Slowly::start("test", move || tell.send(()).is_ok()).unwrap();
        told.recv().unwrap();
        drop(slowly);
        // The thread's end of the channel goes with the thread.
        while told.recv().is_ok() {}
    }
}
