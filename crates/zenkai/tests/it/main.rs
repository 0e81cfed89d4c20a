//! Integration tests of the program, in one binary: every module here is one kind of input.
#![expect(
    clippy::disallowed_methods,
    reason = "tests make files and look at the machine by other ways than zenkai"
)]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod before_after;
mod bisects;
mod compare;
mod compare_live;
mod difference;
mod experiments;
mod fixes;
mod golden;
mod guest_bisect;
mod guest_compare;
mod guest_energy;
mod guest_profiles;
mod guest_reboot;
mod guest_tuned;
mod guests;
mod hostile;
mod killed;
mod live;
mod os_index;
mod profile_commands;
mod profiles;
mod real_tuned;
mod recordings;
mod state_dir;
mod stuck;
mod truth;
mod tuned_adm;
mod watched;

use zenkai::cli::Exit;

/// What one call of the program gave.
pub(crate) struct Called {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Calls the program as `zenkai ARGS…`.
pub(crate) fn zenkai(args: &[&str]) -> Called {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = zenkai::cli::run(std::iter::once(&"zenkai").chain(args), &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    Called { exit, out: text(out), err: text(err) }
}

/// Every list of modules has a test that it is complete.
#[test]
fn no_test_file_is_forgotten() {
    let source = include_str!("main.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".rs") else { continue };
        assert!(stem == "main" || source.contains(&format!("mod {stem};")), "{name} is in no list");
    }
}
