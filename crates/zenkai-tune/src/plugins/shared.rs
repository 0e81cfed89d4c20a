//! What several plugins need.

use zenkai_host::Host;

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
                        .filter(|name| !hidden(name) && matches_glob(part, name))
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

/// Whether a shell pattern (`*`, `?`, `[a-z]`, `[!a-z]`) matches the whole text, as Python's fnmatch does.
pub(crate) fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on after the last `*`: it takes one letter more each time the rest does not fit.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, t));
            p += 1;
        } else if let Some(after) = one_letter(&pattern, p, text[t]) {
            p = after;
            t += 1;
        } else if let Some((star, taken)) = retry {
            retry = Some((star, taken + 1));
            p = star;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|letter| *letter == '*')
}

/// Where the pattern goes on if its next part takes this letter.
fn one_letter(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => {
            let Some((set, negated, after)) = bracket(pattern, at) else {
                return (letter == '[').then_some(at + 1);
            };
            let mut inside = false;
            let mut rest = set;
            while let Some((&first, tail)) = rest.split_first() {
                if let ['-', last, tail @ ..] = tail {
                    inside |= (first..=*last).contains(&letter);
                    rest = tail;
                } else {
                    inside |= first == letter;
                    rest = tail;
                }
            }
            (inside != negated).then_some(after)
        }
        other => (*other == letter).then_some(at + 1),
    }
}

/// The inside of the bracket that opens at `at`, whether it is negated, and where it ends. A bracket that never
/// closes is an ordinary letter.
fn bracket(pattern: &[char], at: usize) -> Option<(&[char], bool, usize)> {
    let negated = pattern.get(at + 1) == Some(&'!');
    let start = at + 1 + usize::from(negated);
    // A `]` right at the start is one of the letters.
    let close = start + 1 + pattern.get(start + 1..)?.iter().position(|letter| *letter == ']')?;
    Some((&pattern[start..close], negated, close + 1))
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn shell_patterns() {
        for (pattern, text, expected) in [
            ("sd*", "sda", true),
            ("sd*", "vda", false),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxx", false),
            ("sd[a-c]", "sdb", true),
            ("sd[!a-c]", "sdb", false),
            ("sd[", "sd[", true),
            ("[]]", "]", true),
            ("?", "", false),
            ("*", "", true),
        ] {
            assert_eq!(matches_glob(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!matches_glob(&"*a".repeat(2_000), &"a".repeat(1_999)));
    }
}
