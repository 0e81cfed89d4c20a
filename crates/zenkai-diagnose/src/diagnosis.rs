//! Runs the checks and puts the findings in order.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;
use zenkai_facts::Facts;

use crate::{
    Check, Context, Finding, Impact, Policy, Subsystem, Unjudged, Verdict, checks::CHECKS, verdict::verdicts,
};

/// A check's name.
pub type CheckId = &'static str;

/// A finding together with what its check says of every such finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reported {
    /// The check that found it.
    pub check: CheckId,
    /// Where the check belongs.
    pub subsystem: Subsystem,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// How much it costs, after the site's policy.
    pub impact: Impact,
    /// What is known of the effect.
    pub effect: &'static str,
    /// What the remedy may cost or break.
    pub risk: &'static str,
    /// The document behind the rule.
    pub source: &'static str,
}

/// A check that stays out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exempt {
    /// The check.
    pub check: CheckId,
    /// Why it does not apply, or was accepted.
    pub reason: String,
}

/// Something that could not be judged, for one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnjudgedCheck {
    /// The check.
    pub check: CheckId,
    /// What was missing.
    #[serde(flatten)]
    pub missing: Unjudged,
}

/// Which checks to run and which findings to keep.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Check ids or subsystem names; empty means all.
    pub only: Vec<String>,
    /// Leave out findings below this impact.
    pub min_impact: Option<Impact>,
}

impl Selection {
    fn takes(&self, check: &Check) -> bool {
        let subsystem = check.subsystem.to_string();
        self.only.is_empty() || self.only.iter().any(|name| name == check.id || *name == subsystem)
    }

    /// Whether a name selects anything at all.
    pub fn knows(name: &str) -> bool {
        CHECKS.iter().any(|check| check.id == name || check.subsystem.to_string() == name)
    }
}

/// What is wrong with a machine, what is right, and what could not be told.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// One sentence per resource, in a fixed order.
    pub verdicts: Vec<Verdict>,
    /// Problems, worst first.
    pub findings: Vec<Reported>,
    /// How many more problems there are below the impact that was asked for.
    pub left_out: usize,
    /// Problems that the site's policy accepts.
    pub accepted: Vec<Exempt>,
    /// Checks that found nothing wrong.
    pub passed: Vec<CheckId>,
    /// What could not be judged.
    pub unjudged: Vec<UnjudgedCheck>,
    /// Checks that make no sense on this machine.
    pub not_applicable: Vec<Exempt>,
}

impl Diagnosis {
    /// Whether root could have judged more.
    pub fn lacks_permission(&self) -> bool {
        self.unjudged.iter().any(|unjudged| unjudged.missing.needs_root())
    }
}

/// Runs the selected checks over the facts.
pub fn diagnose(facts: &Facts, context: Context, policy: &Policy, selection: &Selection) -> Diagnosis {
    let mut diagnosis = Diagnosis {
        verdicts: Vec::new(),
        findings: Vec::new(),
        left_out: 0,
        accepted: Vec::new(),
        passed: Vec::new(),
        unjudged: Vec::new(),
        not_applicable: Vec::new(),
    };
    let root = facts.privilege.effective_uid.value() == Some(0);
    for check in CHECKS.iter().copied().filter(|check| selection.takes(check)) {
        let judgement = (check.run)(facts, context);
        let silent = judgement.findings.is_empty();
        if silent && judgement.judged > 0 {
            diagnosis.passed.push(check.id);
        }
        let unjudged = judgement.unjudged.into_iter().map(|missing| missing.seen_by(root));
        diagnosis.unjudged.extend(unjudged.map(|missing| UnjudgedCheck { check: check.id, missing }));
        if let (Some(reason), true) = (judgement.not_applicable, silent && judgement.judged == 0) {
            diagnosis.not_applicable.push(Exempt { check: check.id, reason });
        }
        match policy.accept.get(check.id) {
            Some(reason) if !silent => {
                diagnosis.accepted.push(Exempt { check: check.id, reason: reason.clone() });
            }
            _ => {
                let folded = fold(judgement.findings);
                diagnosis.findings.extend(folded.into_iter().map(|finding| report(check, finding, policy)));
            }
        }
    }
    diagnosis.findings.sort_by_key(|reported| Reverse(reported.impact));
    // The verdicts speak of everything found; only the list is cut.
    diagnosis.verdicts = verdicts(facts, &diagnosis);
    if let Some(least) = selection.min_impact {
        let all = diagnosis.findings.len();
        diagnosis.findings.retain(|reported| reported.impact >= least);
        diagnosis.left_out = all - diagnosis.findings.len();
    }
    diagnosis
}

fn report(check: &'static Check, finding: Finding, policy: &Policy) -> Reported {
    let own = finding.impact.unwrap_or(check.impact);
    Reported {
        check: check.id,
        subsystem: check.subsystem,
        impact: policy.impact.get(check.id).copied().unwrap_or(own),
        effect: check.effect,
        risk: check.risk,
        source: check.source,
        finding,
    }
}

/// Tells the same of many subjects once, where the first of them stood. Sorted into groups first, since a machine
/// with thousands of devices may show thousands of different findings.
fn fold(findings: Vec<Finding>) -> Vec<Finding> {
    let mut known = BTreeMap::new();
    let mut count = 0_usize;
    let mut next = || {
        count += 1;
        count - 1
    };
    let places: Vec<usize> = findings
        .iter()
        .map(|finding| match finding.likeness() {
            Some(likeness) => *known.entry(likeness).or_insert_with(&mut next),
            None => next(),
        })
        .collect();
    drop(known);
    let mut groups: Vec<Vec<Finding>> = Vec::new();
    for (finding, place) in findings.into_iter().zip(places) {
        match groups.get_mut(place) {
            Some(group) => group.push(finding),
            // Places are counted up as they appear, so a new one is always the next.
            None => groups.push(vec![finding]),
        }
    }
    groups.into_iter().filter_map(Finding::folded).collect()
}
