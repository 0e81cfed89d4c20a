//! The live machine as the stage of an experiment.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use zenkai_host::{
    HeldLatency, Knob, LiveHost, Value,
    gauges::{Happened, Interrupt, wait},
    hold_cpu_dma_latency, value,
    workload::{self, Ended, Job, Ran, Told},
};
use zenkai_measure::{
    experiment::{
        ENERGY_DOMAIN, Measure, Plan as ExperimentPlan, Setting, Settle, Stage, StageError, Status, Trial,
    },
    metric::{Choice, JOULES},
    sampler::{Instruments, Options, Recording, Sampler},
    statistics::verdict::Better,
    workload::{Prepared, last_line},
};
use zenkai_tune::{
    Hold, Plan, State, Step, Want,
    profile::Origin,
    same,
    transaction::{End, Fate, Kind, Report, Request, Row, Session},
};

use super::arm::{self, ArmSpec};
use crate::cli::change;

/// Outputs larger than this are cut at the beginning: more than any of the known tools writes.
const OUTPUT_LIMIT: usize = 16 << 20;

/// An arm with the workload that runs in it.
pub(in crate::cli) struct LiveArm {
    pub(in crate::cli) spec: ArmSpec,
    pub(in crate::cli) workload: Prepared,
}

/// The machine, an arm that may be entered, and how its workload is run.
pub(in crate::cli) struct LiveStage<'a> {
    /// Present when an arm changes the machine.
    pub(in crate::cli) session: Option<&'a Session<'a>>,
    pub(in crate::cli) arms: Vec<LiveArm>,
    pub(in crate::cli) choice: Choice,
    timeout: Option<Duration>,
    sample: Option<Duration>,
    /// What samples are taken with, from the first trial on.
    instruments: Option<Instruments>,
    interrupt: &'a Interrupt,
    /// The experiment's directory, where samples go.
    dir: PathBuf,
    entered: Option<Entered>,
    /// What could not be put back: then the machine is not as it was, whatever comes after.
    stuck: Option<String>,
    /// What the knobs of all arms showed when the experiment began, by name.
    baseline: BTreeMap<String, (Knob, Value)>,
    /// Whose energy is compared.
    domain: Option<String>,
    /// No run begins after this.
    pub(in crate::cli) until: Option<Instant>,
}

/// The arm that the machine is in.
struct Entered {
    arm: usize,
    /// Its transaction, when it changed anything.
    transaction: Option<u64>,
    /// What its knobs showed then.
    shows: Vec<(Knob, Value)>,
    /// What somebody else did to the arm before, as seen when it was left.
    disturbed: Option<String>,
    /// What is in force only as long as we hold it.
    _held: Vec<HeldLatency>,
    /// Somebody else changed it and that was told: it is to be entered anew.
    spoilt: bool,
}

/// What entering an arm did.
#[derive(Default)]
struct Made {
    report: Option<Report>,
    /// What is held, and what only a daemon could hold.
    holds: Vec<Setting>,
}

fn failed(why: impl ToString) -> StageError {
    StageError::Failed(why.to_string())
}

impl<'a> LiveStage<'a> {
    pub(in crate::cli) fn new(
        session: Option<&'a Session<'a>>,
        arms: Vec<LiveArm>,
        choice: Choice,
        interrupt: &'a Interrupt,
    ) -> Self {
        let (timeout, sample, dir, entered) = (None, None, PathBuf::new(), None);
        let (stuck, baseline, until, instruments) = (None, BTreeMap::new(), None, None);
        let domain = choice.energy().flatten().map(str::to_owned);
        Self {
            session,
            arms,
            choice,
            timeout,
            sample,
            instruments,
            interrupt,
            dir,
            entered,
            stuck,
            baseline,
            domain,
            until,
        }
    }

