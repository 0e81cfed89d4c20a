//! What checks know of the differences, and the order that follows from it.

use std::collections::BTreeSet;

use zenkai_facts::CpuSet;
use zenkai_host::Knob;

use super::{
    Changeable, Difference, Reading, Side, Slower, Suspicion, Which,
    roles::Roles,
    rules,
    walk::{Member, Raw},
    words,
};
use crate::{Diagnosis, Impact, Remedy, Reported, Subject, checks::CHECKS};

/// More steps of a remedy than this are counted: 256 CPUs make 256 of them.
const STEPS: usize = 4;

/// Kernel arguments that bear on speed.
const ARGUMENTS: [&str; 38] = [
    "amd_iommu",
    "amd_pstate",
    "audit",
    "clocksource",
    "cpufreq.default_governor",
    "debug_pagealloc",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "init_on_alloc",
    "init_on_free",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "isolcpus",
    "kasan",
    "max_cstate",
    "maxcpus",
    "mce",
    "mem",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "page_poison",
    "pcie_aspm",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "skew_tick",
    "slub_debug",
    "transparent_hugepage",
];

/// All differences: first what checks find on one side only, each with the facts that explain it, then the other facts.
pub(super) fn ranked(a: &Side<'_>, b: &Side<'_>, roles: &Roles, raw: Vec<Raw>) -> Vec<Difference> {
    let mut facts: Vec<Difference> = raw.into_iter().map(fact).collect();
    let mut found = one_sided(Which::A, a.diagnosis, b.diagnosis, roles);
    found.extend(one_sided(Which::B, b.diagnosis, a.diagnosis, roles));
    // The worst finding has the first claim on a fact that several are built on.
    found.sort_by_key(|(difference, _)| {
        (difference.suspicion, difference.slower.as_ref().map(|slower| std::cmp::Reverse(slower.impact)))
    });
    let mut differences = Vec::new();
    for (mut difference, sources) in found {
        let side = difference.slower.as_ref().map(|slower| slower.side);
        let explains = |fact: &Difference| {
            fact.places.iter().any(|(left, right)| {
                sources.contains(if side == Some(Which::A) { left.as_str() } else { right.as_str() })
            })
        };
        let (mine, others) = facts.into_iter().partition(explains);
        (difference.facts, facts) = (mine, others);
        if difference.slower.as_ref().is_some_and(|slower| slower.remedy.is_empty())
            && let Some(first) = difference.facts.first()
        {
            difference.changeable = first.changeable;
        }
        differences.push(difference);
    }
    differences.extend(facts);
    differences
}

fn fact(raw: Raw) -> Difference {
    let can_be_set = raw.a.source == raw.b.source && !rules::READ_ONLY.contains(&raw.a.source.as_str());
    let sysctl = raw.a.source.strip_prefix("/proc/sys/").filter(|_| can_be_set);
    // What one kernel does not have cannot be set there.
    let missing = raw.a.value.is_none() || raw.b.value.is_none();
    let of_the_kernel = raw.pattern.starts_with("sysctl.") && (missing || sysctl.is_none());
    let argument = raw.path.last().filter(|_| raw.pattern == "kernel.command_line.*");
    let known = rules::find(rules::KNOWN, &raw.pattern);
    let changeable = match sysctl {
        _ if of_the_kernel => Changeable::Software,
        Some(_) => Changeable::Now,
        None => rules::find(rules::CHANGEABLE, &raw.pattern).unwrap_or(Changeable::Software),
    };
    let suspicion = if raw.derived || rules::among(rules::DERIVED, &raw.pattern) {
        Suspicion::Derived
    } else if known.is_some() || argument.is_some_and(|key| ARGUMENTS.contains(&key.as_str())) {
        Suspicion::Known
    } else if changeable == Changeable::Now {
        Suspicion::Setting
    } else {
        Suspicion::Other
    };
    let what = match (sysctl, argument) {
        (Some(tail), _) => tail.replace('.', "\0").replace('/', ".").replace('\0', "/"),
        (None, Some(key)) => format!("argument {key}"),
        (None, None) => words::name(&raw.path),
    };
    Difference {
        suspicion,
        group: raw.path.first().cloned().unwrap_or_default(),
        subject: subject(&raw.members),
        what,
        path: raw.path.join("."),
        a: raw.a,
        b: raw.b,
        count: raw.places.len(),
        slower: None,
        check: known.filter(|check| !check.is_empty()),
        changeable,
        facts: Vec::new(),
        places: raw.places,
    }
}

