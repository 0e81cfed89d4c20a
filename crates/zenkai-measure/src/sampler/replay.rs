//! Reads samples back and computes what they say.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::{
    Process,
    channel::{Channels, Derived, Part},
    codec::{take, take_bytes, take_record, take_row, take_size},
    source::Source,
    taker::{ABOUT, END, HEADER, Header, PROCESSES, SAMPLE, TEMPLATES},
    template::{Line, lines, numbers_in},
};

/// Told of everything in a recording, in its order.
pub(super) trait Listener {
    /// A channel was seen for the first time; channels are numbered from 0.
    fn channel(&mut self, derived: &Derived);
    /// An interval of a channel; `None` where it could not be measured.
    fn part(&mut self, channel: usize, span: Span, part: Option<Part>);
    /// What is wanted of a recording.
    fn wants(&self) -> Wanted {
        Wanted::Values
    }
}

/// How much of a recording is looked at: each costs several times as much as the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Wanted {
    /// When samples were taken.
    Times,
    /// Also that every row can be read.
    Rows,
    /// All of it.
    Values,
}

/// From when to when an interval is, in nanoseconds since the first sample. Of a level, which was not there before, both
/// are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from_ns: u64,
    pub(super) at_ns: u64,
}

/// Follows a recording from its start, record by record.
#[derive(Default)]
pub(super) struct Replay {
    sources: Vec<Followed>,
    channels: Vec<State>,
    /// Channel numbers by name.
    names: BTreeMap<String, usize>,
    /// Why a part of a source could not be read, by what it is called.
    pub(super) failed: BTreeMap<String, String>,
    pub(super) header: Header,
    pub(super) at_ns: u64,
    pub(super) own_cpu_ns: u64,
    pub(super) asleep_ns: u64,
    pub(super) samples: usize,
    pub(super) longest_ns: u64,
    /// The processes, as the last look left them.
    pub(super) processes: Vec<u8>,
    /// Whether the recorder came to its end.
    pub(super) ended: bool,
    /// What the recording is about, as names and values.
    pub(super) about: Vec<(String, String)>,
    values: Vec<u64>,
}

/// A source whose rows are being read back.
#[derive(Default)]
struct Followed {
    source: Option<&'static Source>,
    templates: Vec<Followable>,
    current: Option<usize>,
}

/// A template, its last row, and what it gives.
#[derive(Default)]
struct Followable {
    row: Vec<u64>,
    /// Channel number, rule, and where its columns stand.
    gives: Vec<(usize, Derived, Vec<usize>)>,
    /// For each of them, whose the columns are, as a hash.
    whose: Vec<u64>,
}

/// What a channel last showed.
#[derive(Default)]
struct State {
    before: Vec<u64>,
    /// Whose that was: when one CPU goes and another comes, as many columns are others.
    whose: u64,
    at_ns: u64,
    seen: bool,
}