    /// Takes over what the plan says of every run.
    pub(in crate::cli) fn ready(&mut self, plan: &ExperimentPlan, trials: &[Trial], dir: &Path) {
        let before = trials.iter().find_map(|trial| trial.energy_domain().map(str::to_owned));
        self.domain = before.or_else(|| self.domain.take());
        let seconds = |seconds: Option<f64>| seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        self.timeout = seconds(plan.timeout_s);
        self.sample = seconds(plan.sample_s);
        dir.clone_into(&mut self.dir);
        // An experiment that is gone on with began before this process.
        for Setting { what, from, .. } in plan.arms.iter().flat_map(|arm| &arm.settings) {
            if let Some(from) = from {
                let known = || (arm::knob(what), Value::from(from.as_str()));
                self.baseline.entry(what.clone()).or_insert_with(known);
            }
        }
    }

    /// Enters the arm and leaves it again, to know that it can be done, and what it changes.
    pub(in crate::cli) fn settings(&mut self, arm: usize) -> Result<Vec<Setting>, StageError> {
        let Made { report, holds } = self.switch(arm)?;
        self.leave()?;
        let text = |value: &Value| value.text().map(|text| text.trim_end().to_owned());
        let rows = report.map(|report| report.rows).unwrap_or_default();
        let done = rows.into_iter().filter(is_done);
        let setting = |row: Row| {
            let to = if let Fate::Adjusted { shows } = &row.fate { shows } else { &row.to };
            Setting { what: arm::called(&row.what), from: text(&row.from), to: text(to) }
        };
        Ok(done.map(setting).chain(holds).collect())
    }

    fn switch(&mut self, arm: usize) -> Result<Made, StageError> {
        let told_already = self.entered.as_ref().is_some_and(|entered| entered.spoilt);
        let disturbed = self.leave()?.filter(|_| !told_already);
        let spec = &self.arms.get(arm).ok_or_else(|| failed("there is no such arm"))?.spec;
        let (mut transaction, mut shows, mut made) = (None, Vec::new(), Made::default());
        let mut held = Vec::new();
        if let Some(session) = self.session.filter(|_| spec.changes_machine()) {
            let wishes = spec.wishes().map_err(|error| failed(format!("{:#}", error.error)))?;
            let plan = Plan::new(&LiveHost, wishes);
            if let Some(why) = impossible(&plan, spec.is_profile()) {
                return Err(failed(format!("{}: {why}", spec.text())));
            }
            let kind = Kind::Trial { instead_of_profile: spec.is_profile() };
            let request = Request { label: format!("arm {}", spec.text()), ..change::request(kind) };
            let report = session.apply(&LiveHost, &plan, &request).map_err(failed)?;
            if report.end != End::Done {
                self.stuck = not_put_back(&report.rows);
                let why =
                    if let End::RolledBack { why } = &report.end { why.as_str() } else { "it was refused" };
                return Err(failed(format!("{} cannot be entered: {why}", spec.text())));
            }
            transaction = report.id;
            let knobs = report.rows.iter().filter_map(|row| row.knob.clone());
            shows = showing(knobs);
            made.report = Some(report);
            (held, made.holds) = hold(&plan);
        }
        let rows = made.report.as_ref().map_or(&[][..], |report| &report.rows);
        let moved = self.moved(rows);
        // What only other arms set is watched too: this arm is measured with it as it is.
        let others = self.baseline.values().map(|(knob, _)| knob.clone());
        let others = others.filter(|knob| shows.iter().all(|(own, _)| own != knob));
        shows.extend(showing(others.collect::<Vec<_>>()));
        self.entered = Some(Entered { arm, transaction, shows, disturbed, _held: held, spoilt: false });
        moved.map_or(Ok(made), |why| Err(failed(why)))
    }

