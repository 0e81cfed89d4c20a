//! How the kernel writes names into `/proc/self/mountinfo`.

/// The bytes of a name. The kernel writes blanks, line ends, backslashes and `#` as a backslash and three octal digits
/// (`mangle()` in fs/proc_namespace.c); what has another form stays as it is.
pub fn unescape_mount(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.first_chunk::<3>().copied().filter(|_| first == b'\\').and_then(octal);
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

fn octal(digits: [u8; 3]) -> Option<u8> {
    // `from_str_radix` alone would take a sign.
    let text = std::str::from_utf8(&digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit))?;
    u8::from_str_radix(text, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::unescape_mount;

    #[test]
    fn octal_digits_behind_a_backslash() {
        for (written, name) in [
            (r"/a\040b", "/a b"),
            (r"/a\134040b", r"/a\040b"),
            (r"/\043\011\012", "/#\t\n"),
            (r"/é\", r"/é\"),
            (r"\04", r"\04"),
            (r"\+40", r"\+40"),
            (r"\400\089", r"\400\089"),
            ("", ""),
        ] {
            assert_eq!(unescape_mount(written), name.as_bytes(), "{written}");
        }
    }
}
