//! What `cargo xtask calibrate` found, as a page.

use std::{fmt::Write as _, process::Command, time::Duration};

use anyhow::Context as _;

use crate::{
    calibrate::{CONTROLS, Series, covers},
    process::root,
};

/// The machine while it was measured.
pub(crate) struct Conditions {
    date: String,
    kernel: String,
    cpus: usize,
    guest: bool,
    load: String,
    nice: String,
}

impl Conditions {
    pub(crate) fn now() -> anyhow::Result<Self> {
        let read = |path: &str| std::fs::read_to_string(path).with_context(|| path.to_owned());
        let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?.stdout;
        let stat = read("/proc/self/stat")?;
        // proc(5): the 19th field; the second is in brackets and may contain blanks.
        let nice = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(16));
        Ok(Self {
            date: String::from_utf8(date)?.trim().to_owned(),
            kernel: read("/proc/sys/kernel/osrelease")?
                .split('-')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
            cpus: std::thread::available_parallelism()?.get(),
            guest: read("/proc/cpuinfo")?
                .lines()
                .any(|line| line.starts_with("flags") && line.contains(" hypervisor")),
            load: read("/proc/loadavg")?.split(' ').take(3).collect::<Vec<_>>().join(", "),
            nice: nice.unwrap_or("unknown").to_owned(),
        })
    }

    /// How a part was measured, when it began under these conditions and ended under others.
    pub(crate) fn sentence(&self, after: &Self, took: Duration) -> String {
        format!(
            "Measured on {} in {} minutes on a {}machine with {} CPUs, Linux {}, nice value {}. Load averages over 1, 5 and 15 \
             minutes: {} at the beginning, {} at the end; where that is more than the CPUs, other programs were the \
             noise.\n",
            self.date,
            took.as_secs().div_ceil(60),
            if self.guest { "virtual " } else { "" },
            self.cpus,
            self.kernel,
            self.nice,
            self.load,
            after.load,
        )
    }
}

const HEAD: &str = "# Calibration on a real machine

The [statistics](statistics.md) promise that equal arms are called *different* in at most 5 % of experiments, whatever the
noise, and that the interval holds the true difference. The tests show it with simulated noise; this page shows it with
real processes on a real machine. `cargo xtask calibrate` writes it, with what it found.
";

const REPEAT: &str = "
## How to repeat

    cargo xtask calibrate                 # 40 experiments for each workload, up to 40 pairs of runs in each
    cargo xtask calibrate --part known    # only this section anew

`--pairs`, `--repeats` and `--minutes` make it shorter. The seeds of the orders of runs are fixed, the noise is not, so the
figures differ each time. The scripts that are run are in `xtask/src/calibrate.rs`. `zenkai compare --aa -- COMMAND` does
one such experiment with a workload of yours.
";

/// The headings of the two parts.
const PARTS: [&str; 2] = ["\n## Equal arms\n", "\n## Known differences\n"];

/// Writes the page with these sections; a part that was not measured now stays as it is.
pub(crate) fn write(sections: &[String]) -> anyhow::Result<()> {
    let path = root().join("docs/calibration.md");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let mut page = HEAD.to_owned();
    for heading in PARTS {
        let new = sections.iter().find(|section| section.starts_with(heading));
        page.push_str(new.map_or_else(|| part(&old, heading), String::as_str));
    }
    page.push_str(REPEAT);
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}

/// A part of a page: from its heading to the next one of the same level.
fn part<'a>(page: &'a str, heading: &str) -> &'a str {
    let Some(start) = page.find(heading) else { return "" };
    let rest = &page[start..];
    let end = rest[heading.len()..].find("\n## ").map_or(rest.len(), |end| heading.len() + end);
    &rest[..end]
}

pub(crate) fn equal_arms(equal: &[Series], pairs: u16, conditions: &str) -> String {
    let mut page = format!(
        "{}\n`zenkai compare --aa`, at most {pairs} pairs of runs, all looks of the plan. A false alarm is the verdict \
         *different*. *Equal* is the right answer within 2 %; *undecided* is what noise allows. {conditions}\n\
         | workload | a run | experiments | false alarms | 95 % interval of their rate | equal | undecided |\n\
         |---|---|---|---|---|---|---|\n",
        PARTS[0],
    );
    let (mut alarms, mut all, mut equals, mut open) = (0, 0, 0, 0);
    for series in equal {
        let found = (series.count("different"), series.count("equal"), series.count("undecided"));
        row(&mut page, series.name, &a_run(series), (found.0, series.len()), (found.1, found.2));
        alarms += found.0;
        all += series.len();
        equals += found.1;
        open += found.2;
    }
    row(&mut page, "all", "", (alarms, all), (equals, open));
    let (low, high) = interval(alarms, all);
    let word = if low <= 0.05 { "is compatible" } else { "is NOT compatible" };
    let _ = write!(
        page,
        "\nThe rate of false alarms lies between {:.1} and {:.1} % (Clopper and Pearson 1934). That {word} with the promised \
         5 %.\n",
        100.0 * low,
        100.0 * high,
    );
    page
}

