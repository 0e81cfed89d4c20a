//! The page in a real browser, where one is installed: it is laid out, the script runs under the policy, and hovering
//! and zooming do what they should. Screenshots for people go to `target/screenshots`.

#![expect(clippy::disallowed_methods, reason = "the test starts a browser and makes files for it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use zenkai_measure::experiment::made_up::Recipe;

use super::super::tests::MadeUp;
use super::experiment_html;

/// Programs that are Chromium, and the Debian package of the smallest.
const BROWSERS: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

pub(super) fn browser() -> Option<&'static str> {
    let works = |name: &&&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = BROWSERS.iter().find(works).copied();
    if found.is_none() {
        eprintln!("skipped: no Chromium here (apt-get install chromium-headless-shell)");
    }
    found
}

/// Runs the browser on `page` and gives its standard output.
pub(super) fn run(browser: &str, profile: &Path, arguments: &[&str], page: &Path) -> String {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=4000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn page() -> String {
    let recipe = Recipe { fail_every: 13, noise: 0.02, idle_channels: 30, fixed: true, ..Recipe::default() };
    let mut made_up = MadeUp::new(&recipe);
    made_up.host = Some(json!({
        "cpu": { "model_name": "Some CPU at 2.4 GHz" },
        "kernel": { "release": "6.12.0" },
    }));
    experiment_html(&made_up.shown())
}

/// A page around the page that uses it as a person does and writes down what it found. The report's own policy lets
/// no foreign script in.
const HARNESS: &str = include_str!("browser_harness.html");

pub(super) fn harness(browser: &str, dir: &Path, width: &str) -> Value {
    used(HARNESS, browser, dir, width)
}

/// What such a page found in `report.html` beside it, in a frame of that width.
pub(super) fn used(harness: &str, browser: &str, dir: &Path, width: &str) -> Value {
    let path = dir.join("harness.html");
    fs::write(&path, harness.replace("WIDTH", width)).unwrap();
    let arguments = ["--allow-file-access-from-files", "--window-size=1300,1000", "--dump-dom"];
    let dom = run(browser, &dir.join("profile"), &arguments, &path);
    let start = dom.rfind("FOUND{").unwrap_or_else(|| panic!("the harness did not run: {dom}"));
    let text = dom[start + 5..].split("END").next().unwrap();
    serde_json::from_str(&text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap()
}

#[test]
fn a_browser_shows_the_page_and_its_script_works() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("report.html"), page()).unwrap();
    let found = harness(browser, dir.path(), "1000");
    assert_eq!(found["errors"], json!([]), "{found}");
    assert_eq!(found["script"], "on", "the policy's hash lets the script run");
    assert_eq!(found["verdict"], "different");
    assert!(found["sentenceTop"].as_f64().unwrap() < 200.0, "the verdict is seen first: {found}");
    assert_ne!(found["ground"], "rgba(0, 0, 0, 0)", "the policy's hash lets the style in");
    assert_eq!(found["titles"], 0, "every picture has a name");
    assert_eq!(found["marks"], 40, "every trial is there");
    assert!(found["tip"].as_str().unwrap().starts_with("trial "), "{found}");
    assert!(found["reading"].as_str().unwrap().contains("GHz"), "{found}");
    assert_eq!((found["zoomed"].as_bool(), found["whole"].as_bool()), (Some(true), Some(true)));
    assert_eq!(found["charts"], 1);
    let narrow = harness(browser, dir.path(), "380");
    assert_eq!(narrow["overflow"], 0, "a telephone does not scroll sideways: {narrow}");
}

#[test]
fn screenshots_for_people() {
    screenshots("", &page());
}

/// Pictures of `page`, in light, in dark, on a telephone and on paper.
pub(super) fn screenshots(prefix: &str, page: &str) {
    let Some(browser) = browser() else { return };
    let target = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/screenshots"));
    fs::create_dir_all(&target).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let report = target.join(format!("{prefix}report.html"));
    fs::write(&report, page).unwrap();
    for (name, size, more) in [
        ("light", "1100,4200", "--blink-settings=preferredColorScheme=1"),
        ("dark", "1100,4200", "--blink-settings=preferredColorScheme=0"),
        ("narrow", "500,3000", "--blink-settings=preferredColorScheme=1"),
    ] {
        let picture = target.join(format!("{prefix}{name}.png"));
        let (size, shot) = (format!("--window-size={size}"), format!("--screenshot={}", picture.display()));
        run(browser, profile.path(), &[&size, &shot, more], &report);
        assert!(fs::metadata(&picture).unwrap().len() > 20_000, "{name} is not empty");
    }
    let paper = target.join(format!("{prefix}print.pdf"));
    let print = format!("--print-to-pdf={}", paper.display());
    run(browser, profile.path(), &[&print, "--no-pdf-header-footer"], &report);
    assert!(fs::read(paper).unwrap().starts_with(b"%PDF"));
}
