//! Every stock profile of the installed tuned, as its own loader merges it and as we do.

use std::{collections::BTreeMap, path::Path};

use crate::oracle::{World, answers, differences, ours, root};

/// All text files below a directory, by their path in tuned's root.
fn read_all(root: &Path, directory: &str, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(root.join(directory)).unwrap().map(Result::unwrap) {
        let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            read_all(root, &path, files);
        } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
            files.insert(format!("/{path}"), text);
        }
    }
}

fn stock() -> Option<(BTreeMap<String, String>, Vec<String>)> {
    let root = root()?;
    let mut files = BTreeMap::new();
    read_all(&root, "usr/lib/tuned", &mut files);
    read_all(&root, "etc/tuned", &mut files);
    let name =
        |path: &String| path.strip_prefix("/usr/lib/tuned/")?.strip_suffix("/tuned.conf").map(str::to_owned);
    let names = files.keys().filter_map(name).collect();
    Some((files, names))
}

#[test]
fn stock_profiles_merge_as_tuned_merges_them() {
    let Some((files, names)) = stock() else {
        eprintln!("SKIPPED: tuned is not there; `cargo xtask test` fetches it");
        return;
    };
    assert!(names.len() >= 20, "{} stock profiles", names.len());
    let mut loads: Vec<Vec<String>> = names.iter().map(|name| vec![name.clone()]).collect();
    loads.extend(names.windows(2).map(<[String]>::to_vec));
    // What these two demand in their files of variables, so that the whole of them is compared.
    let mut filled = files.clone();
    for (path, text) in &mut filled {
        if path.ends_with("-variables.conf") {
            text.push_str("\nisolated_cores=1-2\nno_balance_cores=2\n");
        }
    }
    let worlds = [
        World { files: files.clone(), is_guest: false, loads: loads.clone() },
        World { files, is_guest: true, loads: loads.clone() },
        World { files: filled, is_guest: false, loads },
    ];
    let Some(answers) = answers(&worlds) else { return };
    let mut answers = answers.into_iter();
    let (mut wrong, mut options, mut errors, mut compared) = (Vec::new(), 0, 0, 0);
    for world in &worlds {
        for names in &world.loads {
            let theirs = answers.next().unwrap();
            let found = ours(world, names);
            compared += 1;
            errors += usize::from(theirs.get("error").is_some());
            let units = theirs["units"].as_array().into_iter().flatten();
            options += units.filter_map(|unit| unit[2].as_array()).map(Vec::len).sum::<usize>();
            if found != theirs {
                wrong.push(format!("{names:?}\n{}", differences(&theirs, &found)));
            }
        }
    }
    eprintln!("{compared} merges of {} profiles, {options} options, {errors} refused", names.len());
    assert!(options > 1_000 && compared > errors * 2);
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}
