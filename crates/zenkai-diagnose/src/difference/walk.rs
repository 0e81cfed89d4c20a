//! Walks over two trees of facts at once and notes where they differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use zenkai_facts::{CpuSet, Node, Reason};

use super::{
    NotCompared, Reading, Which,
    roles::Roles,
    rules::{self, Elements},
    words,
};

/// Whose a value is, when it is not the machine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Member {
    Cpus(CpuSet),
    /// A noun for one of them, which is empty when the name says it, and the name.
    Named(&'static str, String),
}

/// Equal differences of several members, as one.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    /// The path with `*` for every element of a list.
    pub(super) pattern: String,
    /// The path with names where elements have one.
    pub(super) path: Vec<String>,
    pub(super) members: Vec<Member>,
    pub(super) a: Reading,
    pub(super) b: Reading,
    /// Where each was read.
    pub(super) places: Vec<(String, String)>,
    /// Whether one side has no such thing by nature.
    pub(super) derived: bool,
}

/// A node and what was read to know it.
#[derive(Clone, Copy)]
struct Place<'n> {
    node: &'n Node,
    source: &'n str,
}

static NOTHING: Node = Node::Scalar(Value::Null);

impl<'n> Place<'n> {
    fn opened(self) -> Self {
        match self.node {
            Node::Read { source, value } => Place { node: value, source }.opened(),
            Node::Missing { source, .. } => Place { node: self.node, source },
            _ => self,
        }
    }

    fn part(self, name: &str) -> Self {
        Place { node: self.node.get(name).unwrap_or(&NOTHING), source: self.source }
    }

    fn with(self, node: &'n Node) -> Self {
        Place { node, source: self.source }
    }

    fn reading(self, value: String) -> Reading {
        Reading { value: Some(value), unavailable: None, source: self.source.to_owned() }
    }
}

/// What equal differences have in common.
type Likeness = (String, Option<String>, Option<String>, &'static str);

pub(super) struct Walk<'r> {
    roles: &'r Roles,
    /// Whether a side was asked for this path.
    holds: &'r dyn Fn(Which, &str) -> bool,
    /// Whether processors are of different makers.
    foreign: bool,
    pattern: String,
    path: Vec<String>,
    member: Option<Member>,
    raw: Vec<Raw>,
    known: BTreeMap<Likeness, usize>,
    /// Where a difference was read: the same file may be told in two places of the facts.
    seen: BTreeSet<(String, String)>,
    gaps: BTreeMap<(Which, String), BTreeSet<String>>,
    compared: usize,
}

impl<'r> Walk<'r> {
    pub(super) fn new(roles: &'r Roles, holds: &'r dyn Fn(Which, &str) -> bool, foreign: bool) -> Self {
        Self {
            roles,
            holds,
            foreign,
            pattern: String::new(),
            path: Vec::new(),
            member: None,
            raw: Vec::new(),
            known: BTreeMap::new(),
            seen: BTreeSet::new(),
            gaps: BTreeMap::new(),
            compared: 0,
        }
    }

    /// Compares all facts.
    pub(super) fn facts(&mut self, a: &Node, b: &Node) {
        self.pair(Place { node: a, source: "" }, Place { node: b, source: "" });
    }

    /// Compares the sysctls that the facts did not tell of.
    pub(super) fn sysctls(&mut self, a: &Node, b: &Node) {
        self.within("sysctl", |walk| walk.facts(a, b));
    }

    /// How many values were compared, what could not be, and what differs.
    pub(super) fn finish(self) -> (usize, Vec<NotCompared>, Vec<Raw>) {
        let gaps = self.gaps.into_iter().map(|((side, reason), paths)| NotCompared {
            side,
            reason,
            paths: paths.into_iter().collect(),
        });
        (self.compared, gaps.collect(), self.raw)
    }

    /// Whether this step is left out. What it lies in was asked before, unless the step has several parts, as names of
    /// sysctls do.
    fn skipped(&self, step: &str) -> bool {
        let among = |table: &[&str]| {
            table.contains(&self.pattern.as_str())
                || (step.contains('.') && rules::among(table, &self.pattern))
        };
        among(rules::VOLATILE) || among(rules::IDENTITY) || (self.foreign && among(rules::MAKER))
    }

