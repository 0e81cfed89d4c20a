//! Round trips, real programs' files, and damaged ones.

use super::*;
use crate::experiment::made_up::Recipe;

const ALL: [Format; 5] = [Format::GoBench, Format::Hyperfine, Format::Pyperf, Format::Phoronix, Format::Csv];

fn experiment() -> (Plan, Vec<Trial>) {
    let recipe = Recipe { fail_every: 11, fixed: true, ..Recipe::default() };
    let plan = recipe.plan();
    let trials = recipe.trials(&plan);
    (plan, trials)
}

#[test]
fn what_is_written_is_read_back() {
    let (plan, trials) = experiment();
    let mut expected: Vec<f64> = trials.iter().filter_map(|trial| trial.value).collect();
    expected.sort_by(f64::total_cmp);
    for format in ALL {
        let text = format.export(&plan, &trials).unwrap();
        let mut imported = format.import(&text).unwrap();
        if format == Format::Csv {
            imported.first = Some(plan.arms[0].name.clone());
        }
        let times = imported.runs.iter().filter(|run| run.metric == "time");
        let mut values: Vec<f64> = times.filter_map(|run| run.value).collect();
        values.sort_by(f64::total_cmp);
        assert_eq!(values, expected, "{format:?}: every number, to the last bit");
        assert!(imported.runs.iter().any(|run| run.arm.contains("balanced")), "{format:?}");
        let found = imported.compare();
        let time = found.iter().find(|pair| pair.metric == "time").unwrap();
        assert!((time.percent.unwrap() + 8.0).abs() < 1.5 && time.p < 1e-4, "{format:?} {time:?}");
    }
}

#[test]
fn hostile_names_survive() {
    let (mut plan, trials) = experiment();
    plan.arms[0].name = "a, \"b\"\n<c> & d: /e-8".into();
    plan.arms[1].name = "a, \"b\" <c> & d: _e-8".into();
    for format in ALL {
        let imported = format.import(&format.export(&plan, &trials).unwrap()).unwrap();
        let arms: std::collections::BTreeSet<&str> =
            imported.runs.iter().map(|run| run.arm.as_str()).collect();
        assert_eq!(arms.len(), 2, "{format:?}: {arms:?}");
    }
}

#[test]
fn files_of_the_programs_themselves_are_read() {
    let go = "goos: linux\nBenchmarkSort/slow-8  \t 100\t 12345 ns/op\t 16 B/op\nBenchmarkSort/fast-8 100 11000 ns/op\nPASS\n";
    let runs = Format::GoBench.import(go).unwrap().runs;
    assert_eq!(
        (runs[0].benchmark.as_str(), runs[0].arm.as_str(), runs[0].metric.as_str()),
        ("Sort", "slow", "time")
    );
    assert!((runs[0].value.unwrap() - 12_345e-9).abs() < 1e-15);

    let hyperfine = r#"{"results":[{"command":"sleep 0","mean":1,"times":[0.5,0.6],"exit_codes":[0,1]}]}"#;
    let runs = Format::Hyperfine.import(hyperfine).unwrap().runs;
    assert_eq!((runs[0].value, runs[1].value), (Some(0.5), None), "a run that failed has no time");

    let pyperf = r#"{"benchmarks":[{"runs":[{"warmups":[[1,9.0]],"values":[1.0,2.0]},{"metadata":{}}]}],"metadata":{"name":"x","unit":"second"},"version":"1.0"}"#;
    let runs = Format::Pyperf.import(pyperf).unwrap().runs;
    assert_eq!((runs.len(), runs[0].arm.as_str(), runs[0].unit.as_str()), (2, "x", "s"));
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let (mut plan, trials) = experiment();
    plan.metric.unit = "1/s".into();
    for format in [Format::Hyperfine, Format::Pyperf] {
        assert!(format.export(&plan, &trials).unwrap_err().to_string().contains("1/s"));
    }
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let (plan, trials) = experiment();
    for format in ALL {
        let text = format.export(&plan, &trials).unwrap();
        for cut in (0..text.len()).step_by(97).filter(|cut| text.is_char_boundary(*cut)) {
            let _ = format.import(&text[..cut]);
        }
        for nonsense in ["", "\0", "<", "{}", "[1]", "{\"results\":[{}]}", "\"", "arm\nx", "Benchmarkx 1 2"] {
            assert!(format.import(nonsense).is_err(), "{format:?} {nonsense:?}");
        }
    }
}

#[test]
fn the_p_value_is_that_of_mann_and_whitney() {
    // Worked by hand: U = 23, mean 12.5, variance 25/12 (11 - 12/90), half a step of continuity.
    let run = |arm: &str, value: u32| Run {
        benchmark: String::new(),
        arm: arm.into(),
        metric: "m".into(),
        unit: String::new(),
        better: None,
        value: Some(f64::from(value)),
    };
    let runs = (1..=5).map(|value| run("a", value)).chain((4..=8).map(|value| run("b", value))).collect();
    let found = Imported { runs, ordered: false, first: None }.compare();
    assert!((found[0].p - 0.035_578_833_239).abs() < 1e-9, "{}", found[0].p);
}

#[test]
fn a_file_that_asks_for_much_is_refused_or_read_in_no_time() {
    // One name for many numbers.
    let name = "x".repeat(100_000);
    let go = format!("Benchmark{name} 1{}\n", " 1 ns/op".repeat(1_000));
    let xml = format!(
        "<PhoronixTestSuite><Result><Title>{name}</Title><Data><Entry><RawString>{}</RawString></Entry></Data></Result>",
        "1:".repeat(1_000)
    );
    let times = format!("1{}", ",1".repeat(1_000));
    let hyperfine = format!(r#"{{"results":[{{"command":"{name}","times":[{times}]}}]}}"#);
    let pyperf =
        format!(r#"{{"benchmarks":[{{"metadata":{{"name":"{name}"}},"runs":[{{"values":[{times}]}}]}}]}}"#);
    for (format, text) in [
        (Format::GoBench, &go),
        (Format::Phoronix, &xml),
        (Format::Hyperfine, &hyperfine),
        (Format::Pyperf, &pyperf),
    ] {
        let error = format.import(text).unwrap_err().to_string();
        assert!(error.contains("the names of its runs take more than"), "{format:?}: {error}");
    }
    // Many arms.
    let rows: Vec<String> = (0..300_000).map(|arm| format!("{arm},1")).collect();
    let error = Format::Csv.import(&format!("arm,value\n{}", rows.join("\n"))).unwrap_err().to_string();
    assert!(error.starts_with("300000 arms are more than"), "{error}");
    // Two arms with many runs: 90 000 million pairs of which a part is looked at.
    let rows = "0,1\n1,2\n".repeat(300_000);
    let found = Format::Csv.import(&format!("arm,value\n{rows}")).unwrap().compare();
    assert!((found[0].percent.unwrap() - 100.0).abs() < 1e-9, "{found:?}");
}
