//! What the machine did: each channel under all arms on one axis, every trial from its own start.

use std::collections::{BTreeMap, BTreeSet};

use zenkai_measure::explain::{ChannelShift, Role};
use zenkai_measure::sampler::Bin;

use super::super::words::{counted, of_channel, shown_as, signed};
use super::super::{Experiment, MOST_BINS, TimeSeries, real};
use super::axis::{Scale, labels, vertical};
use super::page::{Page, colour, legend_of_lines, n};

/// Charts that are open even if nothing changed.
const ALWAYS_OPEN: usize = 6;
/// What vmstat(8) shows, in its order: drawn first where two recordings are put side by side.
const VMSTAT: [&str; 19] = [
    "sched.running",
    "sched.blocked",
    "memory.free",
    "memory.cached",
    "vmstat.swapped_in",
    "vmstat.swapped_out",
    "vmstat.paged_in",
    "vmstat.paged_out",
    "sched.interrupts",
    "sched.context_switches",
    "cpu.usr",
    "cpu.sys",
    "cpu.idle",
    "cpu.iowait",
    "cpu.steal",
    "clock.mean",
    "vmstat.faults",
    "vmstat.major_faults",
    "sched.forks",
];
/// Charts beyond these that are open there: nearly every channel differs between two days.
const OPEN_APART: usize = 12;
/// Bytes after which single trials are no longer drawn, and those after which no chart is.
const SINGLE_TRIALS_UP_TO: usize = 650_000;
pub(super) const CHARTS_UP_TO: usize = 1_250_000;

/// The plot inside a chart. Its own coordinates are ten times as fine, so that lines are whole numbers.
const LEFT: f64 = 56.0;
const TOP: f64 = 28.0;
const WIDTH: f64 = 356.0;
const HEIGHT: f64 = 104.0;
const FINE: f64 = 10.0;
/// What values are put on a scale between, inside of a plot.
pub(super) const INSIDE: (f64, f64) = (HEIGHT * FINE, 0.0);

/// One channel of all trials.
struct Chart<'a> {
    name: &'a str,
    first: &'a TimeSeries,
    shift: Option<&'a ChannelShift>,
    series: Vec<&'a TimeSeries>,
}

impl Chart<'_> {
    fn changed(&self) -> bool {
        self.shift.is_some_and(|shift| shift.role != Role::NotChanged)
    }
}

pub(super) fn series(page: &mut Page, experiment: &Experiment) {
    let (charts, first, silent) = charts(experiment);
    if charts.iter().all(|chart| chart.series.iter().all(|series| series.bins.len() < 2)) {
        page.leaf("p", &[("class", "quiet")], nothing_to_draw(experiment));
        return;
    }
    page.leaf(
        "p",
        &[],
        "Each channel over a trial, all trials from their own start: the line is the median of the trials of an arm, \
         the band reaches from the lowest to the highest sample. Thin lines are single trials.",
    );
    if first > 0 {
        page.leaf("p", &[("class", "quiet")], "First what vmstat(8) shows, then what differs most clearly.");
    }
    legend_of_lines(page, &experiment.names());
    // The order is by role: those that changed come first. A few are always open, so that there is something to see.
    let changed = charts.iter().skip(first).take_while(|chart| chart.changed()).count();
    let open = if first > 0 { first + changed.min(OPEN_APART) } else { changed.max(ALWAYS_OPEN) };
    let all: Vec<&Chart> = charts.iter().collect();
    let (changed, others) = all.split_at(open.min(all.len()));
    let mut left_out = 0;
    if !changed.is_empty() {
        page.el("div", &[("class", "charts")], |page| left_out += draw(page, experiment, changed));
    }
    let groups: BTreeSet<&str> = others.iter().map(|chart| &*chart.first.group).collect();
    for group in groups {
        let of_group: Vec<&Chart> =
            others.iter().copied().filter(|chart| &*chart.first.group == group).collect();
        page.el("details", &[("class", "group")], |page| {
            let name = if group.is_empty() { "others" } else { group };
            page.leaf("summary", &[], &format!("{name}: {}", counted(of_group.len(), "more channel")));
            page.el("div", &[("class", "charts")], |page| left_out += draw(page, experiment, &of_group));
        });
    }
    page.leaf("p", &[("class", "quiet")], &not_drawn(silent, left_out));
}

