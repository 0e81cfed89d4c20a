//! A recording as a page: what vmstat(8) shows first, everything else folded below it, equal things in one chart.

use zenkai_measure::sampler::{Bin, Curve, Digest};

use super::super::words::{beginning, clock, counted, digits_short, of_channel, quantity, shown_as};
use super::axis::Scale;
use super::page::{Page, colour, legend_of_lines};
use super::sections::{folded, table};
use super::series::{CHARTS_UP_TO, INSIDE, band, line, not_drawn, picture, scaled, step};
use super::{document, section};

/// More lines than this in one chart cannot be told apart.
const MOST_LINES: usize = 6;
/// Rows of the table of numbers; the text has all.
const MOST_ROWS: usize = 800;

/// A chart of the overview: its title, and each channel with what it is called there.
type Asked = (&'static str, &'static [(&'static str, &'static str)]);

const OVERVIEW: [Asked; 11] = [
    (
        "CPU time, share of all CPUs",
        &[
            ("cpu.usr", "user"),
            ("cpu.sys", "kernel"),
            ("cpu.iowait", "idle, waiting for I/O"),
            ("cpu.irq", "interrupts"),
            ("cpu.softirq", "software interrupts"),
            ("cpu.steal", "stolen by the hypervisor"),
        ],
    ),
    ("Threads", &[("sched.running", "running or waiting for a CPU"), ("sched.blocked", "waiting for I/O")]),
    (
        "Switches and interrupts",
        &[("sched.context_switches", "context switches"), ("sched.interrupts", "interrupts")],
    ),
    ("Clock", &[("clock.mean", "mean of the CPUs")]),
    (
        "Memory",
        &[
            ("memory.free", "free"),
            ("memory.cached", "page cache"),
            ("memory.anonymous", "of processes"),
            ("memory.swap_used", "swapped out"),
        ],
    ),
    ("All disks", &[("vmstat.paged_in", "read"), ("vmstat.paged_out", "written")]),
    ("Swapping", &[("vmstat.swapped_in", "in"), ("vmstat.swapped_out", "out")]),
    (
        "Time in which some threads waited",
        &[
            ("pressure.cpu.some", "for a CPU"),
            ("pressure.io.some", "for I/O"),
            ("pressure.memory.some", "for memory"),
        ],
    ),
    (
        "CPUs that the workload used",
        &[("cgroup.cpu", "all"), ("cgroup.usr", "user"), ("cgroup.sys", "kernel")],
    ),
    ("Memory of the workload", &[("cgroup.memory", "with its page cache")]),
    ("Disk traffic of the workload", &[("cgroup.read_bytes", "read"), ("cgroup.write_bytes", "written")]),
];

/// Quantities of several devices that belong to the overview: group, quantity, title.
const OF_DEVICES: [(&str, &str, &str); 4] = [
    ("block", "util", "Share of time in which a disk was busy"),
    ("net", "rx_bytes", "Received by network interface"),
    ("net", "tx_bytes", "Sent by network interface"),
    ("energy", "", "Power"),
];

/// A line of a chart.
struct Line {
    name: String,
    bins: Vec<Option<Bin>>,
}

/// A chart.
struct Chart<'a> {
    title: String,
    /// What the search finds it by.
    names: String,
    unit: &'a str,
    note: String,
    lines: Vec<Line>,
    /// Whether the first line has its samples' extremes behind it.
    banded: bool,
    from_zero: bool,
}

/// A recording as a page. `name` is what its file is called.
pub fn recorded_html(name: &str, digest: &Digest) -> String {
    let title = title(digest);
    document(&format!("{title} · zenkai"), |page| {
        page.el("header", &[], |page| header(page, name, &title, digest));
        let (overview, at_zero) = overview(digest);
        section(page, "overview", "At a glance", |page| {
            page.el("div", &[("class", "charts")], |page| {
                for chart in &overview {
                    draw(page, digest, chart);
                }
            });
            if !at_zero.is_empty() {
                let note = format!("Nothing happened, so not drawn: {}.", at_zero.join(", "));
                page.leaf("p", &[("class", "quiet")], &note);
            }
        });
        section(page, "channels", "Everything that was recorded", |page| channels(page, digest));
        section(page, "processes", "Busiest processes", |page| processes(page, digest));
        section(page, "missing", "Not measured", |page| missing(page, digest));
        section(page, "numbers", "Numbers", |page| numbers(page, digest));
    })
}

