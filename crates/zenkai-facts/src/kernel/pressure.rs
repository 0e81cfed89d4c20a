//! Pressure stall information: how much of the time work waited (`Documentation/accounting/psi.rst`).

use serde::Serialize;

use crate::{Observed, Reader, Reason};

/// The share of time that work was held up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stall {
    /// Per cent of the last 10 seconds.
    pub avg10_percent: f64,
    /// Per cent of the last minute.
    pub avg60_percent: f64,
    /// Per cent of the last 5 minutes.
    pub avg300_percent: f64,
    /// Total since boot (or since the control group was made), in microseconds.
    pub total_us: u64,
}

/// The pressure on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pressure {
    /// Time in which at least one task waited.
    pub some: Option<Stall>,
    /// Time in which every task that wanted to run waited; kernels before 5.13 have none for cpu.
    pub full: Option<Stall>,
}

/// Reads one pressure file.
pub(crate) fn read(reader: &Reader<'_>, path: &str) -> Observed<Pressure> {
    let text = reader.text(path);
    match text.reason() {
        // `kernel/sched/psi.c`: the files exist but answer EOPNOTSUPP when accounting was not switched on.
        Some(Reason::Failed(errno)) if errno.contains("OPNOTSUPP") || errno.contains("NOTSUP") => {
            Observed::unavailable(
                path,
                Reason::NotApplicable("pressure accounting is off (psi=1 turns it on)".into()),
            )
        }
        _ => text.parse(|text| parse(&text)),
    }
}

pub(crate) fn parse(text: &str) -> Result<Pressure, String> {
    let mut pressure = Pressure { some: None, full: None };
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("some", rest)) => pressure.some = stall(rest),
            Some(("full", rest)) => pressure.full = stall(rest),
            _ => {}
        }
    }
    if pressure.some.is_none() { Err("no `some` line".to_owned()) } else { Ok(pressure) }
}

fn stall(text: &str) -> Option<Stall> {
    let field = |name: &str| {
        text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    let percent = |name: &str| field(name)?.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value));
    Some(Stall {
        avg10_percent: percent("avg10")?,
        avg60_percent: percent("avg60")?,
        avg300_percent: percent("avg300")?,
        total_us: field("total")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn both_lines() {
        let pressure =
            parse("some avg10=61.41 avg60=48.14 avg300=19.88 total=114811895\nfull avg10=0.00 avg60=0.00 avg300=0.50 total=7").unwrap();
        assert!((pressure.some.unwrap().avg300_percent - 19.88).abs() < 1e-9);
        assert_eq!(pressure.full.unwrap().total_us, 7);
        assert!(parse("some avg10=nan avg60=0 avg300=0 total=0").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn switched_off_is_not_a_failure() {
        let host = FakeHost::new(&[]).unreadable("/proc/pressure/io", 95);
        let pressure = read(&Reader::new(&host), "/proc/pressure/io");
        assert!(matches!(pressure.reason(), Some(Reason::NotApplicable(_))), "{pressure:?}");
    }

    proptest! {
        #[test]
        fn never_panics(text in "(some|full)?[ a-z0-9=.\n-]{0,60}") {
            let _ = parse(&text);
        }
    }
}
