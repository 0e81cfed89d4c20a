//! A recording as text, JSON or a page.

use std::io::{self, Write};

use serde::Serialize;
use zenkai_measure::quantity::{of_channel, quantity};
use zenkai_measure::sampler::{self, Process, Recording, Summary};
use zenkai_report::Block;

use crate::cli::output;

/// The form of the JSON.
#[derive(Serialize)]
struct Shown {
    format: u32,
    about: Vec<About>,
    started_ns: u64,
    duration_s: f64,
    interval_s: f64,
    samples: usize,
    size_bytes: usize,
    own_cpu_s: f64,
    /// What the machine drew meanwhile, of the widest domain that was measured; the reason where none was.
    energy: Energy,
    processes: Vec<Process>,
    channels: Vec<Summary>,
    missing: Vec<Missing>,
}

#[derive(Serialize)]
struct About {
    what: String,
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", untagged)]
enum Energy {
    Measured { joules: f64, domain: String, measured_as: String },
    Unknown { why: String },
}

#[derive(Serialize)]
struct Missing {
    what: String,
    why: String,
}

/// Writes what a recording holds; with `all` also the channels that stayed at zero.
pub(in crate::cli) fn show(
    recording: &Recording,
    all: bool,
    json: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let digest = recording.digest(1);
    let shown = Shown {
        format: 1,
        about: digest.about.into_iter().map(|(what, value)| About { what, value }).collect(),
        started_ns: digest.started_ns,
        duration_s: digest.duration_s,
        interval_s: digest.interval_s,
        samples: digest.samples,
        size_bytes: recording.size(),
        own_cpu_s: digest.own_cpu_s,
        energy: match recording.energy(None) {
            Ok(sampler::Energy { joules, domain }) => {
                Energy::Measured { joules, measured_as: sampler::Energy::words(&domain), domain }
            }
            Err(why) => Energy::Unknown { why },
        },
        processes: digest.processes,
        channels: digest.summaries,
        missing: digest.missing.into_iter().map(|(what, why)| Missing { what, why }).collect(),
    };
    if json { output::write_json(out, &shown) } else { output::write_blocks(out, &blocks(&shown, all)) }
}

/// Points of a channel on the page: about as many as the picture is wide.
const POINTS: u32 = 240;

/// The recording as a page; `name` is what its file is called.
pub(in crate::cli) fn page(name: &str, recording: &Recording) -> String {
    zenkai_report::recorded_html(name, &recording.digest(POINTS))
}

fn blocks(shown: &Shown, all: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Text(format!(
        "{:.1} s in {} samples. The recorder itself used {} of CPU time, {:.2} % of one CPU.",
        shown.duration_s,
        shown.samples,
        quantity(shown.own_cpu_s, "s"),
        100.0 * shown.own_cpu_s / shown.duration_s.max(1e-9),
    ))];
    if let Energy::Measured { joules, measured_as, .. } = &shown.energy {
        blocks.push(Block::Text(format!("Energy: {} (measured: {measured_as}).", quantity(*joules, "J"))));
    }
    let mut at_zero = 0;
    let mut group = "";
    let mut rows: Vec<Vec<String>> = Vec::new();
    for each in &shown.channels {
        if !all && each.min == 0.0 && each.max == 0.0 {
            at_zero += 1;
            continue;
        }
        if each.channel.group != group {
            push(&mut blocks, group, &mut rows);
            group = &each.channel.group;
        }
        let show = |value: f64| of_channel(&each.channel.name, &each.channel.unit, value);
        rows.push(vec![
            each.channel.name.clone(),
            show(each.mean),
            show(each.min),
            show(each.max),
            each.channel.words.clone(),
        ]);
    }
    push(&mut blocks, group, &mut rows);
    if at_zero > 0 {
        blocks.push(Block::Text(format!("{at_zero} channels stayed at zero (--all shows them).")));
    }
    if !shown.processes.is_empty() {
        blocks.push(Block::Heading("Busiest processes, CPU time".to_owned()));
        let row = |each: &Process| vec![each.name.clone(), each.pid.to_string(), quantity(each.cpu_s, "s")];
        blocks.push(Block::Table(shown.processes.iter().map(row).collect()));
    }
    if !shown.missing.is_empty() {
        blocks.push(Block::Heading("Not measured".to_owned()));
        let rows = shown.missing.iter().map(|each| vec![each.what.clone(), each.why.clone()]).collect();
        blocks.push(Block::Table(rows));
    }
    blocks
}

fn push(blocks: &mut Vec<Block>, group: &str, rows: &mut Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    blocks.push(Block::Heading(group.to_owned()));
    let head = ["", "mean", "least", "most", ""].map(str::to_owned).to_vec();
    let table = std::iter::once(head).chain(rows.drain(..)).collect();
    blocks.push(Block::Table(table));
}