/// All members in one phrase: `CPUs 0-31`, `vda, vdb`, `socket 0`.
fn subject(members: &[Member]) -> String {
    const SHOWN: usize = 6;
    let cpus: Vec<&CpuSet> = members
        .iter()
        .filter_map(|member| if let Member::Cpus(cpus) = member { Some(cpus) } else { None })
        .collect();
    if !cpus.is_empty() {
        return Subject::Cpus(CpuSet::union(cpus)).to_string();
    }
    let mut seen = BTreeSet::new();
    let names: Vec<String> = members
        .iter()
        .filter_map(|member| match member {
            Member::Named("", name) => Some(name.clone()),
            Member::Named(noun, name) => Some(format!("{noun} {name}")),
            Member::Cpus(_) => None,
        })
        .filter(|name| seen.insert(name.clone()))
        .collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// The findings of one side that the other side does not share, each with the sources of its evidence.
fn one_sided(
    side: Which,
    mine: &Diagnosis,
    other: &Diagnosis,
    roles: &Roles,
) -> Vec<(Difference, BTreeSet<String>)> {
    let alone = |reported: &&Reported| {
        !rules::MOMENTARY.contains(&reported.check) && !is_shared(side, reported, mine, other, roles)
    };
    mine.findings.iter().filter(alone).map(|reported| difference(side, reported, other)).collect()
}

/// What checks find of the moment, as notes.
pub(super) fn momentary(letter: &str, diagnosis: &Diagnosis) -> Vec<String> {
    let of_now = diagnosis.findings.iter().filter(|found| rules::MOMENTARY.contains(&found.check));
    of_now
        .map(|found| {
            format!(
                "{letter} at that moment: {} ({}); moments are not compared",
                found.finding.what, found.check
            )
        })
        .collect()
}

fn is_shared(side: Which, reported: &Reported, mine: &Diagnosis, other: &Diagnosis, roles: &Roles) -> bool {
    let same = |diagnosis: &'_ Diagnosis| -> usize {
        diagnosis.findings.iter().filter(|found| found.check == reported.check).count()
    };
    let mut others = other.findings.iter().filter(|found| found.check == reported.check);
    match &reported.finding.subject {
        Subject::Devices(names) => {
            let theirs: BTreeSet<&str> = others
                .filter_map(|found| match &found.finding.subject {
                    Subject::Devices(names) => Some(names.iter().map(String::as_str)),
                    _ => None,
                })
                .flatten()
                .collect();
            names.iter().all(|name| {
                theirs.contains(name.as_str())
                    || roles.counterpart(side, name).is_some_and(|there| theirs.contains(there))
            })
        }
        Subject::Machine => {
            others.any(|found| found.finding.what == reported.finding.what)
                || (same(mine) == 1 && same(other) == 1)
        }
        Subject::Cpus(_) => others.any(|found| matches!(found.finding.subject, Subject::Cpus(_))),
        Subject::Nodes(_) => others.any(|found| matches!(found.finding.subject, Subject::Nodes(_))),
    }
}

fn difference(side: Which, reported: &Reported, other: &Diagnosis) -> (Difference, BTreeSet<String>) {
    let Reported { check, subsystem, finding, impact, effect, .. } = reported;
    let (judged, verdict) = verdict(other, check);
    let here = Reading {
        value: Some(finding.what.clone()),
        unavailable: None,
        source: finding.evidence.first().map(|evidence| evidence.source.clone()).unwrap_or_default(),
    };
    let there = Reading {
        value: judged.then(|| verdict.clone()),
        unavailable: (!judged).then(|| verdict.clone()),
        source: String::new(),
    };
    let (a, b) = match side {
        Which::A => (here, there),
        Which::B => (there, here),
    };
    let slower = Slower {
        side,
        check,
        why: finding.what.clone(),
        impact: *impact,
        effect,
        other: verdict,
        remedy: steps(&finding.remedy),
    };
    let difference = Difference {
        suspicion: if judged { Suspicion::Finding } else { Suspicion::FindingUnjudged },
        group: subsystem.to_string(),
        subject: match &finding.subject {
            Subject::Machine => String::new(),
            subject => subject.to_string(),
        },
        what: summary_of(check).to_owned(),
        path: String::new(),
        a,
        b,
        count: finding.others + 1,
        slower: Some(slower),
        check: Some(check),
        changeable: changeable(&finding.remedy),
        facts: Vec::new(),
        places: Vec::new(),
    };
    (difference, finding.evidence.iter().map(|evidence| evidence.source.clone()).collect())
}

/// What the other side's check came to, and whether it could judge at all.
fn verdict(other: &Diagnosis, check: &str) -> (bool, String) {
    if other.findings.iter().any(|found| found.check == check) {
        return (true, "the same check finds something else".to_owned());
    }
    if other.passed.contains(&check) {
        return (true, "the check finds no fault".to_owned());
    }
    if let Some(exempt) = other.not_applicable.iter().find(|exempt| exempt.check == check) {
        return (true, format!("does not apply: {}", exempt.reason));
    }
    if other.accepted.iter().any(|exempt| exempt.check == check) {
        return (true, "accepted by the site's policy".to_owned());
    }
    let missing = other.unjudged.iter().find(|unjudged| unjudged.check == check);
    let why = missing.map_or_else(
        || "nothing to judge".to_owned(),
        |unjudged| format!("could not be judged: {} {}", unjudged.missing.source, unjudged.missing.reason),
    );
    (missing.is_none(), why)
}

fn changeable(remedy: &Remedy) -> Changeable {
    match remedy {
        Remedy::Set(settings)
            if settings.iter().any(|setting| matches!(setting.knob, Knob::KernelArgument(_))) =>
        {
            Changeable::Reboot
        }
        Remedy::Set(_) | Remedy::Do(_) => Changeable::Now,
        Remedy::Firmware(_) => Changeable::Firmware,
        Remedy::Hardware(_) | Remedy::None => Changeable::Hardware,
        Remedy::Hypervisor(_) => Changeable::Hypervisor,
    }
}

fn steps(remedy: &Remedy) -> Vec<String> {
    match remedy {
        Remedy::Set(settings) => {
            let mut steps: Vec<String> = settings.iter().take(STEPS).map(ToString::to_string).collect();
            if settings.len() > STEPS {
                steps.push(format!("and {} more alike", settings.len() - STEPS));
            }
            steps
        }
        Remedy::Do(text) | Remedy::Firmware(text) | Remedy::Hardware(text) | Remedy::Hypervisor(text) => {
            vec![text.clone()]
        }
        Remedy::None => Vec::new(),
    }
}

fn summary_of(check: &str) -> &'static str {
    CHECKS.iter().find(|known| known.id == check).map_or("", |known| known.summary)
}

/// The usual impact of a check.
pub(super) fn impact_of(check: &str) -> Option<Impact> {
    CHECKS.iter().find(|known| known.id == check).map(|known| known.impact)
}
