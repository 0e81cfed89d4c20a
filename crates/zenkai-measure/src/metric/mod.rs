//! Which number of a run is compared, and how it is got out of the run.

mod json;
mod pattern;

use std::collections::BTreeMap;

use crate::experiment::Measure;
use crate::statistics::verdict::Better;
use crate::workload::Prepared;

pub use json::JsonPath;
pub use pattern::Pattern;

/// Energy, of the widest domain, or of one that is named behind a colon.
pub const JOULES: &str = "joules";

/// The number that is compared: `--metric`.
#[derive(Debug, Clone)]
pub enum Choice {
    /// One that the workload gives under this name: `time`, `user`, `sys`, `maxrss`, `joules` (`joules:package-0` of one
    /// domain), or one of its own
    /// (`read/clat_p99` of fio). See [`crate::workload::Prepared::measures`].
    Measure(String),
    /// A place in the JSON that the workload writes.
    Json(JsonPath),
    /// What the one group of a regular expression matches in the workload's output.
    Pattern(Pattern),
}

impl Choice {
    /// Reads what the user wrote: a name, `json:` and a path, or a regular expression, which is known by its group.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("json:") {
            return JsonPath::parse(path).map(Self::Json);
        }
        if text.contains('(') {
            return Pattern::parse(text).map(Self::Pattern);
        }
        let plain = |c: char| c.is_alphanumeric() || "/_-.:@ %+".contains(c);
        if text.trim() == text && !text.is_empty() && text.chars().all(plain) {
            return Ok(Self::Measure(text.to_owned()));
        }
        Err(format!(
            "{text:?} is no metric: use time, user, sys, maxrss, joules, a name that the workload gives, json:PATH, or \
             a regular expression with one group, such as 'score: ([0-9.]+)'"
        ))
    }

    /// Name in the plan and in reports.
    pub fn name(&self) -> String {
        match self {
            Self::Measure(name) => name.clone(),
            Self::Json(path) => path.name(),
            Self::Pattern(pattern) => pattern.name(),
        }
    }

    /// Where it is energy: the domain that it names, if it does.
    pub fn energy(&self) -> Option<Option<&str>> {
        let Self::Measure(name) = self else { return None };
        let domain = name.strip_prefix(JOULES)?;
        if domain.is_empty() { Some(None) } else { Some(Some(domain.strip_prefix(':')?)) }
    }

    /// What the plan keeps to find the number again; `None` when the name is enough. [`Self::parse`] reads it.
    pub fn pattern(&self) -> Option<String> {
        match self {
            Self::Measure(_) => None,
            Self::Json(path) => Some(format!("json:{}", path.text())),
            Self::Pattern(pattern) => Some(pattern.text().to_owned()),
        }
    }

    /// Unit and direction, as far as they are known before the first run; a number found in the output has no unit, and
    /// its direction is for the user to say. `None`: `workload` has no metric of this name that is known beforehand.
    pub fn describe(&self, workload: &Prepared) -> Option<(&'static str, Option<Better>)> {
        match self {
            Self::Measure(name) => workload.describe(name),
            Self::Json(_) | Self::Pattern(_) => Some(("", None)),
        }
    }

    /// The number of one run. Standard output counts before standard error, in each the last match.
    ///
    /// Errors say why there is none; such a run has failed. A number that is not finite and positive is none: effects
    /// are ratios.
    pub fn read(
        &self,
        measures: &BTreeMap<String, Measure>,
        stdout: &[u8],
        stderr: &[u8],
    ) -> Result<f64, String> {
        let (value, place) = match self {
            Self::Measure(name) => {
                let measure = measures.get(name).ok_or_else(|| absent(name, measures))?;
                (measure.value, name.clone())
            }
            Self::Json(path) => {
                (path.read(stdout).or_else(|first| path.read(stderr).map_err(|_| first))?, self.name())
            }
            Self::Pattern(pattern) => {
                let found =
                    pattern.last(stdout)?.map_or_else(|| pattern.last(stderr), |found| Ok(Some(found)))?;
                let found =
                    found.ok_or_else(|| format!("{} matches nothing in the output", pattern.text()))?;
                (number(&found)?, self.name())
            }
        };
        positive(value).ok_or_else(|| format!("{place} is {value}, which is no finite positive number"))
    }
}

fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

/// A number as programs write it.
fn number(text: &str) -> Result<f64, String> {
    let shown: String = text.chars().take(40).collect();
    text.trim().parse().map_err(|_| format!("{shown:?} is no number"))
}

fn absent(name: &str, measures: &BTreeMap<String, Measure>) -> String {
    let known: Vec<&str> = measures.keys().map(String::as_str).take(60).collect();
    let why = match name {
        JOULES => " (no energy counter of this machine could be read)",
        "maxrss" => " (the workload was smaller than zenkai, from which it starts as a copy)",
        _ => "",
    };
    format!("this run gave no {name}{why}; it gave: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_of_any_domain_or_of_one() {
        let of = |text: &str| Choice::parse(text).unwrap().energy().map(|domain| domain.map(str::to_owned));
        assert_eq!(of("joules"), Some(None));
        assert_eq!(
            of("joules:package-0 + package-0.dram"),
            Some(Some("package-0 + package-0.dram".to_owned()))
        );
        assert_eq!(of("joulesque"), None);
        assert_eq!(of("time"), None);
    }

    fn read(choice: &str, out: &str) -> Result<f64, String> {
        Choice::parse(choice)?.read(&BTreeMap::new(), out.as_bytes(), b"stderr 7\n{\"e\": 2}\n")
    }

    #[test]
    fn a_choice_is_known_by_its_look() {
        for name in ["time", "read/clat_p99.9", "joules", "my job/iops", "cpu/bogo_ops"] {
            assert!(matches!(Choice::parse(name), Ok(Choice::Measure(text)) if text == name));
        }
        for text in ["", " time", "a|b", "[0-9]+"] {
            assert!(Choice::parse(text).unwrap_err().contains("regular expression with one group"), "{text}");
        }
        for text in ["json:a.b[2]", "json:/a~1b/0", "rate=([0-9.]+)"] {
            let choice = Choice::parse(text).unwrap();
            assert_eq!(choice.pattern().unwrap(), text);
            assert_eq!(choice.name(), text);
        }
    }

    #[test]
    fn directions_are_known_for_names() {
        let fio = crate::workload::prepare(&["fio".to_owned()]);
        let of = |text: &str| Choice::parse(text).unwrap().describe(&fio);
        assert_eq!(of("read/clat_p99.9"), Some(("s", Some(Better::Lower))));
        assert_eq!(of("my job/iops"), Some(("1/s", Some(Better::Higher))));
        assert_eq!(of("time"), Some(("s", Some(Better::Lower))));
        assert_eq!((of("x ([0-9])"), of("nothing")), (Some(("", None)), None));
    }

    #[test]
    fn names_are_looked_up() {
        let time = Measure { value: 1.5, unit: "s".into(), better: None };
        let mut measures = BTreeMap::from([("time".to_owned(), time)]);
        let time = Choice::parse("time").unwrap();
        assert_eq!(time.read(&measures, b"", b""), Ok(1.5));
        let error = Choice::parse("maxrss").unwrap().read(&measures, b"", b"").unwrap_err();
        assert!(error.contains("smaller than zenkai") && error.ends_with("it gave: time"), "{error}");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            measures.get_mut("time").unwrap().value = bad;
            assert!(time.read(&measures, b"", b"").unwrap_err().contains("no finite positive number"));
        }
    }

    #[test]
    fn output_counts_before_errors_and_the_last_match_wins() {
        assert_eq!(read(r"score (\S+)", "score 1\nscore 2e3 score 4.5\nend"), Ok(4.5));
        assert_eq!(read(r"stderr (\d)", "score 1"), Ok(7.0));
        assert_eq!(read("json:e", "no json"), Ok(2.0));
        assert_eq!(read(r"score (\S+)", ""), Err(r"score (\S+) matches nothing in the output".into()));
        assert_eq!(read(r"score (\S+)", "score 1,5"), Err("\"1,5\" is no number".into()));
        assert!(read(r"score (\S+)", "score NaN").unwrap_err().contains("no finite positive"));
        assert!(read(r"score (\S+)", "score -3").unwrap_err().contains("no finite positive"));
    }
}
