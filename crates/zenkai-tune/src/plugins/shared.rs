//! What several plugins need.

use zenkai_host::Host;

use crate::{OptionText, profile::fnmatch};

/// A glob may not lead to more files than this; the largest machines have some 10 000 interrupts.
const MATCH_LIMIT: usize = 65_536;

/// The paths that a glob matches (`*`, `?` and `[…]`, in each part of the path on its own), sorted. A path with `..`
/// matches nothing: it would lead out of the tree that its beginning promises.
pub(crate) fn glob_paths(host: &dyn Host, pattern: &str) -> Vec<String> {
    if !pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let mut paths = vec![String::new()];
    for (at, part) in parts.iter().enumerate() {
        let mut next = Vec::new();
        for path in &paths {
            if part.contains(['*', '?', '[']) {
                let dir = if path.is_empty() { "/" } else { path.as_str() };
                let names = host.list(dir).map(|entries| entries.into_iter().map(|entry| entry.name));
                let hidden = |name: &String| name.starts_with('.') && !part.starts_with('.');
                next.extend(
                    names
                        .into_iter()
                        .flatten()
                        .filter(|name| !hidden(name) && fnmatch(name, part))
                        .map(|name| format!("{path}/{name}")),
                );
            } else {
                next.push(format!("{path}/{part}"));
            }
        }
        // What no list has vouched for is looked up at the end.
        if at + 1 == parts.len() {
            next.retain(|path| host.resolve(path).is_ok() || host.read(path).is_ok());
        }
        if next.len() > MATCH_LIMIT {
            return Vec::new();
        }
        paths = next;
    }
    paths
}

/// A whole number within these bounds, or why it is none.
pub(crate) fn whole(text: &str, lowest: i64, highest: i64) -> Result<i64, String> {
    match text.trim().parse::<i64>() {
        Ok(number) if (lowest..=highest).contains(&number) => Ok(number),
        Ok(number) => Err(format!("{number} is not within {lowest} to {highest}")),
        Err(_) => Err(format!("`{}` is no whole number", text.trim())),
    }
}

/// A switch in any of the words that profiles use for it.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" | "t" | "true" | "on" => Some(true),
        "0" | "n" | "no" | "f" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// The alternatives of `a|b`, in order.
pub(crate) fn alternatives(text: &str) -> Vec<String> {
    text.split('|').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The option with one pair of quotes around its value taken off, as tuned does for what it writes to a kernel file.
pub(crate) fn unquoted(option: &OptionText) -> OptionText {
    let value = option.value.trim();
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = inner('"').or_else(|| inner('\'')).unwrap_or(value).to_owned();
    OptionText { value, ..option.clone() }
}
