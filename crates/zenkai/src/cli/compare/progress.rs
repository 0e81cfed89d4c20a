//! What the user sees while an experiment runs: on the error output, so that the result stays alone on the other.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use zenkai_measure::{
    experiment::{Comparison, Plan, Progress, Status, Trial, settled_blocks},
    statistics::{
        real,
        verdict::{Change, Verdict},
    },
};
use zenkai_report::printable;

use super::options;

/// Half of the interval's bar, in characters.
const HALF: u32 = 12;

/// That a workload cannot be ended, and what can be done about it.
pub(in crate::cli) fn stuck(why: &str) -> String {
    format!("zenkai: {why}. zenkai waits for it; Ctrl-C leaves it behind")
}

/// Tells how an experiment goes.
pub(in crate::cli) struct Teller<'a> {
    plan: Plan,
    err: &'a mut dyn Write,
    /// One line that is written over; else a line for each look.
    live: bool,
    start: Instant,
    run_s: Vec<f64>,
    switch_s: Vec<f64>,
    /// Of whole blocks, and of the one under way.
    trials: usize,
    failed: usize,
    /// Both when the block under way began.
    before_block: (usize, usize),
    /// What the last look found: with the interval drawn, and in numbers only.
    now: [String; 2],
}

impl<'a> Teller<'a> {
    /// `done` trials were there before.
    pub(in crate::cli) fn new(plan: Plan, done: &[Trial], err: &'a mut dyn Write) -> Self {
        let settled = settled_blocks(&plan, done).unwrap_or_default().concat();
        let failed = settled.iter().filter(|trial| trial.status != Status::Ok).count();
        Self {
            trials: settled.len(),
            failed,
            before_block: (settled.len(), failed),
            plan,
            err,
            live: io::stderr().is_terminal(),
            start: Instant::now(),
            run_s: Vec::new(),
            switch_s: Vec::new(),
            now: [String::new(), String::new()],
        }
    }

    pub(in crate::cli) fn tell(&mut self, progress: &Progress) {
        match progress {
            Progress::WarmUp { arm } => {
                self.line(&[format!("a first run that does not count: {}", self.name(*arm))]);
            }
            Progress::WarmedUp { trial } => self.warmed_up(trial),
            Progress::Begins { plan } => self.begins(plan),
            Progress::Trial { trial } => self.trial(trial),
            Progress::Again(why) => self.keep(&format!("this block is run again: {why}")),
            Progress::Stuck(what) => self.keep(what),
            Progress::Look(comparisons) => self.look(comparisons),
        }
    }

    fn name(&self, arm: usize) -> &str {
        self.plan.arms.get(arm).map_or("", |arm| arm.name.as_str())
    }

    fn warmed_up(&mut self, trial: &Trial) {
        self.run_s.push(trial.elapsed_s);
        if let (true, Some(why)) = (trial.status != Status::Ok, &trial.reason) {
            self.keep(&format!("{} failed: {why}", self.name(trial.arm)));
        }
    }

    fn begins(&mut self, plan: &Plan) {
        let longer = plan.rule.looks.last() > self.plan.rule.looks.last();
        self.plan = plan.clone();
        let (run, most) = (mean(&self.run_s), self.most());
        let least = self.plan.rule.looks.first().copied().unwrap_or(most) * self.plan.arms.len();
        let cost = |runs: usize| clock(seconds(self.cost_s(runs)));
        self.keep(&format!(
            "a run takes {}; {} for {least} runs, {} for all {most}",
            duration(run),
            cost(least),
            cost(most),
        ));
        if longer {
            options::tell_looks(plan, &mut |line| self.keep(line));
        }
    }

    /// Most runs there can be.
    fn most(&self) -> usize {
        self.plan.rule.looks.last().copied().unwrap_or_default() * self.plan.arms.len()
    }