    /// Goes one step down for as long as `work` lasts. `shown` stands in the path, `*` in the pattern for an element.
    fn step(&mut self, name: &str, shown: &str, work: impl FnOnce(&mut Self)) {
        let (length, depth) = (self.pattern.len(), self.path.len());
        if !self.pattern.is_empty() {
            self.pattern.push('.');
        }
        self.pattern.push_str(name);
        self.path.push(shown.to_owned());
        if !self.skipped(name) {
            work(self);
        }
        self.pattern.truncate(length);
        self.path.truncate(depth);
    }

    fn within(&mut self, name: &str, work: impl FnOnce(&mut Self)) {
        self.step(name, name, work);
    }

    fn pair(&mut self, a: Place<'_>, b: Place<'_>) {
        let (a, b) = (a.opened(), b.opened());
        match (a.node, b.node) {
            (Node::Missing { .. }, Node::Missing { .. }) => {}
            (Node::Missing { reason, .. }, _) => self.missing(Which::A, reason, a, b),
            (_, Node::Missing { reason, .. }) => self.missing(Which::B, reason, a, b),
            (Node::Map(left), Node::Map(right)) => {
                let alike = rules::MAPS.contains(&self.pattern.as_str());
                let known: BTreeSet<&str> = left.iter().map(|(name, _)| name.as_ref()).collect();
                let more = right.iter().filter(|(name, _)| !known.contains(name.as_ref()));
                for (name, _) in left.iter().chain(more) {
                    let step = if alike { "*" } else { name };
                    self.step(step, name, |walk| walk.pair(a.part(name), b.part(name)));
                }
            }
            (Node::List(left), Node::List(right)) => self.lists(a, b, left, right),
            (Node::Scalar(left), Node::Scalar(right)) => {
                self.compared += 1;
                if left != right && !(rules::among(rules::ROUGH, &self.pattern) && nearly(left, right)) {
                    self.values(a, b);
                }
            }
            _ => self.values(a, b),
        }
    }

    fn segment(&self) -> String {
        self.path.last().cloned().unwrap_or_default()
    }

    fn values(&mut self, a: Place<'_>, b: Place<'_>) {
        let segment = self.segment();
        let (left, right) = match (a.node, b.node) {
            (Node::Scalar(Value::String(left)), Node::Scalar(Value::String(right)))
                if rules::WORDS.contains(&self.pattern.as_str()) =>
            {
                words::sets(left.split_whitespace(), right.split_whitespace())
            }
            _ => (words::summary(a.node, &segment), words::summary(b.node, &segment)),
        };
        self.told(a, b, left, right);
    }

    /// Notes two values as people read them, unless they read the same.
    fn told(&mut self, a: Place<'_>, b: Place<'_>, left: String, right: String) {
        if left != right {
            self.note(a.reading(left), b.reading(right), false);
        }
    }