fn row(page: &mut String, name: &str, a_run: &str, (alarms, all): (u64, u64), (equal, open): (u64, u64)) {
    let (low, high) = interval(alarms, all);
    let _ = writeln!(
        page,
        "| {name} | {a_run} | {all} | {alarms} | {:.1} to {:.1} % | {equal} | {open} |",
        100.0 * low,
        100.0 * high
    );
}

/// The range of the medians of the experiments' runs.
fn a_run(series: &Series) -> String {
    let medians = series.ended.iter().filter_map(|ended| ended.median_s);
    let (low, high) = medians.fold((f64::INFINITY, 0.0_f64), |(low, high), s| (low.min(s), high.max(s)));
    if low.is_finite() { format!("{:.0} to {:.0} ms", 1e3 * low, 1e3 * high) } else { String::new() }
}

pub(crate) fn known_differences(known: &[Series], pairs: Option<u16>, conditions: &str) -> String {
    let pairs = pairs.map_or_else(
        || "As many pairs of runs as zenkai plans by itself for runs so short: what takes a minute, at most 200.".to_owned(),
        |pairs| format!("At most {pairs} pairs of runs."),
    );
    let mut page = format!(
        "{}\n{pairs} The loop is judged by its CPU time in user mode, which neighbours on the same \
         core lengthen too. The limits are judged by the wall clock. That of 95 % is only reached while the loop has a \
         CPU for itself; on a crowded machine the truth is between 0 and the one named. Those of 20 and 19 % are reached \
         on a crowded machine too. {conditions}\n\
         | difference | metric | truth | found | pairs | intervals that hold the truth |\n|---|---|---|---|---|---|\n",
        PARTS[1],
    );
    for (series, control) in known.iter().zip(&CONTROLS) {
        let pairs: Vec<String> = series.ended.iter().map(|ended| ended.pairs.to_string()).collect();
        let cover = series.ended.iter().filter(|ended| covers(ended, control.truth_percent)).count();
        let _ = writeln!(
            page,
            "| {} | {} | {:+.2} % | {} of {} | {} | {cover} of {} |",
            series.name,
            control.metric,
            control.truth_percent,
            series.count("different"),
            series.len(),
            pairs.join(", "),
            series.len(),
        );
    }
    page.push_str("\nEach estimate with its interval:\n\n");
    for series in known {
        let each = series.ended.iter().map(|ended| match ended.effect {
            Some((effect, low, high)) => format!("{effect:+.2} % [{low:+.2}, {high:+.2}]"),
            None => "none".to_owned(),
        });
        let _ = writeln!(page, "* {}: {}", series.name, each.collect::<Vec<_>>().join("; "));
    }
    page
}

/// The rates that `alarms` of `all` do not contradict at 95 %: Clopper and Pearson, Biometrika 26 (1934).
pub(crate) fn interval(alarms: u64, all: u64) -> (f64, f64) {
    let bisect = |is_below: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if is_below(middle) { low = middle } else { high = middle }
        }
        low
    };
    let low = if alarms == 0 { 0.0 } else { bisect(&|rate| 1.0 - at_most(alarms - 1, all, rate) < 0.025) };
    let high = if alarms >= all { 1.0 } else { bisect(&|rate| at_most(alarms, all, rate) > 0.025) };
    (low, high)
}

/// Chance of at most `k` successes in `n` trials.
#[expect(clippy::cast_precision_loss, reason = "counts below 100 000")]
fn at_most(k: u64, n: u64, rate: f64) -> f64 {
    let mut ln_choose = 0.0;
    let mut sum = 0.0;
    for i in 0..=k.min(n) {
        if i > 0 {
            ln_choose += (((n - i + 1) as f64) / (i as f64)).ln();
        }
        sum += (ln_choose + i as f64 * rate.ln() + (n - i) as f64 * (-rate).ln_1p()).exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::interval;

    /// R: `binom.test(0, 40)$conf.int` and so on.
    #[test]
    fn intervals_are_those_of_the_tables() {
        let near = |(low, high): (f64, f64), (a, b): (f64, f64)| {
            assert!((low - a).abs() < 2e-4 && (high - b).abs() < 2e-4, "{low} {high}");
        };
        near(interval(0, 40), (0.0, 0.0881));
        near(interval(40, 40), (0.9119, 1.0));
        near(interval(1, 2), (0.0126, 0.9874));
    }
}
