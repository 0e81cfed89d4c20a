//! Does the doctor find what is wrong, and nothing else? Each ailment was injected into a real kernel; its capture must
//! fire exactly the checks that `lab/ailments` names, and the healthy machine must stay silent on them.

use std::{collections::BTreeSet, path::Path};

use zenkai_lab::ailment::{Ailment, Verdict, fired};

use crate::{
    golden::{captures, hosts},
    zenkai,
};

fn found(path: &Path, ailment: &Ailment) -> BTreeSet<String> {
    let mut args = ailment.doctor();
    args.extend(["--capture".to_owned(), path.to_str().unwrap().to_owned()]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let called = zenkai(&args);
    fired(&called.out).unwrap_or_else(|| panic!("{}: {}", path.display(), called.err))
}

#[test]
fn every_ailment_is_found_and_nothing_else() {
    let ailments = Ailment::all().unwrap();
    assert!(ailments.len() >= 25);
    let (mut wrong, mut table) = (0, String::new());
    for ailment in &ailments {
        let ailing = found(&hosts().join(format!("ailing/{}.capture", ailment.name)), ailment);
        let healthy = found(&hosts().join(format!("{}.capture", ailment.machine)), ailment);
        let verdict = Verdict::new(ailment, &ailing, &healthy);
        wrong += usize::from(!verdict.is_right());
        let mark = if verdict.is_right() { "found" } else { "WRONG" };
        table.push_str(&format!("{:28} {:8} {mark}", ailment.name, ailment.machine));
        for (what, ids) in [
            ("missed", &verdict.missed),
            ("false on the healthy machine", &verdict.false_alarms),
            ("unexpected", &verdict.others),
        ] {
            if !ids.is_empty() {
                table.push_str(&format!(" {what}: {ids:?}"));
            }
        }
        table.push('\n');
    }
    eprintln!("{table}{} ailments, {wrong} wrong", ailments.len());
    assert_eq!(wrong, 0, "\n{table}");
}

#[test]
fn every_capture_of_an_ailing_machine_has_its_ailment() {
    let known: BTreeSet<String> = Ailment::all().unwrap().into_iter().map(|ailment| ailment.name).collect();
    let there: BTreeSet<String> = captures(&hosts().join("ailing"))
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(known, there, "make them again with `cargo xtask lab captures`");
}
