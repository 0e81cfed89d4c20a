//! A machine of the laboratory, ready to run jobs.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Doing;
use crate::qemu::{Begin, CommandLine, Console, Guest, Input};
use crate::qmp::Qmp;
use crate::spec::{MachineSpec, Mode};
use crate::{Cache, Job, LabError, Outcome, Tier};

/// The word of the agent for "waiting for the first job".
const READY: &str = "LABREADY";
/// The word of the agent for "prepared", with the exit code of the preparation.
const PREPARED: &str = "LABPRE";

/// A machine that can run jobs, each from the same state.
#[derive(Debug, Clone)]
pub struct Machine {
    cache: Cache,
    spec: MachineSpec,
    line: CommandLine,
    snapshot: Option<PathBuf>,
    timing: Timing,
}

/// What it took to get a machine ready.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// From the start of QEMU until the machine was booted and prepared; none if there was a snapshot already, or if
    /// the machine is booted for each run.
    pub boot: Option<Duration>,
}

/// A network card takes a moment to find its link again after a snapshot is restored; a job must not see it gone. Waits
/// at most three seconds for those that are up.
const SETTLE: &str = r#"for link in /sys/class/net/*/carrier; do
tries=60
while [ "$(cat "$link" 2>/dev/null)" = 0 ] && [ $tries -gt 0 ]; do tries=$((tries - 1)); /run/lab/busybox usleep 50000; done
done
"#;

impl Machine {
    /// Gets a machine of `lab/machines` ready: from its snapshot, which is made now if there is none.
    ///
    /// Gives [`LabError::Missing`] if a part of the laboratory it needs is not built.
    pub fn start(name: &str) -> Result<Self, LabError> {
        Self::from_spec(Cache::open()?, MachineSpec::load(name)?)
    }

    /// Gets any machine ready, with its files in a given cache.
    pub fn from_spec(cache: Cache, spec: MachineSpec) -> Result<Self, LabError> {
        let line = CommandLine::new(&cache, &spec, &Job::shell(""))?;
        let mut machine = Self { cache, spec, line, snapshot: None, timing: Timing::default() };
        if machine.spec.snapshot {
            let hash = machine.line.hash(&machine.spec.prepare)?;
            let mut boot = None;
            let (folder, _) = machine.cache.snapshot(&machine.spec.name, &hash, |folder| {
                boot = Some(machine.save(&folder.join("state"))?);
                Ok(())
            })?;
            machine.snapshot = Some(folder.join("state"));
            machine.timing.boot = boot;
        }
        Ok(machine)
    }

    /// What it is made of.
    pub fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// What it took to get it ready.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Runs a job. A guest is started for it, and nothing of it stays.
    ///
    /// The job's own exit code is part of the outcome. An error means that the guest gave no outcome: it shows the end
    /// of the guest's console.
    ///
    /// Now and then the emulator seems to lose a timer or an interrupt between two virtual CPUs, and the guest's kernel waits
    /// for it for ever. That says nothing of the job, so another guest is started for it, which is told.
    pub fn run(&self, job: impl Into<Job>) -> Result<Outcome, LabError> {
        const TRIES: usize = 3;
        let mut job = job.into();
        job.script = format!("{SETTLE}{}", job.script);
        for _ in 1..TRIES {
            match self.run_once(&job) {
                // Not eprintln!, whose output the test runner keeps to itself when a test passes.
                Err(error @ LabError::StoodStill { .. }) => {
                    drop(writeln!(std::io::stderr(), "AGAIN: {error}"));
                }
                other => return other,
            }
        }
        self.run_once(&job)
    }

    fn run_once(&self, job: &Job) -> Result<Outcome, LabError> {
        let mut files = Vec::new();
        for (name, path) in &job.files {
            files.push((name.as_str(), fs::read(path).with_path("read", path)?));
        }
        let (mut guest, limit) = self.begin(job, files, &Console::File)?;
        guest.wait_end(Some(limit), "the job")?;
        let outcome = Outcome::from_files(guest.result()?, guest.age())
            .ok_or_else(|| guest.failed("the guest gave no result"))?;
        if guest.console().lines().any(|line| line.starts_with(PREPARED) && line != "LABPRE 0") {
            return Err(guest.failed("preparing the machine failed"));
        }
        Ok(outcome)
    }