    /// Seconds that so many runs cost.
    fn cost_s(&self, runs: usize) -> f64 {
        let settle =
            if self.switch_s.is_empty() { self.plan.settle.at_least_s } else { mean(&self.switch_s) };
        self.plan.cost_s(runs, mean(&self.run_s), settle)
    }

    fn trial(&mut self, trial: &Trial) {
        if trial.place == 0 {
            self.before_block = (self.trials, self.failed);
        }
        if trial.status == Status::Discarded {
            (self.trials, self.failed) = self.before_block;
            return;
        }
        self.trials += 1;
        self.failed += usize::from(trial.status != Status::Ok);
        self.run_s.push(trial.elapsed_s);
        if trial.settled_s > 0.0 {
            self.switch_s.push(trial.settled_s);
        }
        let left = self.most().saturating_sub(self.trials);
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let run = format!("run {} of at most {}{failed}", self.trials, self.most());
        let time = format!(
            "{} gone, at most {} left",
            clock(self.start.elapsed()),
            clock(seconds(self.cost_s(left)))
        );
        let [drawn, plain] = &self.now;
        // Of a narrow terminal the numbers are worth most.
        let texts =
            [format!("{run} · {time}{drawn}"), format!("{run} · {time}{plain}"), format!("{run}{plain}")];
        self.line(&texts);
    }

    fn look(&mut self, comparisons: &[Comparison]) {
        let mut now = [String::new(), String::new()];
        for comparison in comparisons {
            let Some(look) = comparison.judgement.looks.last() else { continue };
            let verdict = match comparison.judgement.verdict {
                Verdict::Different => "different",
                Verdict::Equal => "equal",
                Verdict::Undecided => "open",
            };
            let change = look.change.as_ref().map_or_else(String::new, numbers);
            let drawn = look.change.as_ref().and_then(bar).map_or_else(String::new, |bar| format!(" {bar}"));
            now[0].push_str(&format!(" · {change}{drawn} {verdict}"));
            now[1].push_str(&format!(" · {change} {verdict}"));
            if !self.live {
                let name = self.name(comparison.arm).to_owned();
                self.keep(&format!("{} pairs: {name} {change}{drawn} {verdict}", look.pairs));
            }
        }
        self.now = now;
    }

    /// A line that the next one takes the place of; shown to people only. Of several texts the first that fits, else
    /// the last, cut.
    fn line(&mut self, texts: &[String]) {
        if self.live {
            // A serial console does not know its width and says 0.
            let size = rustix::termios::tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0);
            let columns = size.map_or(80, |size| usize::from(size.ws_col));
            let text = fitting(texts, columns.saturating_sub(1));
            let _ = write!(self.err, "\r\x1b[K{text}").and_then(|()| self.err.flush());
        }
    }

    /// A line that stays.
    pub(in crate::cli) fn keep(&mut self, text: &str) {
        let clear = if self.live { "\r\x1b[K" } else { "" };
        let _ = writeln!(self.err, "{clear}{}", printable(text));
    }

    /// Ends the line that is written over.
    pub(in crate::cli) fn end(&mut self) {
        if self.live {
            let _ = write!(self.err, "\r\x1b[K").and_then(|()| self.err.flush());
        }
    }
}

/// The first of `texts` that is at most `width` wide, else as much of the last as fits.
fn fitting(texts: &[String], width: usize) -> String {
    // What programs wrote must not move the cursor, wherever it is cut.
    let shown: Vec<String> = texts.iter().map(|text| printable(text)).collect();
    let fits = shown.iter().find(|text| text.chars().count() <= width).or(shown.last());
    fits.map(|text| text.chars().take(width).collect()).unwrap_or_default()
}

/// `-5.2 % [-6.3, -4.1]`
fn numbers(change: &Change) -> String {
    let number = |limit: Option<f64>| limit.map_or_else(|| "?".to_owned(), |limit| format!("{limit:+.1}"));
    format!("{:+.1} % [{}, {}]", change.percent, number(change.low), number(change.high))
}