impl Replay {
    /// Takes records from the front of `bytes` until there are no more whole ones. `None` when the first record is no
    /// header or a record is wrong although its checksum is right.
    pub(super) fn follow(
        &mut self,
        bytes: &mut &[u8],
        known: &[&'static Source],
        listener: &mut dyn Listener,
    ) -> Option<()> {
        while let Some((kind, payload)) = take_record(bytes) {
            match kind {
                HEADER => self.header(payload, known)?,
                SAMPLE => self.sample(payload, listener)?,
                END => self.ended = true,
                PROCESSES => self.processes = payload.to_vec(),
                ABOUT => self.about = serde_json::from_slice(payload).unwrap_or_default(),
                // Of a later version: not needed to read the rest.
                _ => {}
            }
        }
        Some(())
    }

    /// The busiest processes; none where they could not be read.
    pub(super) fn processes(&self) -> Vec<Process> {
        serde_json::from_slice(&self.processes).unwrap_or_default()
    }

    fn header(&mut self, payload: &[u8], known: &[&'static Source]) -> Option<()> {
        self.header = serde_json::from_slice(payload).ok()?;
        let followed = |name: &String| Followed {
            source: known.iter().find(|source| source.name == name).copied(),
            ..Followed::default()
        };
        self.sources = self.header.sources.iter().map(followed).collect();
        Some(())
    }

    fn sample(&mut self, mut payload: &[u8], listener: &mut dyn Listener) -> Option<()> {
        let bytes = &mut payload;
        let passed = take(bytes)?;
        self.at_ns = self.at_ns.checked_add(passed)?;
        self.own_cpu_ns = self.own_cpu_ns.checked_add(take(bytes)?)?;
        self.asleep_ns = self.asleep_ns.checked_add(take(bytes)?)?;
        self.longest_ns = self.longest_ns.max(passed);
        self.samples += 1;
        if listener.wants() < Wanted::Rows {
            return Some(());
        }
        loop {
            match take_size(bytes)? {
                0 => break,
                number => self.row(number - 1, bytes, listener)?,
            }
        }
        Some(())
    }

    fn row(&mut self, number: usize, bytes: &mut &[u8], listener: &mut dyn Listener) -> Option<()> {
        let word = take_size(bytes)?;
        let (at, is_new) = (word >> 1, word & 1 == 1);
        if is_new {
            let length = take_size(bytes)?;
            let template = take_bytes(bytes, length)?;
            self.template(number, at, template, listener)?;
        }
        let followed = self.sources.get_mut(number)?;
        let template = followed.templates.get_mut(at)?;
        take_row(bytes, &mut template.row)?;
        if listener.wants() < Wanted::Values {
            return Some(());
        }
        let switched = is_new || followed.current != Some(at);
        let old = if switched { followed.current.replace(at) } else { None };
        if let Some(old) = old {
            self.retire(number, old, at, listener);
        }
        self.parts(number, at, listener)
    }

    /// Makes room for a template and numbers its channels.
    fn template(
        &mut self,
        number: usize,
        at: usize,
        template: &[u8],
        listener: &mut dyn Listener,
    ) -> Option<()> {
        let followed = self.sources.get_mut(number)?;
        if at >= TEMPLATES || at > followed.templates.len() {
            return None;
        }
        let mut new = Followable { row: vec![0; numbers_in(template)], ..Followable::default() };
        // To know whether a file is sound nobody needs to know what its columns mean.
        if let Some(source) = followed.source.filter(|_| listener.wants() >= Wanted::Values) {
            let found = lines(template);
            let owners = owners(&found.lines, new.row.len());
            let mut channels = Channels::default();
            (source.channels)(&found, &mut channels);
            for (section, reason) in &found.failed {
                let name = if section.is_empty() {
                    source.name.to_owned()
                } else {
                    format!("{}.{section}", source.name)
                };
                self.failed.insert(name, (*reason).to_owned());
            }
            for derived in channels.list {
                let columns: Vec<usize> = derived.rule.columns().iter().map(|column| column.at).collect();
                let next = self.channels.len();
                let channel = *self.names.entry(derived.channel.name.clone()).or_insert(next);
                if channel == next {
                    listener.channel(&derived);
                    self.channels.push(State::default());
                }
                let mut whose = DefaultHasher::new();
                for &at in &columns {
                    owners.get(at).hash(&mut whose);
                }
                new.whose.push(whose.finish());
                new.gives.push((channel, derived, columns));
            }
        }
        if at == followed.templates.len() {
            followed.templates.push(new);
        } else {
            // Its channels are retired first.
            let old = std::mem::replace(&mut followed.templates[at], new);
            if followed.current == Some(at) {
                followed.current = None;
                for (channel, ..) in old.gives {
                    self.lose(channel, number, at, listener);
                }
            }
        }
        Some(())
    }

    /// Channels of the old template that the new one does not have: the device has gone.
    fn retire(&mut self, number: usize, old: usize, new: usize, listener: &mut dyn Listener) {
        let Some(followed) = self.sources.get(number) else { return };
        let Some(old) = followed.templates.get(old) else { return };
        let gone: Vec<usize> = old.gives.iter().map(|(channel, ..)| *channel).collect();
        for channel in gone {
            self.lose(channel, number, new, listener);
        }
    }

    /// Forgets what a channel showed unless template `new` shows it too.
    fn lose(&mut self, channel: usize, number: usize, new: usize, listener: &mut dyn Listener) {
        let template = self.sources.get(number).and_then(|followed| followed.templates.get(new));
        if template.is_some_and(|template| template.gives.iter().any(|(kept, ..)| *kept == channel)) {
            return;
        }
        if let Some(state) = self.channels.get_mut(channel) {
            *state = State::default();
            listener.part(channel, Span { from_ns: self.at_ns, at_ns: self.at_ns }, None);
        }
    }

    /// What a row says.
    fn parts(&mut self, number: usize, at: usize, listener: &mut dyn Listener) -> Option<()> {
        let template = self.sources.get(number)?.templates.get(at)?;
        for ((channel, derived, columns), whose) in template.gives.iter().zip(&template.whose) {
            self.values.clear();
            self.values.extend(columns.iter().filter_map(|&at| template.row.get(at)));
            let state = self.channels.get_mut(*channel)?;
            let passed = seconds(self.at_ns - state.at_ns);
            let same = state.before.len() == self.values.len() && state.whose == *whose;
            let comparable = state.seen && (same || derived.rule.may_grow()) && passed > 0.0;
            if comparable || derived.rule.is_level() {
                let part = derived
                    .rule
                    .part(&state.before, &self.values, passed)
                    .map(|part| Part { numerator: part.numerator * derived.factor, ..part });
                let from_ns = if state.seen { state.at_ns } else { self.at_ns };
                listener.part(*channel, Span { from_ns, at_ns: self.at_ns }, part);
            }
            std::mem::swap(&mut state.before, &mut self.values);
            state.whose = *whose;
            state.at_ns = self.at_ns;
            state.seen = true;
        }
        Some(())
    }
}

/// Whose each number is: that of a file, of a line in it (`cpu3` of `/proc/schedstat`), and below a heading of CPUs
/// (`/proc/interrupts`) of one of them.
fn owners<'template>(lines: &[Line<'template>], numbers: usize) -> Vec<[Option<&'template str>; 3]> {
    let heads = lines.first().map_or(&[][..], |line| &line.words);
    let heads: Vec<&str> = heads.iter().map_while(|word| word.text()).collect();
    let is_table = heads.first().is_some_and(|head| head.starts_with("CPU"));
    let mut owners = vec![[None; 3]; numbers];
    for line in lines {
        for (nth, column) in line.columns().into_iter().enumerate() {
            let head = heads.get(nth).copied().filter(|_| is_table);
            if let Some(owner) = owners.get_mut(column.at) {
                *owner = [Some(line.section), line.label(), head];
            }
        }
    }
    owners
}

/// Nanoseconds as seconds.
pub(super) fn seconds(nanoseconds: u64) -> f64 {
    std::time::Duration::from_nanos(nanoseconds).as_secs_f64()
}