/// Why there is no chart at all.
fn nothing_to_draw(experiment: &Experiment) -> &'static str {
    if experiment.series.is_empty() {
        "Nothing was sampled while the trials ran."
    } else {
        "The trials were too short for lines over time: of each there is one sample. A shorter --interval, such as \
         10ms, gives more."
    }
}

/// What has no chart, and why.
pub(super) fn not_drawn(silent: usize, left_out: usize) -> String {
    let silent = (silent > 0).then(|| format!("{} stayed at zero: not drawn.", counted(silent, "channel")));
    let left_out = (left_out > 0).then(|| {
        format!("{} left out to keep the page small; what was recorded has all.", counted(left_out, "chart"))
    });
    silent.into_iter().chain(left_out).collect::<Vec<_>>().join(" ")
}

/// The channels in the order of the explanation, those that it does not know last. Of two recordings those of vmstat
/// come first; how many they are; and how many channels are left out because they stayed at zero.
fn charts<'a>(experiment: &Experiment<'a>) -> (Vec<Chart<'a>>, usize, usize) {
    let mut by_name: BTreeMap<&str, Vec<&TimeSeries>> = BTreeMap::new();
    for series in experiment.series.iter().filter(|series| series.bins.iter().any(Option::is_some)) {
        by_name.entry(&series.channel).or_default().push(series);
    }
    let all = by_name.len();
    by_name.retain(|_, series| {
        series.iter().flat_map(|one| &one.bins).flatten().any(|bin| bin.low != 0.0 || bin.high != 0.0)
    });
    let silent = all - by_name.len();
    let mut charts: Vec<Chart> = by_name
        .into_iter()
        .filter_map(|(name, series)| {
            Some(Chart { name, first: series.first()?, shift: shift(experiment, name), series })
        })
        .collect();
    let key = |chart: &Chart| chart.shift.map_or((Role::NotChanged, 2.0), |shift| (shift.role, shift.p));
    charts.sort_by(|left, right| {
        let (left, right) = (key(left), key(right));
        left.0.cmp(&right.0).then(left.1.total_cmp(&right.1))
    });
    if !experiment.apart {
        return (charts, 0, silent);
    }
    let place = |chart: &Chart| VMSTAT.iter().position(|name| *name == chart.name).unwrap_or(VMSTAT.len());
    charts.sort_by_key(place);
    let first = charts.iter().filter(|chart| place(chart) < VMSTAT.len()).count();
    (charts, first, silent)
}

/// What is known of a channel: of several comparisons the one in which it changed most clearly.
fn shift<'a>(experiment: &Experiment<'a>, name: &str) -> Option<&'a ChannelShift> {
    let of_name = experiment.explanations.iter().flat_map(|explanation| &explanation.channels);
    of_name.filter(|shift| shift.name == name).min_by(|left, right| left.role.cmp(&right.role))
}

/// Draws charts and says how many had no room.
fn draw(page: &mut Page, experiment: &Experiment, charts: &[&Chart]) -> usize {
    let start = charts.iter().take_while(|chart| {
        if page.len() > CHARTS_UP_TO {
            return false;
        }
        one(page, experiment, chart);
        true
    });
    charts.len() - start.count()
}

fn one(page: &mut Page, experiment: &Experiment, chart: &Chart) {
    let arms = (0..experiment.plan.arms.len()).map(|arm| bands(experiment, chart, arm)).collect::<Vec<_>>();
    let bins = arms.iter().flatten().flatten();
    let y = Scale::over(bins.flat_map(|bin| [bin.low, bin.high]), 0.04, INSIDE);
    let count = arms.iter().map(Vec::len).max().unwrap_or(0);
    let seconds = real(count) * chart.first.width_s;
    let words = if chart.first.words.is_empty() { chart.name } else { &*chart.first.words };
    let changed = chart.changed();
    let class = if changed { "chart changed" } else { "chart" };
    page.el("figure", &[("class", class), ("data-name", chart.name)], |page| {
        page.el("figcaption", &[], |page| {
            page.leaf("b", &[], words);
            page.leaf("span", &[("class", "quiet")], &said(chart));
        });
        let (_, unit) = shown_as(chart.name, &chart.first.unit);
        picture(page, words, (y, seconds), unit, |page| {
            plot(page, experiment, chart, (&arms, y, count), changed);
        });
    });
}