/// `···├─┤····│············`: the interval on an axis with "no difference" in its middle.
fn bar(change: &Change) -> Option<String> {
    let (low, high) = (change.low?, change.high?);
    let end = low.abs().max(high.abs()).max(1.0);
    let place = |percent: f64| {
        let places = (0..=2 * HALF).find(|place| {
            let at = (f64::from(*place) / f64::from(HALF) - 1.0) * end;
            at + end / f64::from(HALF) / 2.0 >= percent
        });
        places.unwrap_or(2 * HALF)
    };
    let (low, high) = (place(low), place(high));
    let bar = (0..=2 * HALF).map(|at| match at {
        _ if at == low && at == high => '┼',
        _ if at == low => '├',
        _ if at == high => '┤',
        _ if at > low && at < high => '─',
        HALF => '│',
        _ => '·',
    });
    Some(bar.collect())
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / real(values.len()) }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// `1:02:03` or `2:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

fn duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

#[cfg(test)]
mod tests {
    use zenkai_measure::{
        experiment::{Arm, Metric},
        statistics::verdict::Better,
    };

    use super::*;

    #[test]
    fn runs_of_a_block_that_is_run_again_are_counted_once() {
        let metric = Metric { name: "time".into(), unit: "s".into(), pattern: None };
        let arms = vec![Arm::new("a", "now"), Arm::new("b", "now")];
        let plan = Plan::new(arms, vec!["true".into()], metric, Better::Lower, 7, 6);
        let trial = |block, attempt, place: usize, status| {
            let arm = plan.block(block, attempt)[place];
            Trial::new(block, attempt, place, arm, status, None)
        };
        let whole: Vec<Trial> = (0..4).map(|place| trial(0, 1, place, Status::Failed)).collect();
        let spoilt = [trial(0, 0, 0, Status::Failed), trial(0, 0, 1, Status::Discarded)];
        let before = [&spoilt[..], &whole].concat();
        let mut err = Vec::new();
        let mut teller = Teller::new(plan.clone(), &before, &mut err);
        assert_eq!((teller.trials, teller.failed), (4, 4), "of what was there before");
        for trial in
            [trial(1, 0, 0, Status::Failed), trial(1, 0, 1, Status::Ok), trial(1, 0, 2, Status::Discarded)]
        {
            teller.trial(&trial);
        }
        assert_eq!((teller.trials, teller.failed), (4, 4), "of a block that is to be run again");
        teller.trial(&trial(1, 1, 0, Status::Ok));
        assert_eq!((teller.trials, teller.failed), (5, 4));
    }

    #[test]
    fn an_interval_is_drawn_on_its_axis() {
        let change = |percent, low, high| Change { percent, low: Some(low), high: Some(high) };
        assert_eq!(numbers(&change(-9.0, -12.0, -6.0)), "-9.0 % [-12.0, -6.0]");
        assert_eq!(bar(&change(-9.0, -12.0, -6.0)).unwrap(), "├─────┤·····│············");
        assert_eq!(bar(&change(0.0, -0.5, 0.5)).unwrap(), "······├───────────┤······");
        let open = Change { percent: 3.0, low: None, high: Some(5.0) };
        assert_eq!((numbers(&open).as_str(), bar(&open)), ("+3.0 % [?, +5.0]", None));
    }

    #[test]
    fn a_narrow_terminal_gets_the_numbers() {
        let texts = ["a long line".to_owned(), "short\r".to_owned(), "no\r".to_owned()];
        let shown = [20, 7, 4, 1].map(|width| fitting(&texts, width));
        assert_eq!(shown, ["a long line", "short\\r", "no\\r", "n"].map(str::to_owned));
    }

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
        assert_eq!(clock(Duration::from_secs(63)), "1:03");
        assert_eq!((duration(0.0123).as_str(), duration(2.0).as_str()), ("12.3 ms", "2.00 s"));
    }
}
