//! The two spellings of sysctl keys, and patterns of them (`sysctl.d(5)`).

use crate::{Reader, reader::join};

/// Levels of a key; the deepest the kernel has are seven.
const DEPTH_LIMIT: usize = 12;

/// The path below `/proc/sys` of a key as a file spells it. When the first separator is a slash, slashes separate
/// and dots are letters; otherwise it is the other way round. `None` for what cannot be a key.
pub(super) fn to_path(key: &str) -> Option<String> {
    let key = key.strip_prefix("/proc/sys/").unwrap_or(key);
    let separator = key.chars().find(|letter| matches!(letter, '.' | '/'))?;
    let path = if separator == '/' { key.to_owned() } else { swap(key) };
    let parts: Vec<&str> = path.split('/').collect();
    let is_name = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains(['\0', '\n']);
    (parts.len() <= DEPTH_LIMIT && parts.iter().all(is_name)).then_some(path)
}

/// Exchanges dots and slashes: a path becomes a key with dots and the reverse.
pub(super) fn swap(text: &str) -> String {
    let exchange = |letter| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    text.chars().map(exchange).collect()
}

/// Whether a key stands for several.
pub(super) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?'])
}

/// The paths below `/proc/sys` that a pattern stands for now.
pub(super) fn expand(reader: &Reader<'_>, pattern: &str, limit: usize) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in pattern.split('/') {
        let mut next = Vec::new();
        for path in &paths {
            let child = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            if !is_pattern(part) {
                next.push(child(part));
                continue;
            }
            let names = reader.names(&join("/proc/sys", path));
            next.extend(
                names.get().into_iter().flatten().filter(|name| matches(part, name)).map(|name| child(name)),
            );
            next.truncate(limit);
        }
        paths = next;
    }
    paths
}

/// Whether a name fits a pattern of `*` and `?`. Goes back to the last `*` only, so that no pattern is slow.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == '?' || Some(letter) == name.get(from) => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    at = place + 1;
                    from = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings() {
        assert_eq!(to_path("net.ipv4.conf.eth0/1.forwarding").unwrap(), "net/ipv4/conf/eth0.1/forwarding");
        assert_eq!(to_path("net/ipv4/conf/eth0.1/forwarding").unwrap(), "net/ipv4/conf/eth0.1/forwarding");
        for bad in ["", "vm", "vm..x", "vm/../../etc/passwd", "vm.swappiness."] {
            assert!(to_path(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, name) in [("*", ""), ("e*0", "eth0"), ("e?h*", "eth0"), ("*a*b", "xaxab")] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("e*1", "eth0"), ("?", ""), ("a", "ab")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(pattern in "[a*?]{0,40}", name in "[ab]{0,40}", key in "[a./*]{0,20}") {
            let _ = (matches(&pattern, &name), to_path(&key));
        }
    }
}
