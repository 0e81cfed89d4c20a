//! From names to one merged profile.

use std::collections::{HashMap, HashSet};

use super::{
    Expander, Note, OptionValue, Origin, Profile, ProfileError, Unit,
    functions::{Functions, python_int},
    ini::{self, Dialect, Entry, Section},
    library::{Found, Library},
    variables,
};

/// More files in one profile are refused.
const FILE_LIMIT: usize = 100;

/// A key with its value and its place.
pub(super) type Options = Vec<(String, OptionValue)>;

/// One file.
struct Layer {
    summary: String,
    description: String,
    units: Vec<RawUnit>,
}

/// A section of one file, with what only matters when it is merged over another.
pub(super) struct RawUnit {
    unit: Unit,
    priority: Option<i64>,
    replace: bool,
    prepend: bool,
    drop: Vec<String>,
}

struct Loader<'l, 'h> {
    library: &'l Library<'h>,
    expander: Expander<'l>,
    files: Vec<String>,
    layers: Vec<Layer>,
    notes: Vec<Note>,
}

/// Loads and merges. The names are checked.
pub(super) fn load(
    library: &Library<'_>,
    names: &[String],
    functions: Functions<'_>,
) -> Result<Profile, ProfileError> {
    let mut loader = Loader {
        library,
        expander: Expander::new(functions),
        files: Vec::new(),
        layers: Vec::new(),
        notes: Vec::new(),
    };
    for name in names {
        loader.add(name, &Origin::CommandLine)?;
    }
    loader.finish(names)
}

impl Loader<'_, '_> {
    /// Adds a profile's includes, then the profile. A name with a hyphen before it may be missing.
    fn add(&mut self, name: &str, origin: &Origin) -> Result<(), ProfileError> {
        let (name, optional) = name.strip_prefix('-').map_or((name, false), |name| (name, true));
        if !may_be_included(name) {
            if optional {
                let text = format!("`{}` is no profile's name; passed over", name.escape_debug());
                self.notes.push(Note { origin: origin.clone(), text });
                return Ok(());
            }
            return Err(ProfileError::BadName { name: name.to_owned(), origin: origin.clone() });
        }
        let (file, directory, content) = match self.library.find(name, &self.files)? {
            Found::File { file, directory, content } => (file, directory, content),
            Found::Used => return Ok(()),
            Found::Missing { .. } if optional => return Ok(()),
            Found::Missing { not_recorded } => {
                return Err(ProfileError::NotFound {
                    name: name.to_owned(),
                    origin: origin.clone(),
                    directories: self.library.strongest_first(),
                    not_recorded,
                });
            }
        };
        if self.files.len() >= FILE_LIMIT {
            let message = format!("the profile includes more than {FILE_LIMIT} files");
            return Err(ProfileError::TooLarge { file, message });
        }
        self.files.push(file.clone());
        let ini = ini::parse(&file, &content, Dialect::Sections)?;
        let place = Place { file: &file, directory: &directory };
        let mut layer = Layer { summary: String::new(), description: String::new(), units: Vec::new() };
        for section in &ini.sections {
            if section.name == "main" {
                let text = |key: &str| place.text(section.value(key).unwrap_or_default());
                (layer.summary, layer.description) = (text("summary"), text("description"));
                if let Some(entry) = section.entry("include") {
                    self.include(&place.option(entry))?;
                }
            } else {
                layer.units.push(raw_unit(section, &place)?);
            }
        }
        self.layers.push(layer);
        Ok(())
    }

    /// The names are separated by `,` or `;`. Variables are not known yet, functions are.
    fn include(&mut self, list: &OptionValue) -> Result<(), ProfileError> {
        let expanded = self.expander.expand(&list.raw);
        if let Some(text) = expanded.failed_assertion {
            return Err(ProfileError::Assertion { origin: list.origin.clone(), text });
        }
        let note = |text| Note { origin: list.origin.clone(), text };
        self.notes.extend(expanded.notes.into_iter().map(note));
        for name in split(&expanded.text) {
            self.add(name, &list.origin)?;
        }
        Ok(())
    }