/// A plot over time with its axes; `body` draws in coordinates of its own, which the script can zoom: along the time as
/// [`step`] says, and upwards over the scale, which lies [`INSIDE`].
pub(super) fn picture(
    page: &mut Page,
    label: &str,
    (y, seconds): (Scale, f64),
    unit: &str,
    body: impl FnOnce(&mut Page),
) {
    page.el("svg", &[("viewBox", "0 0 430 160"), ("role", "img"), ("aria-label", label)], |page| {
        let outside = Scale { from: TOP + HEIGHT, to: TOP, ..y };
        let (unit, power) = vertical(page, &outside, (LEFT, LEFT + WIDTH), unit, "");
        time_axis(page, seconds);
        let (x, width) = (n(LEFT), n(WIDTH));
        let (top, height) = (n(TOP), n(HEIGHT));
        let view = format!("0 0 {} {}", n(WIDTH * FINE), n(HEIGHT * FINE));
        // The script reads values in the unit of the axis.
        let [low, high, seconds] = [y.low / power, y.high / power, seconds].map(|value| format!("{value:e}"));
        let attributes = [
            ("class", "plot"),
            ("x", x.as_str()),
            ("y", &top),
            ("width", &width),
            ("height", &height),
            ("viewBox", &view),
            ("preserveAspectRatio", "none"),
            ("data-low", &low),
            ("data-high", &high),
            ("data-seconds", &seconds),
            ("data-unit", &unit),
        ];
        page.el("svg", &attributes, |page| {
            page.void("rect", &[("class", "catch"), ("width", "100%"), ("height", "100%")]);
            body(page);
        });
    });
}

/// Width of each of `count` bins in the coordinates of a plot.
pub(super) fn step(count: usize) -> f64 {
    WIDTH * FINE / real(count.max(1))
}

fn said(chart: &Chart) -> String {
    let Some(shift) = chart.shift else { return String::new() };
    let show = |value: f64| of_channel(chart.name, &chart.first.unit, value);
    let change = shift.percent.map_or(String::new(), |percent| format!(" ({})", signed(percent)));
    match shift.role {
        Role::Explains => format!("{} → {}{change}: explains", show(shift.a), show(shift.b)),
        Role::AlsoChanged => format!("{} → {}{change}: also changed", show(shift.a), show(shift.b)),
        Role::NotChanged => format!("{}: no change seen", show(shift.a)),
    }
}

fn time_axis(page: &mut Page, seconds: f64) {
    let x = Scale { low: 0.0, high: seconds.max(1e-3), from: LEFT, to: LEFT + WIDTH };
    let (ticks, step) = x.ticks(6.0);
    let (labels, ..) = labels(&ticks, step, "");
    let last = ticks.len();
    page.el("g", &[("class", "axis time"), ("aria-hidden", "true")], |page| {
        for (place, (tick, label)) in (1..).zip(ticks.iter().zip(&labels)) {
            let label = if place == last { format!("{label} s") } else { label.clone() };
            page.leaf(
                "text",
                &[("x", &n(x.at(*tick))), ("y", &n(TOP + HEIGHT + 15.0)), ("class", "mid")],
                &label,
            );
        }
        let line = format!("M{} {}H{}", n(LEFT), n(TOP + HEIGHT), n(LEFT + WIDTH));
        page.void("path", &[("class", "line"), ("d", &line)]);
    });
}

type Plotted<'a> = (&'a [Vec<Option<Bin>>], Scale, usize);

/// Bands and lines.
fn plot(page: &mut Page, experiment: &Experiment, chart: &Chart, (arms, y, count): Plotted, changed: bool) {
    let step = step(count);
    for (arm, bins) in arms.iter().enumerate() {
        let d = band(bins, &y, step);
        page.void("path", &[("class", &format!("{} band", colour(arm))), ("d", &d)]);
    }
    if changed && page.len() < SINGLE_TRIALS_UP_TO {
        for series in &chart.series {
            let Some(trial) = experiment.trials.get(series.trial) else { continue };
            let (factor, _) = shown_as(chart.name, &chart.first.unit);
            let d = line(series.bins.iter().map(|bin| bin.map(|bin| factor * bin.mean)), &y, step);
            page.void("path", &[("class", &format!("{} single", colour(trial.arm))), ("d", &d)]);
        }
    }
    for (arm, bins) in arms.iter().enumerate() {
        let d = line(bins.iter().map(|bin| bin.map(|bin| bin.mean)), &y, step);
        let name = &experiment.short(arm);
        page.void("path", &[("class", &format!("{} med", colour(arm))), ("d", &d), ("data-arm", name)]);
    }
}