/// Letters of a command that a heading has room for.
const LONG: usize = 72;

fn title(digest: &Digest) -> String {
    let command = digest.about.iter().find(|(name, _)| name == "command");
    beginning(command.map_or("What the machine did", |(_, command)| command), LONG)
}

fn header(page: &mut Page, name: &str, title: &str, digest: &Digest) {
    page.leaf("h2", &[], title);
    let own = 100.0 * digest.own_cpu_s / digest.duration_s.max(1e-9);
    let begun = crate::utc(digest.started_ns / 1_000_000_000);
    let every = short(digest.interval_s);
    let wanted = digest.duration_s / digest.interval_s.max(1e-9);
    let samples = if super::super::real(digest.samples) < 0.98 * wanted {
        format!("{} samples instead of {wanted:.0}", digest.samples)
    } else {
        format!("{} samples", digest.samples)
    };
    let facts = format!(
        "{} from {begun} · {samples}, one every {every} · the recorder itself used {own:.2} % of one CPU · {name}",
        clock(digest.duration_s)
    );
    page.leaf("p", &[("class", "quiet")], &facts);
    for (what, why) in digest.missing.iter().filter(|(what, _)| is_warning(what)) {
        page.leaf("p", &[("class", "warning")], &format!("{what}: {why}"));
    }
    let each = digest.width_s / digest.interval_s.max(1e-9);
    let words = if each > 1.5 {
        format!(
            "A line shows the mean of {} each: {each:.0} samples where there is one every {every}. Behind a single line is \
             the range from the least to the greatest sample. The file has all of them.",
            short(digest.width_s)
        )
    } else {
        "Lines go through every sample.".to_owned()
    };
    page.leaf("p", &[("class", "quiet")], &words);
    let rows = digest.about.iter().map(|(name, value)| [name.clone(), value.clone()]);
    if rows.len() > 0 {
        page.el("details", &[("id", "host")], |page| {
            page.leaf("summary", &[], "Command and machine");
            table(page, &[("", false), ("", false)], rows);
        });
    }
}

/// A length of time that was asked for: a round number.
fn short(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{} ms", digits_short(1000.0 * seconds))
    } else {
        format!("{} s", digits_short(seconds))
    }
}

/// What concerns the recording as a whole.
fn is_warning(what: &str) -> bool {
    matches!(what, "the end" | "machine" | "samples")
}

/// The charts of the overview, and the titles of those in which nothing happened.
fn overview(digest: &Digest) -> (Vec<Chart<'_>>, Vec<&'static str>) {
    let (mut charts, mut at_zero) = (Vec::new(), Vec::new());
    for (title, asked) in OVERVIEW {
        let found = |(name, called): &(&str, &str)| {
            let curve = digest.curves.iter().find(|curve| curve.channel.name == *name)?;
            Some((curve, (*called).to_owned()))
        };
        let found: Vec<(&Curve, String)> = asked.iter().filter_map(found).collect();
        push(&mut charts, &mut at_zero, title, found);
    }
    if !charts.iter().any(|chart| chart.title == "Clock") {
        push(&mut charts, &mut at_zero, "Clock", of_family(digest, "clock", ""));
    }
    for (group, quantity, title) in OF_DEVICES {
        push(&mut charts, &mut at_zero, title, of_family(digest, group, quantity));
    }
    (charts, at_zero)
}

/// The members of a family with their names, those with the highest mean first, as many as a chart can show.
fn of_family<'a>(digest: &'a Digest, group: &str, quantity: &str) -> Vec<(&'a Curve, String)> {
    let member = |curve: &'a Curve| {
        let of = family(&curve.channel.name)?;
        (of.group == group && of.quantity == quantity).then(|| (curve, of.member.to_owned()))
    };
    let mut found: Vec<(&Curve, String)> = digest.curves.iter().filter_map(member).collect();
    found.sort_by(|left, right| mean(right.0).total_cmp(&mean(left.0)));
    found.truncate(MOST_LINES);
    found
}