    /// Whether a knob no longer has the value that it had when the experiment began, told by what an arm found when it
    /// was entered. Knobs are noted when they are seen for the first time.
    fn moved(&mut self, rows: &[Row]) -> Option<String> {
        let told = |name: &str, then: &Value, now: &Value| {
            let text =
                |value: &Value| value.text().map_or("absent".to_owned(), |text| text.trim().to_owned());
            format!(
                "somebody else changed {name}: it was {} when the experiment began and is {} now, so that what is \
                 measured from here on would be compared with another machine. Set it back and go on, or begin anew",
                text(then),
                text(now)
            )
        };
        // An arm that changes nothing is the machine as it was; what others set may follow from what an arm sets.
        if rows.is_empty() {
            let now = |knob: &Knob| value(&LiveHost, knob).ok();
            let mut known = self.baseline.iter();
            return known.find_map(|(name, (knob, then))| {
                now(knob).filter(|now| !same(now, then)).map(|now| told(name, then, &now))
            });
        }
        let mut moved = None;
        for row in rows.iter().filter(|row| is_done(row)) {
            let Some(knob @ (Knob::Sysctl(_) | Knob::Attribute(_))) = &row.knob else { continue };
            let name = arm::called(&row.what);
            let (_, then) =
                self.baseline.entry(name.clone()).or_insert_with(|| (knob.clone(), row.from.clone()));
            if !same(&row.from, then) {
                moved = moved.or(Some(told(&name, then, &row.from)));
            }
        }
        moved
    }

    /// Leaves the arm, if one is entered. Tells what somebody else changed meanwhile, which is kept.
    pub(in crate::cli) fn leave(&mut self) -> Result<Option<String>, StageError> {
        if let Some(why) = &self.stuck {
            return Err(failed(why));
        }
        let left = self.undo();
        if let Err(StageError::Failed(why)) = &left {
            self.stuck = Some(why.clone());
        }
        left
    }

    fn undo(&mut self) -> Result<Option<String>, StageError> {
        let Some(Entered { transaction: Some(id), .. }) = self.entered.take() else { return Ok(None) };
        let Some(session) = self.session else { return Ok(None) };
        let request = change::request(Kind::Undo { of: id });
        let report = session.leave(&LiveHost, id, &request).map_err(failed)?;
        if let Some(why) = not_put_back(&report.rows) {
            return Err(failed(why));
        }
        let kept = report.rows.into_iter().find(|row| matches!(row.fate, Fate::Kept { .. }));
        Ok(kept.map(|row| format!("somebody else changed {}", row.what)))
    }

    /// Whether the time is used up.
    pub(in crate::cli) fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn run_job(
        &mut self,
        trial: &Trial,
        stuck: &mut dyn FnMut(&str),
    ) -> Result<(Ran, Option<Recording>), StageError> {
        let arm = self.arms.get(trial.arm).ok_or_else(|| failed("there is no such arm"))?;
        let job = Job {
            argv: arm.workload.argv.clone(),
            environment: Vec::new(),
            timeout: self.timeout,
            cgroup: true,
            cpu_max: arm.spec.cpu_max(),
            output_limit: OUTPUT_LIMIT,
            terminal: false,
        };
        // Opened before the command starts: it takes ten milliseconds and more.
        let mut instruments = self.sample.map(|_| self.instruments.take().unwrap_or_else(Instruments::open));
        let (mut sampler, mut recording, mut kept) = (None, None, None);
        let mut told = |told: &Told| match told {
            Told::Started(started) => {
                let Some((interval, instruments)) = self.sample.zip(instruments.take()) else { return };
                let cgroup = started.cgroup.ok().and_then(Path::to_str).map(str::to_owned);
                let no_cgroup = started.cgroup.err().map(str::to_owned);
                let options =
                    Options { interval, cgroup, no_cgroup, pid: u32::try_from(started.pid).ok(), cpu: None };
                // Sampling explains; an experiment is good without it, and each trial tells that it has none.
                sampler = Sampler::begin(instruments, &options).ok();
            }
            Told::Stuck(why) => stuck(&super::progress::stuck(why)),
            Told::Left(why) => {
                stuck(&format!("zenkai: {why}. It is left behind and may disturb the next runs"));
            }
            // While the cgroup is there: the counters of one that was removed have no last value. What began only after
            // the command had ended says nothing about it.
            Told::Ended => {
                if let Some(sampler) = sampler.take() {
                    (recording, kept) = sampler.finish();
                }
            }
        };
        let ran = workload::run(&job, Some(self.interrupt.as_fd()), &mut told);
        let ran = ran.map_err(|error| match error.kind() {
            // Given up by the user, who knows why.
            ErrorKind::Interrupted => StageError::Interrupted,
            _ => failed(arm.workload.explain(&error)),
        })?;
        self.instruments = kept;
        Ok((ran, recording))
    }