    /// A value that one side only has. The kernel's or the hardware's not having it is a difference; not being allowed
    /// to look, or not having looked, is none.
    fn missing(&mut self, side: Which, reason: &Reason, a: Place<'_>, b: Place<'_>) {
        let source = if side == Which::A { a.source } else { b.source };
        let unknown = match reason {
            // What was worked out from files that the capture does not hold is absent there, and unknown.
            Reason::Absent if !(self.holds)(side, source) => Some(Reason::NotRecorded),
            Reason::Absent | Reason::NotApplicable(_) => None,
            other => Some(other.clone()),
        };
        if let Some(reason) = unknown {
            let path = self.path.join(".");
            self.gaps.entry((side, reason.to_string())).or_default().insert(path);
            return;
        }
        let segment = self.segment();
        let reading = |which: Which, place: Place<'_>| {
            if which != side {
                return place.reading(words::summary(place.node, &segment));
            }
            let told = match reason {
                Reason::Absent => "absent".to_owned(),
                reason => reason.to_string(),
            };
            Reading { value: None, unavailable: Some(told), source: place.source.to_owned() }
        };
        self.compared += 1;
        let empty = |place: Place<'_>| {
            matches!(place.node, Node::Scalar(Value::Null))
                || matches!(place.node, Node::List(items) if items.is_empty())
        };
        // Nothing there, and nothing that could be there, are the same.
        if !empty(a) && !empty(b) {
            self.note(reading(Which::A, a), reading(Which::B, b), matches!(reason, Reason::NotApplicable(_)));
        }
    }

    fn note(&mut self, a: Reading, b: Reading, derived: bool) {
        let place = (a.source.clone(), b.source.clone());
        let path = self.path.join(".");
        // Sysctls come last: what the facts told of is not told again. One source may hold several facts.
        let again = self.path.first().is_some_and(|first| first == "sysctl")
            || self.pattern.starts_with("kernel.sysctls");
        if again && self.seen.contains(&place) {
            return;
        }
        self.seen.insert(place.clone());
        let noun = match &self.member {
            None => "",
            Some(Member::Cpus(_)) => "CPUs",
            Some(Member::Named(noun, _)) => noun,
        };
        let shown = |reading: &Reading| reading.value.clone().or_else(|| reading.unavailable.clone());
        let likeness = (path, shown(&a), shown(&b), noun);
        let fresh = self.raw.len();
        let index = match (&self.member, self.known.get(&likeness)) {
            (Some(_), Some(index)) => *index,
            _ => fresh,
        };
        if let Some(raw) = self.raw.get_mut(index) {
            raw.members.extend(self.member.clone());
            raw.places.push(place);
            return;
        }
        self.known.insert(likeness, fresh);
        self.raw.push(Raw {
            pattern: self.pattern.clone(),
            path: self.path.clone(),
            members: self.member.clone().into_iter().collect(),
            a,
            b,
            places: vec![place],
            derived,
        });
    }

    fn lists(&mut self, a: Place<'_>, b: Place<'_>, left: &[Node], right: &[Node]) {
        if self.pattern == "kernel.command_line" {
            return self.arguments(a, b, left, right);
        }
        let rule = rules::LISTS.iter().find(|(path, _)| *path == self.pattern).map(|(_, rule)| *rule);
        let plain = |items: &[Node]| items.iter().all(|item| matches!(item, Node::Scalar(_)));
        match rule {
            Some(Elements::Groups) => self.groups(a, b, left, right),
            Some(Elements::Text(fields)) => {
                self.compared += 1;
                let (left, right) = (joined(left, fields), joined(right, fields));
                if left != right {
                    let (left, right) =
                        words::sets(left.iter().map(String::as_str), right.iter().map(String::as_str));
                    self.told(a, b, left, right);
                }
            }
            None if plain(left) && plain(right) => {
                self.compared += 1;
                if left != right {
                    let (left, right) = words::lists(left, right, &self.segment());
                    self.told(a, b, left, right);
                }
            }
            rule => self.elements(rule.unwrap_or(Elements::Counted), a, b, left, right),
        }
    }

    /// Lists of structures: what answers to each other is compared, what is left over is told.
    fn elements(&mut self, rule: Elements, a: Place<'_>, b: Place<'_>, left: &[Node], right: &[Node]) {
        let mut others: BTreeMap<String, &Node> =
            keyed(rule, Which::B, right, self.roles).into_iter().collect();
        let mut alone = Vec::new();
        for (key, node) in keyed(rule, Which::A, left, self.roles) {
            match others.remove(&key) {
                Some(other) => self.element(rule, &key, node, |walk| walk.pair(a.with(node), b.with(other))),
                None => alone.push((key, node)),
            }
        }
        match rule {
            // Of many alike the number tells enough, and the members that answer to each other tell the rest.
            Elements::Alike { .. } | Elements::Cpus(_) => {
                if left.len() != right.len() {
                    self.within("number", |walk| {
                        walk.note(
                            a.reading(left.len().to_string()),
                            b.reading(right.len().to_string()),
                            false,
                        );
                    });
                }
            }
            _ => {
                for (key, node) in alone {
                    self.element(rule, &key, node, |walk| walk.pair(a.with(node), b.with(&NOTHING)));
                }
                for (key, node) in others {
                    self.element(rule, &key, node, |walk| walk.pair(a.with(&NOTHING), b.with(node)));
                }
            }
        }
    }

    fn element(&mut self, rule: Elements, key: &str, node: &Node, work: impl FnOnce(&mut Self)) {
        let outer = self.member.clone();
        let shown = match rule {
            Elements::Named(_) | Elements::Counted => key,
            _ => "*",
        };
        match rule {
            Elements::Cpus(field) => {
                let cpus = node.get(field).and_then(Node::text).and_then(|text| text.parse().ok());
                self.member = cpus.map(Member::Cpus).or(outer.clone());
            }
            Elements::Alike { noun, keys } => {
                let name = keys.iter().filter_map(|field| Some(words::summary(node.get(field)?, field)));
                let known: Vec<String> = name.filter(|name| name != "none").collect();
                self.member = Some(Member::Named(noun, known.join(" ")));
            }
            Elements::Devices(field) => {
                let name = node.get(field).and_then(Node::text).unwrap_or(key);
                let number = key.strip_prefix('#').and_then(|number| number.parse().ok());
                let label = number.and_then(|number| self.roles.label(number));
                self.member = Some(Member::Named("", label.unwrap_or(name).to_owned()));
            }
            Elements::Named(_) | Elements::Counted | Elements::Groups | Elements::Text(_) => {}
        }
        self.step("*", shown, work);
        self.member = outer;
    }

    /// CPUs grouped by a value. One group on both sides is one value; else the groups are the value.
    fn groups(&mut self, a: Place<'_>, b: Place<'_>, left: &[Node], right: &[Node]) {
        let told = |items: &[Node]| -> String {
            let value =
                |item: &Node| item.get("value").map_or_else(String::new, |value| words::summary(value, ""));
            let cpus =
                |item: &Node| item.get("cpus").map_or_else(String::new, |cpus| words::summary(cpus, ""));
            match items {
                [] => "none".to_owned(),
                [one] => value(one),
                several => {
                    let groups = several.iter().map(|item| format!("{} on CPUs {}", value(item), cpus(item)));
                    groups.collect::<Vec<_>>().join(", ")
                }
            }
        };
        self.compared += 1;
        let (left, right) = (told(left), told(right));
        if left != right {
            self.note(a.reading(left), b.reading(right), false);
        }
    }

    /// Kernel arguments by their key; one that is given twice has both values.
    fn arguments(&mut self, a: Place<'_>, b: Place<'_>, left: &[Node], right: &[Node]) {
        let map = |items: &[Node]| {
            let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for argument in items.iter().filter_map(Node::text) {
                let (key, value) = argument.split_once('=').unwrap_or((argument, "given"));
                // As in the kernel, `-` and `_` are the same letter in a key.
                map.entry(key.replace('-', "_")).or_default().push(value.to_owned());
            }
            map
        };
        let (left, right) = (map(left), map(right));
        let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        for key in keys.into_iter().filter(|key| !PLACES.contains(&key.as_str())) {
            self.compared += 1;
            if left.get(key) == right.get(key) {
                continue;
            }
            let told = |map: &BTreeMap<String, Vec<String>>| {
                map.get(key).map_or_else(|| "not given".to_owned(), |values| values.join(", "))
            };
            self.step("*", key, |walk| walk.note(a.reading(told(&left)), b.reading(told(&right)), false));
        }
    }
}