fn push<'a>(
    charts: &mut Vec<Chart<'a>>,
    at_zero: &mut Vec<&'static str>,
    title: &'static str,
    found: Vec<(&'a Curve, String)>,
) {
    let Some((first, _)) = found.first() else { return };
    let unit = unit(first);
    let (silent, moving): (Vec<_>, Vec<_>) = found.into_iter().partition(|(curve, _)| is_zero(curve));
    if moving.is_empty() {
        at_zero.push(title);
        return;
    }
    let silent: Vec<String> = silent.into_iter().map(|(_, name)| name).collect();
    let mut note = Vec::new();
    if let [(curve, name)] = moving.as_slice() {
        note.push(name.clone());
        note.extend(exceeding(curve).map(str::to_owned));
    }
    if !silent.is_empty() {
        note.push(format!("at zero all the time: {}", silent.join(", ")));
    }
    let banded = matches!(moving.as_slice(), [(curve, _)] if exceeding(curve).is_none());
    let lines: Vec<Line> =
        moving.into_iter().map(|(curve, name)| Line { name, bins: shown(curve) }).collect();
    let (names, note) = (title.to_owned(), note.join("; "));
    charts.push(Chart { title: names.clone(), names, unit, note, lines, banded, from_zero: unit != "Hz" });
}

/// Why single samples of a channel may lie where its mean cannot, so that their range is not drawn.
fn exceeding(curve: &Curve) -> Option<&'static str> {
    // block/blk-core.c, `update_io_ticks`.
    let is_busy_time = curve.channel.name.starts_with("block.") && unit(curve) == "%";
    is_busy_time.then_some("counted when requests begin and end, so that only the mean is a share")
}

/// Whether a channel never was anything but zero.
fn is_zero(curve: &Curve) -> bool {
    curve.bins.iter().flatten().all(|bin| bin.low == 0.0 && bin.high == 0.0)
}

fn mean(curve: &Curve) -> f64 {
    let values: Vec<f64> = curve.bins.iter().flatten().map(|bin| bin.mean).collect();
    values.iter().sum::<f64>() / super::super::real(values.len().max(1))
}

fn unit(curve: &Curve) -> &str {
    shown_as(&curve.channel.name, &curve.channel.unit).1
}

/// The bins in the unit in which they are shown.
fn shown(curve: &Curve) -> Vec<Option<Bin>> {
    let (factor, _) = shown_as(&curve.channel.name, &curve.channel.unit);
    curve.bins.iter().map(|bin| bin.map(|bin| scaled(bin, factor))).collect()
}

/// One of several equal things.
struct Family<'a> {
    /// What they are: `cpu`, `block`.
    group: &'a str,
    /// Which of them: `cpu7`, `nvme0n1`.
    member: &'a str,
    /// What is measured of it.
    quantity: &'a str,
}

fn family(name: &str) -> Option<Family<'_>> {
    let (group, rest) = name.split_once('.')?;
    let is_cpu = |text: &str| {
        text.strip_prefix("cpu")
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    if is_cpu(group) {
        return Some(Family { group: "cpu", member: group, quantity: rest });
    }
    match group {
        "block" | "net" => {
            let (member, quantity) = rest.rsplit_once('.')?;
            Some(Family { group, member, quantity })
        }
        "interrupts" | "softirqs" => {
            let quantity = if is_cpu(rest) { "on each CPU" } else { "of each kind" };
            Some(Family { group, member: rest, quantity })
        }
        "clock" if is_cpu(rest) => Some(Family { group, member: rest, quantity: "" }),
        "idle" => {
            let entries = rest.strip_suffix(".entries");
            let quantity = if entries.is_some() { "entries" } else { "" };
            Some(Family { group, member: entries.unwrap_or(rest), quantity })
        }
        "energy" => Some(Family { group, member: rest, quantity: "" }),
        _ => None,
    }
}