/// Of each bin the median of the trials' means, and the lowest and highest sample of any trial.
fn bands(experiment: &Experiment, chart: &Chart, arm: usize) -> Vec<Option<Bin>> {
    let of_arm: Vec<&&TimeSeries> = chart
        .series
        .iter()
        .filter(|series| experiment.trials.get(series.trial).is_some_and(|trial| trial.arm == arm))
        .collect();
    let count = of_arm.iter().map(|series| series.bins.len()).max().unwrap_or(0).min(MOST_BINS);
    let (factor, _) = shown_as(chart.name, &chart.first.unit);
    let merge = |place: usize| {
        let bins: Vec<Bin> = of_arm
            .iter()
            .filter_map(|series| series.bins.get(place)?.map(|bin| scaled(bin, factor)))
            .collect();
        let mut means: Vec<f64> = bins.iter().map(|bin| bin.mean).collect();
        means.sort_by(f64::total_cmp);
        let mean = *means.get(means.len() / 2)?;
        let low = bins.iter().map(|bin| bin.low).fold(f64::INFINITY, f64::min);
        let high = bins.iter().map(|bin| bin.high).fold(f64::NEG_INFINITY, f64::max);
        Some(Bin { low, mean, high })
    };
    (0..count).map(merge).collect()
}

/// A bin in the unit in which it is shown.
pub(super) fn scaled(bin: Bin, factor: f64) -> Bin {
    Bin { low: factor * bin.low, mean: factor * bin.mean, high: factor * bin.high }
}

/// A pen that writes whole numbers, each relative to the point before: the shortest way to write a line.
struct Pen {
    d: String,
    at: Option<(f64, f64)>,
}

impl Pen {
    fn to(&mut self, (x, y): (f64, f64)) {
        let (x, y) = (x.round(), y.round());
        match self.at {
            None => self.d.push_str(&format!("M{x:.0} {y:.0}l")),
            Some((from_x, from_y)) => {
                let (dx, dy) = (x - from_x + 0.0, y - from_y + 0.0);
                let last = self.d.ends_with('l');
                let space = if last || dx < 0.0 { "" } else { " " };
                let middle = if dy < 0.0 { "" } else { " " };
                self.d.push_str(&format!("{space}{dx:.0}{middle}{dy:.0}"));
            }
        }
        self.at = Some((x, y));
    }

    fn lift(&mut self) {
        // A point of its own is drawn as a dot by the round ends of lines.
        if self.d.ends_with('l') {
            self.d.push_str("0 0");
        }
        self.at = None;
    }
}

pub(super) fn line(values: impl Iterator<Item = Option<f64>>, y: &Scale, step: f64) -> String {
    let mut pen = Pen { d: String::new(), at: None };
    for (place, value) in values.enumerate() {
        match value {
            Some(value) => pen.to(((real(place) + 0.5) * step, y.at(value))),
            None => pen.lift(),
        }
    }
    pen.lift();
    pen.d
}

/// The outline of a band; every gap begins a new one.
pub(super) fn band(bins: &[Option<Bin>], y: &Scale, step: f64) -> String {
    let mut d = String::new();
    let mut start = 0;
    for run in bins.split(Option::is_none) {
        let x = |place: usize| (real(start + place) + 0.5) * step;
        let upper = run.iter().flatten().enumerate().map(|(place, bin)| (x(place), y.at(bin.high)));
        let lower: Vec<(f64, f64)> =
            run.iter().flatten().enumerate().map(|(place, bin)| (x(place), y.at(bin.low))).collect();
        let mut pen = Pen { d: String::new(), at: None };
        upper.chain(lower.into_iter().rev()).for_each(|point| pen.to(point));
        if !run.is_empty() {
            d.push_str(&pen.d);
            d.push('z');
        }
        start += run.len() + 1;
    }
    d
}
