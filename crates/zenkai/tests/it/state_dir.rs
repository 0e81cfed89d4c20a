//! A state directory that cannot be written to: refused before the machine is touched.

use std::{fs, process::Command};

use crate::{
    real_tuned::{PutBack, inside, zenkai},
    watched::Watched,
};

const STATE: &str = "/var/lib/zenkai";
const PROFILE: &str = "zenkai/database";

fn must(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().unwrap().success(), "{program} {args:?}");
}

/// A small file system at the state directory, in this test's own mount namespace; it goes with the value.
struct Small;

impl Small {
    fn mount() -> Self {
        fs::create_dir_all(STATE).unwrap();
        must("mount", &["-t", "tmpfs", "-o", "mode=0700,size=64k", "tmpfs", STATE]);
        Self
    }

    fn read_only() {
        must("mount", &["-o", "remount,ro", STATE]);
    }

    /// Writes until nothing more fits.
    fn fill() {
        use std::io::Write;
        let mut file = fs::File::create(format!("{STATE}/filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        assert!(fs::write(format!("{STATE}/more"), [0; 4096]).is_err(), "the disk is not full");
        fs::remove_file(format!("{STATE}/more")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Nothing of ours has a file open there.
        must("umount", &[STATE]);
    }
}

/// What zenkai said when it refused; nothing may have changed, and no half journal may be left.
fn refused(before: &Watched, args: &[&str]) -> String {
    let output = zenkai(args).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    let changed = before.differences(&Watched::look());
    assert!(changed.is_empty(), "{args:?}: {changed:?}");
    said
}

fn journals() -> usize {
    fs::read_dir(format!("{STATE}/transactions")).map_or(0, Iterator::count)
}

#[test]
#[ignore = "mounts a file system in a namespace of its own; `cargo xtask test` runs it"]
fn a_full_or_read_only_disk_is_refused_before_the_first_write() {
    if !inside("state_dir::a_full_or_read_only_disk_is_refused_before_the_first_write") {
        return;
    }
    let before = PutBack(Watched::look());
    let apply = ["profile", "apply", PROFILE];

    // Full from the start, and full with a directory that is there.
    let small = Small::mount();
    Small::fill();
    let said = refused(&before.0, &apply);
    assert!(said.contains("ENOSPC"), "{said}");
    assert_eq!(journals(), 0, "half a journal is left");
    fs::remove_file(format!("{STATE}/filler")).unwrap();
    assert!(zenkai(&apply).output().unwrap().status.success(), "with room again it works");
    assert!(!before.0.differences(&Watched::look()).is_empty(), "{PROFILE} changes nothing here");

    // A full disk or a read-only one refuses the way back too, says so, and keeps what is needed for it.
    let applied = Watched::look();
    Small::fill();
    let said = refused(&applied, &["profile", "off"]);
    assert!(said.contains("ENOSPC"), "{said}");
    fs::remove_file(format!("{STATE}/filler")).unwrap();
    Small::read_only();
    let said = refused(&applied, &["undo"]);
    assert!(said.contains("EROFS"), "{said}");
    must("mount", &["-o", "remount,rw", STATE]);
    assert!(zenkai(&["profile", "off"]).output().unwrap().status.success());
    let changed = before.0.differences(&Watched::look());
    assert!(changed.is_empty(), "after off: {changed:?}");
    drop(small);

    // Read-only before zenkai was ever used.
    let small = Small::mount();
    Small::read_only();
    let said = refused(&before.0, &apply);
    assert!(said.contains("EROFS"), "{said}");
    let listed = zenkai(&["profile", "list"]).output().unwrap();
    assert!(listed.status.success(), "looking needs no state directory");
    drop(small);
}