/// What a chart of a family is called, from the words of one member.
fn family_title(of: &Family, words: &str) -> String {
    let number = of.member.trim_start_matches("cpu");
    match of.group {
        "cpu" => words.replace(&format!("CPU {number}"), "each CPU"),
        "block" => words.replace(of.member, "each disk"),
        "net" => words.replace(of.member, "each interface"),
        "interrupts" => format!("interrupts {}", of.quantity),
        "softirqs" => format!("software interrupts {}", of.quantity),
        "clock" => words.replace(of.member, "each CPU"),
        "idle" if of.quantity.is_empty() => "CPUs in each idle state, on average".to_owned(),
        "idle" => "idle states entered".to_owned(),
        _ => "power of each domain".to_owned(),
    }
}

/// All channels that were not zero all the time, by group.
fn channels(page: &mut Page, digest: &Digest) {
    let (silent, moving): (Vec<&Curve>, Vec<&Curve>) = digest.curves.iter().partition(|curve| is_zero(curve));
    let mut groups: Vec<(String, Vec<Vec<&Curve>>)> = Vec::new();
    for curve in moving {
        let of = family(&curve.channel.name);
        let group = of.as_ref().map_or(curve.channel.group.as_str(), |of| of.group);
        let at = groups.iter().position(|(name, _)| name == group).unwrap_or_else(|| {
            groups.push((group.to_owned(), Vec::new()));
            groups.len() - 1
        });
        let Some((_, charts)) = groups.get_mut(at) else { continue };
        let like = |other: &Vec<&Curve>| {
            let other = other.first().and_then(|other| family(&other.channel.name));
            of.as_ref().zip(other).is_some_and(|(of, other)| of.quantity == other.quantity)
        };
        match charts.iter_mut().find(|other| like(other)) {
            Some(others) => others.push(curve),
            None => charts.push(vec![curve]),
        }
    }
    let mut left_out = 0;
    for (group, charts) in &groups {
        page.el("details", &[("class", "group")], |page| {
            let count = charts.iter().map(Vec::len).sum::<usize>();
            page.leaf(
                "summary",
                &[],
                &format!("{group}: {} in {}", counted(count, "channel"), counted(charts.len(), "chart")),
            );
            page.el("div", &[("class", "charts")], |page| {
                for members in charts {
                    if page.len() > CHARTS_UP_TO {
                        left_out += 1;
                    } else if let Some(chart) = combined(members) {
                        draw(page, digest, &chart);
                    }
                }
            });
        });
    }
    page.leaf("p", &[("class", "quiet")], &not_drawn(silent.len(), left_out));
}

/// One chart of a channel, or of one quantity of several equal things.
fn combined<'a>(members: &[&'a Curve]) -> Option<Chart<'a>> {
    let first = *members.first()?;
    let of = family(&first.channel.name);
    let called = |curve: &Curve| {
        family(&curve.channel.name).map_or_else(|| curve.channel.name.clone(), |of| of.member.to_owned())
    };
    let names = members.iter().map(|curve| curve.channel.name.as_str()).collect::<Vec<_>>().join(" ");
    let mut chart = Chart {
        title: first.channel.words.clone(),
        names,
        unit: unit(first),
        note: String::new(),
        lines: Vec::new(),
        banded: true,
        from_zero: false,
    };
    if members.len() == 1 {
        let parts = [Some(first.channel.name.as_str()), exceeding(first)];
        chart.note = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        chart.banded = exceeding(first).is_none();
        chart.lines = vec![Line { name: called(first), bins: shown(first) }];
        return Some(chart);
    }
    chart.title = of.map_or(chart.title, |of| family_title(&of, &first.channel.words));
    if members.len() <= MOST_LINES {
        chart.banded = false;
        chart.lines = members.iter().map(|curve| Line { name: called(curve), bins: shown(curve) }).collect();
        return Some(chart);
    }
    let all: Vec<Vec<Option<Bin>>> = members.iter().map(|curve| shown(curve)).collect();
    let top = members.iter().max_by(|left, right| mean(left).total_cmp(&mean(right)))?;
    chart.note =
        format!("{} of them: their median, and the range from the lowest to the highest", members.len());
    chart.lines = vec![
        Line { name: "median".to_owned(), bins: middle(&all) },
        Line { name: format!("highest mean: {}", called(top)), bins: shown(top) },
    ];
    Some(chart)
}