    /// The energy of a run, of the domain that the first one had.
    fn joules(&mut self, trial: &mut Trial, recording: &Recording) -> Result<f64, String> {
        let energy = recording.energy(self.domain.as_deref())?;
        trial.other.insert(ENERGY_DOMAIN.to_owned(), energy.domain.clone().into());
        self.domain = Some(energy.domain);
        Ok(energy.joules)
    }

    fn keep_samples(&self, trial: &mut Trial, recording: &Recording) -> Result<(), StageError> {
        trial.channels = recording.means();
        let stem = format!("samples/{:04}-{}-{}", trial.block, trial.attempt, trial.place);
        // A run that was killed before its trial was written leaves a file that belongs to nobody.
        let names =
            (1..).map(|nth| if nth == 1 { format!("{stem}.zks") } else { format!("{stem}-{nth}.zks") });
        for name in names.take(1_000) {
            let path = self.dir.join(&name);
            match recording.write(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(format!("{}: {error}", path.display()))),
                Ok(()) => {
                    trial.samples = Some(name);
                    return Ok(());
                }
            }
        }
        Err(failed(format!("{}/{stem}.zks and a thousand more are there already", self.dir.display())))
    }
}

/// What these knobs show, of those that can be read.
fn showing(knobs: impl IntoIterator<Item = Knob>) -> Vec<(Knob, Value)> {
    knobs.into_iter().filter_map(|knob| value(&LiveHost, &knob).ok().map(|shows| (knob, shows))).collect()
}

/// Whether something was done about it.
fn is_done(row: &Row) -> bool {
    !matches!(row.fate, Fate::Skipped { .. } | Fate::Kept { .. })
}

/// What a transaction that was to put things back, or did so when it was refused, could not: a knob, or a command of
/// the user's (`leave=`) that failed.
fn not_put_back(rows: &[Row]) -> Option<String> {
    rows.iter().find_map(|row| match &row.fate {
        Fate::NotRestored { why } => Some(format!("{} could not be put back: {why}", row.what)),
        _ => None,
    })
}

/// Why the arm cannot be: a setting that was asked for by name cannot be made, or none of what it is about can. A
/// profile may have parts that this machine does not have, even all of them: then it is the machine without a profile.
fn impossible(plan: &Plan, is_profile: bool) -> Option<String> {
    let cannot = |step: &Step| match (&step.state, step.wish.knob()) {
        (State::Cannot { why, .. }, Some(Knob::Sysctl(name))) => {
            let near = arm::nearest_sysctl(&LiveHost, name).filter(|near| near != name);
            Some(near.map_or(why.clone(), |near| format!("{why}; did you mean `{near}`?")))
        }
        (State::Cannot { why, .. }, _) => Some(why.clone()),
        _ => None,
    };
    let by_name = |step: &&Step| step.wish.origin == Origin::CommandLine;
    if let Some(why) = plan.steps.iter().filter(by_name).find_map(cannot) {
        return Some(why);
    }
    let is_idle =
        |step: &Step| matches!(step.state, State::Cannot { .. } | State::Leave(_) | State::Overruled { .. });
    plan.steps.iter().find_map(cannot).filter(|_| !is_profile && plan.steps.iter().all(is_idle))
}