    /// Gives a person a shell on the machine's serial console, until they leave it. The files are put beside it.
    pub fn shell(&self, job: &Job) -> Result<(), LabError> {
        let console = if self.spec.xen { "hvc0" } else { "ttyS0" };
        // A session of its own makes the console the controlling terminal, so that Ctrl-C works.
        let script = format!(
            "shell=$(command -v bash || echo sh)\nexport TERM=linux\n\
             /run/lab/busybox setsid -c $shell -i < /dev/{console} > /dev/{console} 2>&1"
        );
        let job = Job { script, ..job.clone() };
        let mut files = Vec::new();
        for (name, path) in &job.files {
            files.push((name.as_str(), fs::read(path).with_path("read", path)?));
        }
        let (mut guest, _) = self.begin(&job, files, &Console::Terminal)?;
        guest.wait_end(None, "the shell")
    }

    /// Starts the guest for a job: restored if that is possible, else booted and prepared.
    fn begin(
        &self,
        job: &Job,
        mut files: Vec<(&str, Vec<u8>)>,
        console: &Console,
    ) -> Result<(Guest, Duration), LabError> {
        let script = with_shebang(&job.script);
        if let Some(state) = self.snapshot.as_ref().filter(|_| !job.changes_machine()) {
            files.push(("job", script.into_bytes()));
            let input = Input::files("GO", files)?;
            let guest = Guest::start(&self.cache, &self.line, &Begin::Restore(state), console, &input)?;
            return Ok((guest, job.limit));
        }
        let line = CommandLine::new(&self.cache, &self.spec, job)?;
        files.push((".lab-prepare", preparation(&self.spec).into_bytes()));
        files.push((".lab-script", script.into_bytes()));
        let job_text = format!(
            "#!/bin/sh\n./.lab-prepare > /dev/console 2>&1 < /dev/null\ncode=$?\necho \"{PREPARED} $code\" > /dev/console\n\
             [ $code = 0 ] || exit 1\nexec ./.lab-script\n"
        );
        files.push(("job", job_text.into_bytes()));
        let input = Input::files("GO", files)?;
        let guest = Guest::start(&self.cache, &line, &Begin::Boot, console, &input)?;
        Ok((guest, job.limit + Duration::from_secs(self.spec.boot_limit_s)))
    }

    /// Boots and prepares the machine, and saves its state. Gives the time until it was prepared.
    fn save(&self, state: &Path) -> Result<Duration, LabError> {
        let limit = Duration::from_secs(self.spec.boot_limit_s);
        let prepares = !self.spec.prepare.trim().is_empty();
        let input = if prepares {
            Input::files("PRE", [("job", preparation(&self.spec).into_bytes())])?
        } else {
            Input::wait()
        };
        let mut guest = Guest::start(&self.cache, &self.line, &Begin::Boot, &Console::File, &input)?;
        if prepares {
            let code = guest.wait_for(PREPARED, limit, "booting and preparing")?;
            if code != "0" {
                return Err(guest.failed(&format!("preparing the machine failed with exit code {code}")));
            }
        } else {
            guest.wait_for(READY, limit, "booting")?;
        }
        let boot = guest.age();
        // Lets the last work of the boot settle, so that it is not repeated in every run.
        std::thread::sleep(Duration::from_millis(if self.spec.mode == Mode::Systemd { 1500 } else { 300 }));
        let saved = Qmp::connect(&guest.control()).and_then(|qmp| qmp.save(state, Duration::from_secs(600)));
        saved.map_err(|error| guest.failed(&format!("cannot take a snapshot: {error}")))?;
        Ok(boot)
    }
}

fn preparation(spec: &MachineSpec) -> String {
    format!("#!/bin/sh\nset -e\n{}\n", spec.prepare)
}

fn with_shebang(script: &str) -> String {
    if script.starts_with("#!") { script.to_owned() } else { format!("#!/bin/sh\n{script}\n") }
}

/// For tests: the machine, or nothing if a part of the laboratory that it needs is not built, which is said on
/// standard error even when the test runner hides output. All other errors panic.
///
/// `$ZENKAI_LAB` names what must be there: `mini`, `full` (both), `all` (with `qemu`). A missing part of these panics.
pub fn machine_or_skip(name: &str) -> Option<Machine> {
    match Machine::start(name) {
        Ok(machine) => Some(machine),
        Err(error @ LabError::Missing { tier, .. }) => {
            let required = match std::env::var("ZENKAI_LAB").as_deref() {
                Ok("all") => Some(Tier::Qemu),
                Ok("full") => Some(Tier::Full),
                Ok("mini") => Some(Tier::Mini),
                _ => None,
            };
            assert!(required.is_none_or(|required| tier > required), "machine {name}: {error}");
            // Not eprintln!, whose output the test runner keeps to itself when a test passes.
            drop(writeln!(std::io::stderr(), "SKIPPED: machine {name}: {error}"));
            None
        }
        Err(error) => panic!("machine {name}: {error}"),
    }
}