/// Arguments that name a place on one machine and say nothing of speed.
const PLACES: [&str; 8] = ["BOOT_IMAGE", "initrd", "resume", "root", "rootflags", "rootfstype", "ro", "rw"];

/// Elements with what they are known by, the same on either side for those that answer to each other.
fn keyed<'n>(rule: Elements, which: Which, items: &'n [Node], roles: &Roles) -> Vec<(String, &'n Node)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let key = |(index, item): (usize, &'n Node)| {
        let fields = |fields: &[&str]| {
            let texts = fields.iter().filter_map(|field| Some(words::summary(item.get(field)?, field)));
            texts.collect::<Vec<_>>().join(" ")
        };
        let key = match rule {
            Elements::Alike { keys, .. } | Elements::Named(keys) => fields(keys),
            Elements::Cpus(field) => fields(&[field]),
            Elements::Devices(field) => {
                let name = item.get(field).and_then(Node::text).unwrap_or_default();
                // A disk's controller has no role of its own; its name tells enough.
                roles.find(which, name).map_or_else(|| name.to_owned(), |place| format!("#{place}"))
            }
            Elements::Counted | Elements::Groups | Elements::Text(_) => index.to_string(),
        };
        let times = seen.entry(key.clone()).and_modify(|times| *times += 1).or_insert(1);
        (if *times == 1 { key } else { format!("{key} {times}") }, item)
    };
    items.iter().enumerate().map(key).collect()
}

fn joined(items: &[Node], fields: &[&str]) -> Vec<String> {
    let text = |item: &Node| {
        let parts = fields.iter().filter_map(|field| Some(words::summary(item.get(field)?, field)));
        parts.collect::<Vec<_>>().join(":")
    };
    items.iter().map(text).collect()
}

/// Whether two numbers are equal within two per cent.
fn nearly(left: &Value, right: &Value) -> bool {
    let (Some(left), Some(right)) = (left.as_u64(), right.as_u64()) else { return false };
    left.abs_diff(right).saturating_mul(50) <= left.max(right)
}
