//! Shell patterns as Python's `fnmatch.fnmatchcase` matches them: `*`, `?`, `[a-z]`, `[!a-z]`. A slash and a leading
//! dot are letters like any other.

/// Whether the whole name matches the pattern. The time grows with the product of both lengths at most.
pub fn fnmatch(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut part) = (0, 0);
    // Where the last `*` was, and how much of the name it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        if pattern.get(part) == Some(&'*') {
            star = Some((part, at));
            part += 1;
        } else if let Some(width) = single(&pattern[part..], name[at]) {
            part += width;
            at += 1;
        } else if let Some((star_part, taken)) = star {
            star = Some((star_part, taken + 1));
            part = star_part + 1;
            at = taken + 1;
        } else {
            return false;
        }
    }
    pattern[part..].iter().all(|letter| *letter == '*')
}

/// How long the first element of the pattern is, if it matches the letter.
fn single(pattern: &[char], letter: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => class(pattern, letter),
        plain => (*plain == letter).then_some(1),
    }
}

fn class(pattern: &[char], letter: char) -> Option<usize> {
    let negative = pattern.get(1) == Some(&'!');
    let start = if negative { 2 } else { 1 };
    // A bracket right at the start is a member; without a closing bracket `[` stands for itself.
    let Some(end) = pattern.iter().skip(start + 1).position(|one| *one == ']') else {
        return (letter == '[').then_some(1);
    };
    let end = start + 1 + end;
    let (mut at, mut found) = (start, false);
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            found |= (pattern[at]..=pattern[at + 2]).contains(&letter);
            at += 3;
        } else {
            found |= pattern[at] == letter;
            at += 1;
        }
    }
    (found != negative).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns() {
        for (name, pattern, wanted) in [
            ("sda", "sd*", true),
            ("sda", "*", true),
            ("", "*", true),
            ("", "?", false),
            ("sda1", "sd?", false),
            ("nvme0n1", "nvme[0-9]n*", true),
            ("sda", "sd[!a]", false),
            ("sdb", "sd[!a]", true),
            ("x[y", "x[y", true),
            ("a]b", "a[]]b", true),
            ("aXbXc", "a*X*c", true),
            ("abc", "a*d", false),
            ("eth0", "eth0*", true),
        ] {
            assert_eq!(fnmatch(name, pattern), wanted, "{name} {pattern}");
        }
        assert!(!fnmatch(&"a".repeat(3_000), &"*a".repeat(40).replace("*a", "*aab")));
    }

    proptest! {
        #[test]
        fn any_pattern_ends(name in ".{0,40}", pattern in r"[\[\]!*?a-c-]{0,40}") {
            let _ = fnmatch(&name, &pattern);
        }

        #[test]
        fn a_name_matches_itself(name in "[a-z0-9/._-]{0,40}") {
            prop_assert!(fnmatch(&name, &name));
        }
    }
}
