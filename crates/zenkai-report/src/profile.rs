//! A merged profile as a report.

use serde_json::Value as Json;
use zenkai_tune::profile::{Profile, Unit};

use crate::Block;

/// The names of profiles with their summaries.
pub fn profile_list(list: &[(String, String)]) -> Vec<Block> {
    vec![Block::Table(list.iter().map(|(name, summary)| vec![name.clone(), summary.clone()]).collect())]
}

/// `zenkai.profiles/1`.
pub fn profile_list_json(list: &[(String, String)]) -> Json {
    let profiles: Vec<Json> =
        list.iter().map(|(name, summary)| serde_json::json!({ "name": name, "summary": summary })).collect();
    serde_json::json!({ "schema": "zenkai.profiles/1", "profiles": profiles })
}

/// A profile after all its includes were merged: every value with the file and line it came from.
pub fn profile(profile: &Profile) -> Vec<Block> {
    let mut blocks = vec![Block::Text(format!("{}: {}", profile.names.join(" "), profile.summary))];
    if !profile.description.is_empty() {
        blocks.push(Block::Text(profile.description.clone()));
    }
    blocks.push(Block::Text(format!("read from {}", profile.files.join(", "))));
    if !profile.variables.is_empty() {
        blocks.push(Block::Heading("[variables]".to_owned()));
        let rows =
            profile.variables.iter().map(|(name, value)| row(name, &value.raw, &value.origin.to_string()));
        blocks.push(Block::Table(rows.collect()));
    }
    blocks.extend(profile.units.iter().flat_map(unit));
    blocks
}

fn unit(unit: &Unit) -> Vec<Block> {
    let mut words = vec![format!("[{}]", unit.name)];
    if unit.plugin != unit.name {
        words.push(format!("type={}", unit.plugin));
    }
    if !unit.enabled {
        words.push("switched off".to_owned());
    }
    if unit.priority != 0 {
        words.push(format!("priority={}", unit.priority));
    }
    if unit.devices != "*" {
        words.push(format!("devices={}", unit.devices));
    }
    let conditions = [
        ("devices_udev_regex", &unit.devices_udev_regex),
        ("cpuinfo_regex", &unit.cpuinfo_regex),
        ("uname_regex", &unit.uname_regex),
    ];
    words
        .extend(conditions.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?))));
    let scripts = [("script_pre", &unit.script_pre), ("script_post", &unit.script_post)];
    let scripts = scripts.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    let options = unit.options.iter().map(|(key, value)| (key.as_str(), value));
    let rows = scripts.chain(options).map(|(key, value)| row(key, &value.raw, &value.origin.to_string()));
    vec![Block::Heading(words.join("  ")), Block::Table(rows.collect())]
}

fn row(name: &str, value: &str, origin: &str) -> Vec<String> {
    vec![name.to_owned(), value.to_owned(), origin.to_owned()]
}

/// `zenkai.profile/1`.
pub fn profile_json(profile: &Profile) -> serde_json::Result<Json> {
    let mut value = serde_json::json!({ "schema": "zenkai.profile/1", "zenkai": env!("CARGO_PKG_VERSION") });
    if let (Some(map), Json::Object(fields)) = (value.as_object_mut(), serde_json::to_value(profile)?) {
        map.extend(fields);
    }
    Ok(value)
}
