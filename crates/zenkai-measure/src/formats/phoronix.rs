//! A result file of the Phoronix Test Suite: a result for each metric, an entry for each arm, the trials in its
//! `RawString`.

use std::collections::BTreeMap;

use super::{FormatError, Imported, Run, Runs, arm_name, numbers, program};
use crate::experiment::{Plan, Trial};
use crate::statistics::real;
use crate::statistics::verdict::Better;

pub(super) fn write(plan: &Plan, trials: &[&Trial]) -> String {
    let mut metrics: BTreeMap<(bool, &str), (&str, Better)> = BTreeMap::new();
    for trial in trials {
        for (name, unit, better, _) in numbers(plan, trial) {
            if let Some(better) = better {
                metrics.insert((name != plan.metric.name, name), (unit, better));
            }
        }
    }
    let mut xml = Xml { out: "<?xml version=\"1.0\"?>\n".to_owned() };
    xml.inside("PhoronixTestSuite", |xml| {
        xml.inside("Generated", |xml| {
            xml.leaf("Title", program(plan));
            xml.leaf("TestClient", concat!("zenkai ", env!("CARGO_PKG_VERSION")));
            xml.leaf("Description", &plan.workload.join(" "));
        });
        for arm in &plan.arms {
            xml.inside("System", |xml| {
                xml.leaf("Identifier", &arm.name);
                xml.leaf("Notes", &arm.spec);
            });
        }
        for ((_, name), (unit, better)) in metrics {
            xml.inside("Result", |xml| result(xml, plan, trials, (name, unit, better)));
        }
    });
    xml.out
}

fn result(xml: &mut Xml, plan: &Plan, trials: &[&Trial], (name, unit, better): (&str, &str, Better)) {
    xml.leaf("Identifier", "");
    xml.leaf("Title", program(plan));
    xml.leaf("Arguments", &plan.workload.get(1..).unwrap_or_default().join(" "));
    xml.leaf("Description", name);
    xml.leaf("Scale", if unit == "s" { "Seconds" } else { unit });
    xml.leaf("Proportion", if better == Better::Lower { "LIB" } else { "HIB" });
    xml.leaf("DisplayFormat", "BAR_GRAPH");
    xml.inside("Data", |xml| {
        for arm in 0..plan.arms.len() {
            let of_arm = trials.iter().filter(|trial| trial.arm == arm && trial.value.is_some());
            let values: Vec<f64> = of_arm
                .flat_map(|trial| numbers(plan, trial))
                .filter(|(metric, ..)| *metric == name)
                .map(|(.., value)| value)
                .collect();
            if values.is_empty() {
                continue;
            }
            xml.inside("Entry", |xml| {
                xml.leaf("Identifier", arm_name(plan, arm));
                xml.leaf("Value", &(values.iter().sum::<f64>() / real(values.len())).to_string());
                let raw: Vec<String> = values.iter().map(ToString::to_string).collect();
                xml.leaf("RawString", &raw.join(":"));
            });
        }
    });
}

struct Xml {
    out: String,
}

impl Xml {
    fn inside(&mut self, tag: &'static str, body: impl FnOnce(&mut Self)) {
        self.out.push_str(&format!("<{tag}>\n"));
        body(self);
        self.out.push_str(&format!("</{tag}>\n"));
    }

    fn leaf(&mut self, tag: &'static str, text: &str) {
        self.out.push_str(&format!("<{tag}>"));
        for letter in text.chars() {
            match letter {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                // XML 1.0 has no place for the other control characters.
                _ if letter.is_control() => self.out.push(' '),
                _ => self.out.push(letter),
            }
        }
        self.out.push_str(&format!("</{tag}>\n"));
    }
}

/// Reads the elements that are needed; whatever else is in the file is passed over.
pub(super) fn read(text: &str) -> Result<Imported, FormatError> {
    let mut runs = Runs::default();
    let mut result = Found::default();
    let mut entry = Found::default();
    let (mut inside_result, mut inside_entry) = (false, false);
    let mut line = 1;
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        line += rest[..start].matches('\n').count();
        let content = rest[..start].trim();
        let Some(end) = rest[start..].find('>') else {
            return Err(FormatError::Content { line, what: "an element is cut off".to_owned() });
        };
        let tag = &rest[start + 1..start + end];
        rest = &rest[start + end + 1..];
        match tag {
            "Result" => (inside_result, result) = (true, Found::default()),
            "Entry" => (inside_entry, entry) = (true, Found::default()),
            "/Entry" if inside_result => {
                inside_entry = false;
                entry.runs(&result, line, &mut runs)?;
            }
            "/Result" => inside_result = false,
            _ => {
                let target = if inside_entry { &mut entry } else { &mut result };
                if let Some(name) = tag.strip_prefix('/').filter(|_| inside_result) {
                    target.values.insert(name.to_owned(), unescape(content));
                }
            }
        }
        line += tag.matches('\n').count();
    }
    if !text.contains("<PhoronixTestSuite") {
        return Err(FormatError::Content {
            line: 1,
            what: "this is no result file of the Phoronix Test Suite".to_owned(),
        });
    }
    Ok(Imported { runs: runs.list, ordered: false, first: None })
}

/// The text of the elements inside of a result or an entry.
#[derive(Default)]
struct Found {
    values: BTreeMap<String, String>,
}

impl Found {
    fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    fn runs(&self, result: &Found, line: usize, runs: &mut Runs) -> Result<(), FormatError> {
        let raw = self.get("RawString");
        let values = if raw.is_empty() { self.get("Value") } else { raw };
        for value in values.split(':').filter(|value| !value.is_empty()) {
            let number: f64 = value
                .trim()
                .parse()
                .map_err(|_| FormatError::Content { line, what: format!("`{value}` is no number") })?;
            let scale = result.get("Scale");
            let run = Run {
                benchmark: result.get("Title").to_owned(),
                arm: self.get("Identifier").to_owned(),
                metric: result.get("Description").to_owned(),
                unit: if scale == "Seconds" { "s" } else { scale }.to_owned(),
                better: match result.get("Proportion") {
                    "LIB" => Some(Better::Lower),
                    "HIB" => Some(Better::Higher),
                    _ => None,
                },
                value: Some(number),
            };
            runs.push(line, run)?;
        }
        Ok(())
    }
}

fn unescape(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    plain.replace("&amp;", "&")
}