/// Of each bin the lowest, the median and the highest mean of several channels.
fn middle(all: &[Vec<Option<Bin>>]) -> Vec<Option<Bin>> {
    let count = all.iter().map(Vec::len).max().unwrap_or(0);
    let merge = |place: usize| {
        let mut means: Vec<f64> = all.iter().filter_map(|bins| Some((*bins.get(place)?)?.mean)).collect();
        means.sort_by(f64::total_cmp);
        Some(Bin { low: *means.first()?, mean: *means.get(means.len() / 2)?, high: *means.last()? })
    };
    (0..count).map(merge).collect()
}

fn draw(page: &mut Page, digest: &Digest, chart: &Chart) {
    let count = chart.lines.iter().map(|line| line.bins.len()).max().unwrap_or(0);
    let seconds = super::super::real(count) * digest.width_s;
    let step = step(count);
    let ranged = |at: usize| chart.banded && at == 0;
    let bins = chart.lines.iter().enumerate().flat_map(|(at, line)| {
        line.bins
            .iter()
            .flatten()
            .flat_map(move |bin| if ranged(at) { [bin.low, bin.high] } else { [bin.mean, bin.mean] })
    });
    let y = Scale::over(bins.chain(chart.from_zero.then_some(0.0)), 0.04, INSIDE);
    page.el("figure", &[("class", "chart"), ("data-name", &chart.names)], |page| {
        page.el("figcaption", &[], |page| {
            page.leaf("b", &[], &chart.title);
            page.leaf("span", &[("class", "quiet")], &chart.note);
        });
        if chart.lines.len() > 1 {
            legend_of_lines(page, &chart.lines.iter().map(|line| line.name.clone()).collect::<Vec<_>>());
        }
        picture(page, &chart.title, (y, seconds), chart.unit, |page| {
            for (at, drawn) in chart.lines.iter().enumerate() {
                if ranged(at) {
                    let class = format!("{} band", colour(at));
                    page.void("path", &[("class", &class), ("d", &band(&drawn.bins, &y, step))]);
                }
                let d = line(drawn.bins.iter().map(|bin| bin.map(|bin| bin.mean)), &y, step);
                let class = format!("{} med", colour(at));
                page.void("path", &[("class", &class), ("d", &d), ("data-arm", &drawn.name)]);
            }
        });
    });
}

fn processes(page: &mut Page, digest: &Digest) {
    if digest.processes.is_empty() {
        page.leaf("p", &[("class", "quiet")], "No process was seen to use CPU time.");
        return;
    }
    let row = |each: &zenkai_measure::sampler::Process| {
        [each.name.clone(), each.pid.to_string(), quantity(each.cpu_s, "s")]
    };
    let head = [("process", false), ("number", true), ("CPU time", true)];
    table(page, &head, digest.processes.iter().map(row));
}

fn missing(page: &mut Page, digest: &Digest) {
    let rows = digest.missing.iter().map(|(what, why)| [what.clone(), why.clone()]);
    if rows.len() == 0 {
        page.leaf("p", &[("class", "quiet")], "Everything that is known of was measured.");
        return;
    }
    folded(page, &format!("{}, each with the reason", counted(rows.len(), "thing")), |page| {
        table(page, &[("what", false), ("why", false)], rows);
    });
}

fn numbers(page: &mut Page, digest: &Digest) {
    let moving = digest.summaries.iter().filter(|each| each.min != 0.0 || each.max != 0.0);
    let mut rows: Vec<[String; 5]> = moving
        .map(|each| {
            let about = &each.channel;
            let [mean, min, max] =
                [each.mean, each.min, each.max].map(|value| of_channel(&about.name, &about.unit, value));
            [about.name.clone(), mean, min, max, about.words.clone()]
        })
        .collect();
    let count = rows.len();
    rows.truncate(MOST_ROWS);
    let all = if count > MOST_ROWS { format!("{MOST_ROWS} of {count}") } else { count.to_string() };
    let head = [("channel", false), ("mean", true), ("least", true), ("most", true), ("", false)];
    folded(page, &format!("{all} channels: mean, least and most"), |page| table(page, &head, rows));
}

#[cfg(test)]
mod tests;