    fn finish(mut self, names: &[String]) -> Result<Profile, ProfileError> {
        let (summary, description) = self
            .layers
            .last()
            .map(|layer| (layer.summary.clone(), layer.description.clone()))
            .unwrap_or_default();
        let mut merged: Vec<RawUnit> = Vec::new();
        for layer in self.layers {
            merge(&mut merged, layer.units);
        }
        let mut units: Vec<Unit> = Vec::with_capacity(merged.len());
        let mut definitions = Options::new();
        for raw in merged {
            if raw.unit.name == "variables" {
                definitions = raw.unit.options;
            } else {
                units.push(Unit { priority: raw.priority.unwrap_or(0), ..raw.unit });
            }
        }
        units.sort_by_key(|unit| unit.priority);
        let variables =
            variables::define(self.library.host(), definitions, &mut self.expander, &mut self.notes)?;
        for unit in &units {
            assert_devices(unit, &self.expander)?;
        }
        let names = names.to_vec();
        Ok(Profile { names, summary, description, variables, units, files: self.files, notes: self.notes })
    }
}

/// tuned expands these when it loads, so that an assertion in them stops the load. Everything else in them waits for
/// the plan.
fn assert_devices(unit: &Unit, expander: &Expander<'_>) -> Result<(), ProfileError> {
    let texts = [Some(&unit.devices), unit.cpuinfo_regex.as_ref(), unit.uname_regex.as_ref()];
    // A variable may hold an assertion too, but that was called when the variable was defined.
    for raw in texts.into_iter().flatten().filter(|raw| raw.contains(":assertion")) {
        if let Some(text) = expander.expand(raw).failed_assertion {
            return Err(ProfileError::Assertion { origin: unit.origin.clone(), text });
        }
    }
    Ok(())
}

/// A name in `include`: tuned takes any directory's name.
fn may_be_included(name: &str) -> bool {
    let bare = name.strip_prefix("zenkai/").unwrap_or(name);
    !bare.is_empty()
        && bare.len() <= 255
        && !bare.contains('/')
        && !bare.chars().any(char::is_control)
        && bare != "."
        && bare != ".."
}

/// Splits at `,` or `;` and the white space around them.
fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ';']).map(|name| name.trim_matches(ini::is_space))
}

/// The file that is being read.
struct Place<'p> {
    file: &'p str,
    directory: &'p str,
}

impl Place<'_> {
    fn origin(&self, line: u32) -> Origin {
        Origin::Line { file: self.file.to_owned(), line }
    }

    /// `${i:PROFILE_DIR}` is the directory of the file where it is written, so it is replaced before the merge.
    fn text(&self, raw: &str) -> String {
        const MARK: &str = "${i:PROFILE_DIR}";
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once(MARK) {
            out.push_str(before);
            out.push_str(if before.ends_with('\\') { MARK } else { self.directory });
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn option(&self, entry: &Entry) -> OptionValue {
        let raw = self.text(entry.value.as_deref().unwrap_or_default());
        OptionValue { raw, origin: self.origin(entry.line) }
    }
}

/// Tells the reserved keys from the plugin's options.
fn raw_unit(section: &Section, place: &Place<'_>) -> Result<RawUnit, ProfileError> {
    let mut unit = Unit {
        name: section.name.clone(),
        plugin: section.name.clone(),
        enabled: true,
        priority: 0,
        devices: "*".to_owned(),
        devices_udev_regex: None,
        cpuinfo_regex: None,
        uname_regex: None,
        script_pre: None,
        script_post: None,
        options: Vec::new(),
        origin: place.origin(section.line),
    };
    let (mut priority, mut replace, mut prepend, mut drop) = (None, false, false, Vec::new());
    for entry in &section.entries {
        let value = place.option(entry);
        match entry.key.as_str() {
            "type" => unit.plugin = value.raw,
            "enabled" => unit.enabled = is_true(&value.raw),
            "replace" => replace = is_true(&value.raw),
            "prepend" => prepend = is_true(&value.raw),
            "drop" => drop = split_drop(&value.raw),
            "devices" => unit.devices = value.raw,
            "devices_udev_regex" => unit.devices_udev_regex = Some(value.raw),
            "cpuinfo_regex" => unit.cpuinfo_regex = Some(value.raw),
            "uname_regex" => unit.uname_regex = Some(value.raw),
            "script_pre" => unit.script_pre = Some(value),
            "script_post" => unit.script_post = Some(value),
            "priority" => priority = Some(read_priority(&value)?),
            "script" => {
                let raw = absolute(place.directory, &value.raw);
                unit.options.push((entry.key.clone(), OptionValue { raw, ..value }));
            }
            _ => unit.options.push((entry.key.clone(), value)),
        }
    }
    Ok(RawUnit { unit, priority, replace, prepend, drop })
}

/// The only words that tuned takes for "yes" here; everything else is "no".
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "true" | "True")
}

