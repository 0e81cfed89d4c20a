//! What several plugins need.

use zenkai_host::Host;

use crate::profile::fnmatch;

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
