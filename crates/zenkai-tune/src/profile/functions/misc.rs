//! Arithmetic, text and programs.

use super::{Answer, Functions, Refusal, python_int, unexpanded};

/// Kilobytes to sectors of 512 bytes.
pub(super) fn kb2s(_: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    convert(arguments, |number| number.checked_mul(2))
}

/// Sectors of 512 bytes to kilobytes, halves rounded to the even neighbour as Python's `round` does.
pub(super) fn s2kb(_: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    convert(arguments, |number| {
        let half = number.div_euclid(2);
        Some(if number.rem_euclid(2) == 1 && half.rem_euclid(2) == 1 { half + 1 } else { half })
    })
}

fn convert(arguments: &[String], with: impl Fn(i64) -> Option<i64>) -> Answer {
    let text = arguments.concat();
    match python_int(&text).and_then(with) {
        Some(number) => Ok(number.to_string()),
        None => unexpanded(format!("`{text}` is no number")),
    }
}

/// All arguments as one text, without white space around it.
pub(super) fn strip(_: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    Ok(arguments.concat().trim_matches(crate::profile::ini::is_space).to_owned())
}

/// All arguments as one text, which is noted too.
pub(super) fn log(_: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    let text = arguments.concat();
    notes.push(text.clone());
    Ok(text)
}

/// What a program prints, with its last newline.
pub(super) fn exec(on: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    run(on, arguments)
}

pub(super) fn run(on: &Functions<'_>, argv: &[String]) -> Answer {
    let name = argv.first().map_or("", String::as_str);
    let Some(commands) = on.commands else {
        return unexpanded(format!("`{name}` would have to be run, which is not done here"));
    };
    commands.output(argv).map_err(|error| Refusal::Unexpanded(format!("`{name}`: {error}")))
}

#[cfg(test)]
mod tests {
    use std::io;

    use zenkai_host::FakeHost;

    use crate::profile::functions::{Commands, testing::call};

    struct Echo;

    impl Commands for Echo {
        fn output(&self, argv: &[String]) -> io::Result<String> {
            if argv[0] == "false" {
                Err(io::Error::other("exit code 1"))
            } else {
                Ok(format!("{}\n", argv[1]))
            }
        }
    }

    #[test]
    fn as_tuned_gives_them() {
        let host = FakeHost::new(&[]);
        for (text, wanted) in [
            ("kb2s: 4 ", "8"),
            ("kb2s:1_000", "2000"),
            ("kb2s:-3", "-6"),
            ("kb2s:x", "!function `kb2s`: `x` is no number"),
            ("kb2s:9223372036854775807", "!function `kb2s`: `9223372036854775807` is no number"),
            ("s2kb:5", "2"),
            ("s2kb:3", "2"),
            ("s2kb:1", "0"),
            ("s2kb:-3", "-2"),
            ("strip: a : b ", "a  b"),
            ("log:a:b", "ab"),
            ("exec:echo:hi", "hi\n"),
            ("exec:false", "!function `exec`: `false`: exit code 1"),
        ] {
            assert_eq!(call(&host, Some(&Echo), text), wanted, "{text}");
        }
        assert!(call(&host, None, "exec:echo:hi").contains("not done here"));
    }
}
