//! Another program's results: information, never proof.

use serde_json::{Value, json};
use zenkai_measure::formats::{Imported, Unpaired};

use crate::Block;
use crate::experiment::words::{p_value, quantity, signed};

/// Why there is no verdict.
fn why(imported: &Imported) -> &'static str {
    if imported.ordered {
        "Undecided: these runs were not ordered at random by a plan that was laid down before, so drift of the machine \
         looks like an effect. Information, not proof; `zenkai compare` proves."
    } else {
        "Undecided: the order in which these runs took place is not known, so drift of the machine looks like an \
         effect. Information, not proof; `zenkai compare` proves."
    }
}

/// What the numbers look like.
pub fn imported(imported: &Imported) -> Vec<Block> {
    let found = imported.compare();
    let mut blocks = vec![Block::Text(why(imported).to_owned())];
    if found.is_empty() {
        blocks.push(Block::Text(format!("{} runs of one arm: nothing to compare.", imported.runs.len())));
        return blocks;
    }
    blocks.push(Block::Heading("What the numbers look like (p as if each run stood alone)".to_owned()));
    let head = ["what", "first", "other", "change", "runs", "p"].map(str::to_owned).to_vec();
    blocks.push(Block::Table(std::iter::once(head).chain(found.iter().map(row)).collect()));
    blocks
}

fn row(pair: &Unpaired) -> Vec<String> {
    let middle = |value: Option<f64>| value.map_or("–".to_owned(), |value| quantity(value, &pair.unit));
    let failed = match pair.failed {
        [0, 0] => String::new(),
        [a, b] => format!(", failed {a} and {b}"),
    };
    let what = if pair.benchmark.is_empty() {
        pair.metric.clone()
    } else {
        format!("{} {}", pair.benchmark, pair.metric)
    };
    vec![
        what,
        format!("{}: {}", pair.a, middle(pair.median[0])),
        format!("{}: {}", pair.b, middle(pair.median[1])),
        pair.percent.map_or("–".to_owned(), signed),
        format!("{} and {}{failed}", pair.runs[0], pair.runs[1]),
        p_value(pair.p),
    ]
}

/// `zenkai.import/1`: the verdict is always "undecided", `proof` always false.
pub fn imported_json(imported: &Imported) -> serde_json::Result<Value> {
    Ok(json!({
        "schema": "zenkai.import/1",
        "zenkai": env!("CARGO_PKG_VERSION"),
        "verdict": "undecided",
        "proof": false,
        "why": why(imported),
        "runs": imported.runs.len(),
        "comparisons": serde_json::to_value(imported.compare())?,
    }))
}
