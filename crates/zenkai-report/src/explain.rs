//! The checks themselves as reports.

use zenkai_diagnose::{Check, checks::CHECKS};

use crate::Block;

/// The page about one check.
pub fn explain(check: &Check) -> Vec<Block> {
    vec![
        Block::Verbatim(check.explanation.trim_end().to_owned()),
        Block::Text(String::new()),
        Block::Table(vec![
            vec!["check".into(), check.id.into()],
            vec!["subsystem".into(), check.subsystem.to_string()],
            vec!["impact".into(), format!("{}: {}", check.impact, check.effect)],
            vec![
                "fix".into(),
                format!(
                    "zenkai doctor --fix {}, where the doctor names a setting; zenkai undo takes it back",
                    check.id
                ),
            ],
        ]),
    ]
}

/// All checks, one line each.
pub fn check_list() -> Vec<Block> {
    let row = |check: &&Check| vec![check.id.into(), check.impact.to_string(), check.summary.into()];
    vec![Block::Table(CHECKS.iter().map(row).collect())]
}
