//! What the user sees while an experiment runs: on the error output, so that the result stays alone on the other.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use zenkai_measure::{
    experiment::{Comparison, Plan, Progress, Status, Trial},
    statistics::verdict::{Change, Verdict},
};

use super::real;

/// Half of the interval's bar, in characters.
const HALF: u32 = 12;

/// Tells how an experiment goes.
pub(super) struct Teller<'a> {
    plan: Plan,
    err: &'a mut dyn Write,
    /// One line that is written over; else a line for each look.
    live: bool,
    start: Instant,
    run_s: Vec<f64>,
    switch_s: Vec<f64>,
    trials: usize,
    failed: usize,
    now: String,
}

impl<'a> Teller<'a> {
    /// `done` trials were there before.
    pub(super) fn new(plan: Plan, done: usize, err: &'a mut dyn Write) -> Self {
        Self {
            plan,
            err,
            live: io::stderr().is_terminal(),
            start: Instant::now(),
            run_s: Vec::new(),
            switch_s: Vec::new(),
            trials: done,
            failed: 0,
            now: String::new(),
        }
    }

    pub(super) fn tell(&mut self, progress: &Progress) {
        match progress {
            Progress::WarmUp { arm } => {
                self.line(&format!("a first run that does not count: {}", self.name(*arm)));
            }
            Progress::WarmedUp { trial } => self.warmed_up(trial),
            Progress::Trial { trial } => self.trial(trial),
            Progress::Again(why) => self.keep(&format!("this block is run again: {why}")),
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
        if self.run_s.len() == self.plan.arms.len() {
            let (run, most) = (mean(&self.run_s), self.most());
            let least = self.plan.rule.looks.first().copied().unwrap_or(most) * self.plan.arms.len();
            let cost = |runs: usize| clock(seconds(self.cost_s(runs)));
            self.keep(&format!(
                "a run takes {}; {} for {least} runs, {} for all {most}",
                duration(run),
                cost(least),
                cost(most),
            ));
        }
    }

    /// Most runs there can be.
    fn most(&self) -> usize {
        self.plan.rule.looks.last().copied().unwrap_or_default() * self.plan.arms.len()
    }

    /// Seconds that so many runs cost: five switches in eight runs, as blocks of four come out on average.
    fn cost_s(&self, runs: usize) -> f64 {
        let settle =
            if self.switch_s.is_empty() { self.plan.settle.at_least_s } else { mean(&self.switch_s) };
        real(runs) * (mean(&self.run_s) + 0.625 * settle)
    }

    fn trial(&mut self, trial: &Trial) {
        if trial.status == Status::Discarded {
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
        let text = format!(
            "run {} of at most {}{failed} · {} gone, at most {} left{}",
            self.trials,
            self.most(),
            clock(self.start.elapsed()),
            clock(seconds(self.cost_s(left))),
            self.now,
        );
        self.line(&text);
    }

    fn look(&mut self, comparisons: &[Comparison]) {
        let mut now = String::new();
        for comparison in comparisons {
            let Some(look) = comparison.judgement.looks.last() else { continue };
            let verdict = match comparison.judgement.verdict {
                Verdict::Different => "different",
                Verdict::Equal => "equal",
                Verdict::Undecided => "open",
            };
            let change = look.change.as_ref().map_or_else(String::new, interval);
            now.push_str(&format!(" · {change} {verdict}"));
            if !self.live {
                let name = self.name(comparison.arm).to_owned();
                self.keep(&format!("{} pairs: {name} {change} {verdict}", look.pairs));
            }
        }
        self.now = now;
    }

    /// A line that the next one takes the place of; shown to people only.
    fn line(&mut self, text: &str) {
        if self.live {
            let width =
                rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |size| usize::from(size.ws_col));
            let text: String = visible(text).chars().take(width.saturating_sub(1)).collect();
            let _ = write!(self.err, "\r\x1b[K{text}").and_then(|()| self.err.flush());
        }
    }

    /// A line that stays.
    pub(super) fn keep(&mut self, text: &str) {
        let clear = if self.live { "\r\x1b[K" } else { "" };
        let _ = writeln!(self.err, "{clear}{}", visible(text));
    }

    /// Ends the line that is written over.
    pub(super) fn end(&mut self) {
        if self.live {
            let _ = write!(self.err, "\r\x1b[K").and_then(|()| self.err.flush());
        }
    }
}

/// What programs wrote must not move the cursor.
fn visible(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// `-5.2 % [-6.3, -4.1] ···├─┤····│············`: the interval on an axis with "no difference" in its middle.
fn interval(change: &Change) -> String {
    let number = |limit: Option<f64>| limit.map_or_else(|| "?".to_owned(), |limit| format!("{limit:+.1}"));
    let text = format!("{:+.1} % [{}, {}]", change.percent, number(change.low), number(change.high));
    let (Some(low), Some(high)) = (change.low, change.high) else { return text };
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
    format!("{text} {}", bar.collect::<String>())
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
    use super::*;

    #[test]
    fn an_interval_is_drawn_on_its_axis() {
        let change = |percent, low, high| interval(&Change { percent, low: Some(low), high: Some(high) });
        assert_eq!(change(-9.0, -12.0, -6.0), "-9.0 % [-12.0, -6.0] ├─────┤·····│············");
        assert_eq!(change(0.0, -0.5, 0.5), "+0.0 % [-0.5, +0.5] ······├───────────┤······");
        let open = interval(&Change { percent: 3.0, low: None, high: Some(5.0) });
        assert_eq!(open, "+3.0 % [?, +5.0]");
    }

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
        assert_eq!(clock(Duration::from_secs(63)), "1:03");
        assert_eq!((duration(0.0123).as_str(), duration(2.0).as_str()), ("12.3 ms", "2.00 s"));
        assert_eq!(visible("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
