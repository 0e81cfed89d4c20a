//! The command that is recorded: the user's own, at the user's terminal.

use std::{
    io::{self, PipeWriter, Write as _},
    os::fd::AsFd as _,
    sync::mpsc,
    thread::{Builder, Scope, ScopedJoinHandle},
};

use zenkai_host::{
    gauges::Process,
    workload::{Job, Prepared, Ran, Told},
};

/// What is to run.
pub(super) fn job(command: &[String]) -> Job {
    Job {
        argv: command.to_vec(),
        environment: Vec::new(),
        timeout: None,
        cgroup: true,
        cpu_max: None,
        output_limit: 0,
        terminal: true,
    }
}

/// A command that runs in a thread of its own. When this is dropped it is told to end.
pub(super) struct Command<'scope> {
    /// Whose end can be waited for.
    pub(super) process: Process,
    /// Why it is in no cgroup, if it is not.
    pub(super) no_cgroup: Option<String>,
    /// What is written to it is a wish that the command ends, or once it is stuck, that it is left behind. Closing it is
    /// both.
    end: PipeWriter,
    /// Why it has not ended although it was killed.
    stuck: mpsc::Receiver<String>,
    /// Closing it says that the cgroup's counters were read for the last time.
    counted: mpsc::Sender<()>,
    thread: ScopedJoinHandle<'scope, io::Result<Ran>>,
}

impl<'scope> Command<'scope> {
    /// Starts it. Errors: it cannot be started.
    pub(super) fn start<'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        prepared: Prepared<'env>,
    ) -> io::Result<Self> {
        let (asked, end) = io::pipe()?;
        let (begun, begins) = mpsc::channel();
        let (counted, is_counted) = mpsc::channel::<()>();
        let (hangs, stuck) = mpsc::channel();
        let work = move || {
            let mut told = |told: &Told| match told {
                Told::Started(started) => {
                    // Whoever started us waits for this.
                    let _ = begun.send((started.pid, started.cgroup.err().map(str::to_owned)));
                }
                // Nobody hears it who is on the way out already.
                Told::Stuck(why) => _ = hangs.send((*why).to_owned()),
                // The recording is over.
                Told::Left(_) => {}
                // Nothing is sent: the other end closes.
                Told::Ended => _ = is_counted.recv(),
            };
            prepared.run(Some(asked.as_fd()), &mut told)
        };
        let thread = Builder::new().name("zenkai-command".to_owned()).spawn_scoped(scope, work)?;
        let Ok((pid, no_cgroup)) = begins.recv() else {
            return Err(joined(thread).err().unwrap_or_else(|| io::Error::other("it did not start")));
        };
        let process = Process::open(u32::try_from(pid).unwrap_or(0))?;
        Ok(Self { process, no_cgroup, end, stuck, counted, thread })
    }

    /// Tells it to end; a second later it is made to. Where it is stuck already, it is left behind.
    pub(super) fn end(&mut self) {
        // It fails when it has ended meanwhile.
        let _ = self.end.write_all(&[0]);
    }

    /// Why it has not ended although it was killed, told once.
    pub(super) fn stuck(&self) -> Option<String> {
        self.stuck.try_recv().ok()
    }

    /// What it took. To be called when it has ended or was left behind, and nobody reads the counters of its cgroup any
    /// more. Errors: [`io::ErrorKind::Interrupted`] when it was left behind.
    pub(super) fn finish(self) -> io::Result<Ran> {
        drop(self.counted);
        joined(self.thread)
    }
}

fn joined(thread: ScopedJoinHandle<io::Result<Ran>>) -> io::Result<Ran> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that ran the command broke down")))
}