/// Holds what a living process can, as long as the arm is entered; the rest of it is told.
fn hold(plan: &Plan) -> (Vec<HeldLatency>, Vec<Setting>) {
    let (mut held, mut told) = (Vec::new(), Vec::new());
    for step in plan.steps.iter().filter(|step| matches!(step.state, State::Hold)) {
        let Want::Hold(wanted) = &step.wish.want else { continue };
        let mut tell = |what: String, to: Option<String>| told.push(Setting { what, from: None, to });
        match wanted {
            Hold::CpuDmaLatency { latency_us } => match hold_cpu_dma_latency(*latency_us) {
                Ok(latency) => {
                    held.push(latency);
                    tell("/dev/cpu_dma_latency".to_owned(), Some(format!("{latency_us} µs")));
                }
                Err(error) => tell(format!("not in this arm: /dev/cpu_dma_latency: {error}"), None),
            },
            _ => tell(
                format!("not in this arm, only a daemon could: {} {}", step.wish.plugin, step.wish.option),
                None,
            ),
        }
    }
    (held, told)
}

impl Stage for LiveStage<'_> {
    fn enter(&mut self, arm: usize) -> Result<bool, StageError> {
        if self.entered.as_ref().is_some_and(|entered| entered.arm == arm && !entered.spoilt) {
            return Ok(false);
        }
        self.switch(arm)?;
        // Only what may have changed the machine needs quiet afterwards.
        Ok(self.session.is_some())
    }

    fn settle(&mut self, settle: &Settle) -> Result<f64, StageError> {
        super::quiet::wait(settle, self.interrupt)
    }

    #[expect(clippy::disallowed_methods, reason = "the program's clock is read here, for the trial's record")]
    fn run(
        &mut self,
        trial: &mut Trial,
        counts: bool,
        stuck: &mut dyn FnMut(&str),
    ) -> Result<(), StageError> {
        if wait(self.interrupt, None, Duration::ZERO).is_ok_and(|happened| happened == Happened::Signal) {
            return Err(StageError::Interrupted);
        }
        if self.is_late() {
            return Err(StageError::Interrupted);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        trial.started_unix_s = now.as_secs_f64();
        let (ran, recording) = self.run_job(trial, stuck)?;
        if ran.ended == Ended::Interrupted {
            return Err(StageError::Interrupted);
        }
        let joules = match &recording {
            Some(recording) => self.joules(trial, recording),
            None => Err("the machine was not sampled, or the run was over before".to_owned()),
        };
        if let Some(recording) = recording.filter(|_| counts) {
            self.keep_samples(trial, &recording)?;
        }
        trial.elapsed_s = ran.elapsed.as_secs_f64();
        let (status, reason) = judged(&ran);
        trial.exit_code = match ran.ended {
            Ended::Exited(code) => Some(code),
            Ended::Signalled(signal) => Some(128 + signal),
            Ended::TimedOut | Ended::Interrupted => None,
        };
        (trial.status, trial.reason) = (status, reason);
        if status == Status::Ok {
            self.read_numbers(trial, &ran, joules);
        }
        Ok(())
    }

    fn disturbed(&mut self) -> Option<String> {
        let entered = self.entered.as_mut()?;
        if let Some(why) = entered.disturbed.take() {
            return Some(why);
        }
        let moved = entered
            .shows
            .iter()
            .find(|(knob, then)| value(&LiveHost, knob).is_ok_and(|now| !same(&now, then)));
        entered.spoilt = moved.is_some();
        moved.map(|(knob, _)| format!("somebody else changed {knob}"))
    }
}