fn read_priority(value: &OptionValue) -> Result<i64, ProfileError> {
    python_int(&value.raw).ok_or_else(|| ProfileError::BadValue {
        origin: value.origin.clone(),
        message: "priority is no whole number; lower ones come first".to_owned(),
    })
}

/// Keys to drop. tuned splits only where a word ends, so a key that ends otherwise (`/sys/…/*`) keeps its comma and
/// drops nothing.
fn split_drop(list: &str) -> Vec<String> {
    let mut keys = vec![String::new()];
    let mut letters = list.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let Some(key) = keys.last_mut() else { break };
        let rest = list[at..].trim_start_matches(ini::is_space);
        let is_separator =
            (ini::is_space(letter) || matches!(letter, ',' | ';')) && rest.starts_with([',', ';']);
        // The separator itself is no letter of a word, so only what is before it decides.
        if is_separator && key.ends_with(super::expand::is_word) {
            let after = rest[1..].trim_start_matches(ini::is_space);
            let next = list.len() - after.len();
            while letters.next_if(|(at, _)| *at < next).is_some() {}
            keys.push(String::new());
        } else {
            key.push(letter);
        }
    }
    keys
}

/// A path seen from a directory, with `.`, `..` and double slashes taken out, as `os.path.normpath` does.
pub(super) fn absolute(directory: &str, path: &str) -> String {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{directory}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    let root = if joined.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Lays a file's units over those merged so far.
fn merge(base: &mut Vec<RawUnit>, over: Vec<RawUnit>) {
    let places: HashMap<String, usize> =
        base.iter().enumerate().map(|(at, raw)| (raw.unit.name.clone(), at)).collect();
    for raw in over {
        match places.get(&raw.unit.name).and_then(|at| base.get_mut(*at)) {
            None => base.push(raw),
            Some(below) if raw.replace => *below = raw,
            Some(below) => lay_over(below, raw),
        }
    }
}

/// `type`, `enabled` and `devices` come from above even when nothing is written there.
fn lay_over(below: &mut RawUnit, over: RawUnit) {
    let RawUnit { unit, priority, prepend, drop, .. } = over;
    below.priority = priority.or(below.priority);
    let target = &mut below.unit;
    target.plugin = unit.plugin;
    target.enabled = unit.enabled;
    target.devices = unit.devices;
    replace_if_given(&mut target.devices_udev_regex, unit.devices_udev_regex);
    replace_if_given(&mut target.cpuinfo_regex, unit.cpuinfo_regex);
    replace_if_given(&mut target.uname_regex, unit.uname_regex);
    replace_if_given(&mut target.script_pre, unit.script_pre);
    replace_if_given(&mut target.script_post, unit.script_post);
    let drop: HashSet<String> = drop.into_iter().collect();
    target.options.retain(|(key, _)| !drop.contains(key));
    let concatenates = target.name == "script";
    lay_options_over(&mut target.options, unit.options, prepend, concatenates);
}

fn replace_if_given<T>(below: &mut Option<T>, over: Option<T>) {
    if over.is_some() {
        *below = over;
    }
}

/// A key that is there keeps its place and takes the new value; new keys come behind, or in front if asked for.
/// Scripts of the unit that is named so are all kept, the ones below first.
fn lay_options_over(below: &mut Options, over: Options, prepend: bool, keep_scripts: bool) {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (at, (key, _)) in below.iter().enumerate() {
        places.entry(key.clone()).or_insert(at);
    }
    let mut new = Options::new();
    let mut scripts = Options::new();
    for (key, value) in over {
        match places.get(&key) {
            Some(_) if keep_scripts && key == "script" => scripts.push((key, value)),
            Some(at) => below[*at].1 = value,
            None => new.push((key, value)),
        }
    }
    // Behind the last script that is there, so that all of them stand together.
    let end = below.iter().rposition(|(key, _)| key == "script").map_or(below.len(), |at| at + 1);
    below.splice(end..end, scripts);
    if prepend {
        below.splice(0..0, new);
    } else {
        below.extend(new);
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
