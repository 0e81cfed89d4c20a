//! `/proc/diskstats` (`Documentation/admin-guide/iostats.rst`, `block/genhd.c`): what each disk did, in the columns that
//! iostat(1) shows.

use std::collections::BTreeSet;

use crate::sampler::{
    channel::{Channels, Derived, Wrap},
    source::{Cadence, Source, one_file},
    template::{Column, Digits, Lines},
};

pub(in crate::sampler) static SOURCE: Source = Source {
    name: "diskstats",
    cadence: Cadence::Always,
    digits: Digits::Decimal,
    open: |_| one_file("/proc/diskstats"),
    channels,
};

/// A sector is always 512 bytes here, whatever the disk's own are.
const SECTOR: f64 = 512.0;
const MILLISECOND: f64 = 1e-3;

/// Kinds of requests, and where their four fields begin, counted behind the name: requests, merged, sectors, time.
const KINDS: [(usize, &str, &str); 3] =
    [(0, "read", "read"), (4, "write", "written"), (11, "discard", "discarded")];

fn channels(lines: &Lines, channels: &mut Channels) {
    let name = |at: usize| lines.lines.get(at)?.words.get(2)?.text();
    let names: BTreeSet<&str> = (0..lines.lines.len()).filter_map(name).collect();
    for line in &lines.lines {
        let Some(name) = line.words.get(2).and_then(|word| word.text()) else { continue };
        let fields: Vec<Column> = line.words.iter().skip(3).filter_map(|word| word.column()).collect();
        if fields.len() < 11 || is_partition(name, &names) {
            continue;
        }
        disk(name, &fields, channels);
    }
}

/// `sda1` beside `sda`, `nvme0n1p1` beside `nvme0n1` (`disk_name` in `block/genhd.c`).
fn is_partition(name: &str, names: &BTreeSet<&str>) -> bool {
    let number = name.len() - name.trim_end_matches(|sign: char| sign.is_ascii_digit()).len();
    let Some(base) = name.get(..name.len() - number).filter(|_| number > 0) else { return false };
    let ends_in_digit = |name: &str| name.ends_with(|sign: char| sign.is_ascii_digit());
    if !ends_in_digit(base) && names.contains(base) {
        return true;
    }
    base.strip_suffix('p').is_some_and(|disk| ends_in_digit(disk) && names.contains(disk))
}

fn disk(name: &str, fields: &[Column], channels: &mut Channels) {
    let start = channels.list.len();
    for (at, kind, done) in KINDS {
        if let Some(four) = fields.get(at..at + 4).and_then(|four| four.first_chunk()) {
            requests(name, kind, done, *four, channels);
        }
    }
    if let Some([flushes, time]) = fields.get(15..17).and_then(|two| two.first_chunk()) {
        channels.rate(
            format!("block.{name}.flushes"),
            "1/s",
            format!("flushes of {name}"),
            vec![*flushes],
            1.0,
        );
        let words = format!("time a flush of {name} took");
        let both = (vec![*time], vec![*flushes]);
        channels.share(format!("block.{name}.flush_await"), "s", words, both, MILLISECOND);
    }
    if let Some([in_flight, busy, weighted]) = fields.get(8..11).and_then(|three| three.first_chunk()) {
        let words = format!("requests under way on {name}");
        channels.level(format!("block.{name}.in_flight"), "1", words, *in_flight, 1.0);
        let words = format!("requests waiting or under way on {name}, on average");
        let queue = format!("block.{name}.queue");
        channels.rate(queue, "1", words, vec![*weighted], MILLISECOND).wraps(Wrap::Bits32);
        let words = format!("share of time in which {name} had something to do");
        let util = format!("block.{name}.util");
        channels.rate(util, "1", words, vec![*busy], MILLISECOND).wraps(Wrap::Bits32);
    }
    // Devices that are mostly there without being used.
    if ["loop", "ram", "zram", "nbd", "fd", "sr"].iter().any(|kind| name.starts_with(kind)) {
        channels.list.iter_mut().skip(start).for_each(Derived::quiet);
    }
}

/// What requests of one kind did: requests, merged, sectors, time.
fn requests(name: &str, kind: &str, done: &str, fields: [Column; 4], channels: &mut Channels) {
    let [requests, merged, sectors, time] = fields;
    let called = |what: &str| format!("block.{name}.{kind}{what}");
    channels.rate(called("s"), "1/s", format!("{kind} requests of {name}"), vec![requests], 1.0);
    channels.rate(called("_bytes"), "B/s", format!("{done} on {name}"), vec![sectors], SECTOR);
    let words = format!("{kind} requests of {name} joined to others before");
    channels.rate(called("_merges"), "1/s", words, vec![merged], 1.0);
    let words = format!("time a {kind} request of {name} took, with its wait");
    channels.share(called("_await"), "s", words, (vec![time], vec![requests]), MILLISECOND);
    let words = format!("size of a {kind} request of {name}");
    channels.share(called("_size"), "B", words, (vec![sectors], vec![requests]), SECTOR);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::{between, made_of};

    #[test]
    fn the_columns_of_iostat() {
        let before = " 254       0 vda 100 0 800 50 10 0 80 5 0 100 55 0 0 0 0 0 0\n";
        let after = " 254       0 vda 300 4 4800 450 10 0 80 5 3 1100 455 0 0 0 0 2 8\n";
        let values = between(&SOURCE, before, after, 2.0);
        assert_eq!(values["block.vda.reads"], Some(100.0));
        assert_eq!(values["block.vda.read_bytes"], Some(4000.0 * 512.0 / 2.0));
        assert_eq!(values["block.vda.read_await"], Some(0.002));
        assert_eq!(values["block.vda.read_size"], Some(20.0 * 512.0));
        assert_eq!(values["block.vda.write_await"], None, "nothing was written");
        assert_eq!(values["block.vda.util"], Some(0.5));
        assert_eq!(values["block.vda.queue"], Some(0.2));
        assert_eq!(values["block.vda.in_flight"], Some(3.0));
        assert_eq!(values["block.vda.flush_await"], Some(0.004));
    }

    #[test]
    fn partitions_are_left_out_and_mapped_devices_are_not() {
        let numbers = "1 0 1 1 1 0 1 1 0 1 1";
        let names = ["sda", "sda1", "nvme0n1", "nvme0n1p2", "dm-1", "dm-10", "md0", "md0p1"];
        let text = names.map(|name| format!("8 0 {name} {numbers}\n")).concat();
        let made = made_of(&SOURCE, &text);
        let has = |name: &str| made.contains(&format!("block.{name}.reads"));
        assert_eq!(names.map(has), [true, false, true, false, true, true, true, false]);
    }

    #[test]
    fn an_unfinished_line_gives_nothing() {
        assert!(made_of(&SOURCE, "8 0 sda 1 2 3\n8 0\n\nsda sda sda\n").is_empty());
    }
}