impl LiveStage<'_> {
    /// The numbers of a run that ended well; without the primary one it has failed after all.
    fn read_numbers(&self, trial: &mut Trial, ran: &Ran, joules: Result<f64, String>) {
        let Some(arm) = self.arms.get(trial.arm) else { return };
        let found = arm.workload.measures(ran).and_then(|found| {
            trial.metrics = found;
            match joules {
                Ok(value) => {
                    let (unit, better) = ("J".to_owned(), Some(Better::Lower));
                    let measure = Measure { value, unit, better };
                    if self.choice.energy().is_some() {
                        trial.metrics.insert(self.choice.name(), measure.clone());
                    }
                    trial.metrics.insert(JOULES.to_owned(), measure);
                }
                Err(why) if self.choice.energy().is_some() => return Err(format!("no energy: {why}")),
                Err(_) => {}
            }
            self.choice.read(&trial.metrics, &ran.stdout, &ran.stderr)
        });
        match found {
            Ok(value) => trial.value = Some(value),
            Err(why) => (trial.status, trial.reason) = (Status::Failed, Some(why)),
        }
    }
}

/// How a run counts. What the machine itself did to it is no fault of the arm: its block is drawn again.
fn judged(ran: &Ran) -> (Status, Option<String>) {
    match ran.ended {
        Ended::Interrupted => (Status::Discarded, None),
        _ if !ran.suspended.is_zero() => (Status::Discarded, Some("the machine was suspended".to_owned())),
        // Our own time is CLOCK_MONOTONIC, but tools that measure themselves mostly read the wall clock.
        _ if ran.clock_step => (Status::Discarded, Some("the machine's clock was set".to_owned())),
        Ended::Exited(0) => (Status::Ok, None),
        Ended::Exited(code) => (Status::Failed, Some(told(&format!("exit code {code}"), ran))),
        Ended::Signalled(signal) => (Status::Failed, Some(told(&format!("signal {signal}"), ran))),
        Ended::TimedOut => (Status::Timeout, Some("it took too long".to_owned())),
    }
}

/// Why it failed, with the last line that it wrote.
fn told(why: &str, ran: &Ran) -> String {
    let said = [&ran.stderr, &ran.stdout].into_iter().find_map(|output| last_line(output));
    said.map_or_else(|| why.to_owned(), |line| format!("{why}: {line}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zenkai_host::workload::{Ended, Ran};
    use zenkai_measure::experiment::Status;

    use super::judged;

    fn ran(ended: Ended, suspended_ms: u64, clock_step: bool) -> Ran {
        Ran {
            ended,
            elapsed: Duration::from_secs(1),
            user: Duration::ZERO,
            system: Duration::ZERO,
            max_rss_bytes: 0,
            max_rss_floor_bytes: 0,
            stdout: Vec::new(),
            stderr: b"first\nno such table\n\n".to_vec(),
            output_cut: false,
            suspended: Duration::from_millis(suspended_ms),
            clock_step,
        }
    }

    #[test]
    fn what_the_machine_did_is_no_fault_of_the_arm() {
        for ended in [Ended::Exited(0), Ended::Exited(1), Ended::Signalled(9), Ended::TimedOut] {
            let (status, why) = judged(&ran(ended, 2000, false));
            assert_eq!((status, why.as_deref()), (Status::Discarded, Some("the machine was suspended")));
            let (status, why) = judged(&ran(ended, 0, true));
            assert_eq!((status, why.as_deref()), (Status::Discarded, Some("the machine's clock was set")));
        }
    }

    #[test]
    fn what_the_workload_did_counts() {
        assert_eq!(judged(&ran(Ended::Exited(0), 0, false)), (Status::Ok, None));
        let failed = judged(&ran(Ended::Exited(3), 0, false));
        assert_eq!(failed, (Status::Failed, Some("exit code 3: no such table".to_owned())));
        assert_eq!(judged(&ran(Ended::Signalled(11), 0, false)).0, Status::Failed);
        assert_eq!(judged(&ran(Ended::TimedOut, 0, false)).0, Status::Timeout);
    }
}
