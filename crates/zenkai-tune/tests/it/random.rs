//! Random profiles, parsed and merged by tuned and by us.

use crate::oracle::{World, answers, differences, ours};

const WORLDS: usize = 400;

/// A small generator of numbers (xorshift), the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit).unwrap()).unwrap()
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

const SECTIONS: &[&str] =
    &["main", "main", "variables", "variables", "sysctl", "disk", "script", "s2", "DEFAULT", "a][b", "vm] x"];
const NAMES: &[&str] =
    &["p0", "p1", "p2", "p3", "-absent", "-p1", "p1,p2", "p2 ; p3", "${x}", "${f:strip: p1 }"];
const KEYS: &[&str] = &[
    "a",
    "b",
    "c",
    "x",
    "y",
    "net.core.a",
    "a:b",
    "A",
    "type",
    "devices",
    "enabled",
    "replace",
    "drop",
    "script",
    "cpuinfo_regex",
    "uname_regex",
    "devices_udev_regex",
    "script_pre",
    "summary",
    "bad-name",
    "include",
];
const VALUES: &[&str] = &[
    "",
    "1",
    "0",
    "true",
    "True",
    "yes",
    "a",
    "a, b",
    "b;c",
    "x # y",
    "x#y",
    "x ; y",
    "\"q # r\"",
    "a=b",
    "=",
    "${x}",
    "${y}",
    "\\${x}",
    "$${x}",
    "${x}${y}",
    "${",
    "}",
    "${f:strip: a : b }",
    "${f:kb2s:${x}}",
    "${f:kb2s:4}",
    "\\${f:kb2s:4}",
    "${f:nope:1}",
    "${f:strip:a\\:b}",
    "${i:PROFILE_DIR}/x",
    "\\${i:PROFILE_DIR}",
    "../run.sh",
    "./a//b",
    "/abs/../c",
    "%(x)s",
    "[z]",
    "ä",
    ">10",
    "disk",
    "sda sdb",
    "${f:cpulist_unpack:0-2,^1}",
    "${f:cpulist2hex:${a}}",
    "${f:regex_search_ternary:${x}:^a:yes:no}",
    "${f:assertion:must be:${x}:1}",
    "${f:cpulist_pack:0,1,2,5}",
    "${f:s2kb:5}",
    "a\\b",
];
const LINES: &[&str] = &["", "", "  ", "# c", "; c", "  # c", "  ; c", "\t", "[]", "\u{a0}", "[open"];
const SEPARATORS: &[&str] = &["=", "=", " = ", "= ", "\t=\t"];
const ENDS: &[&str] =
    &["\n", "\n", "\n", "\n", "\r\n", "\n\n", " # end\n", "\n  more\n", "\n\n \tmore = 1\n"];

fn profile(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(4) {
        let section = random.pick(SECTIONS);
        text.push_str(&format!("[{section}]\n"));
        if section == "main" && random.below(2) == 0 {
            text.push_str(&format!("include={}\n", random.pick(NAMES)));
        }
        if section == "script" {
            // Without a script of its own, tuned runs the included ones twice; we do not.
            text.push_str("script=own.sh\n");
        }
        for _ in 0..random.below(6) {
            let key = random.pick(KEYS);
            // A variable of this name is a Python list in tuned.
            if key == "script" && matches!(section, "variables" | "DEFAULT") {
                continue;
            }
            // A file of variables that is really there is another test; a missing one says nothing.
            let value = if key == "include" { "/etc/vars.conf" } else { random.pick(VALUES) };
            let value = if key == "include" && section == "main" { random.pick(NAMES) } else { value };
            let indent = if random.below(12) == 0 { "  " } else { "" };
            let (separator, end) = (random.pick(SEPARATORS), random.pick(ENDS));
            text.push_str(&format!("{indent}{key}{separator}{value}{end}"));
            if random.below(10) == 0 {
                text.push_str(&format!("{}\n", random.pick(LINES)));
            }
        }
    }
    text
}

fn world(random: &mut Random) -> World {
    let mut world = World::default();
    for number in 0..4 {
        let directory = if number == 3 { "/usr/lib/tuned" } else { "/etc/tuned" };
        world.files.insert(format!("{directory}/p{number}/tuned.conf"), profile(random));
    }
    world.files.insert("/usr/lib/tuned/p1/tuned.conf".to_owned(), profile(random));
    world.files.insert("/etc/vars.conf".to_owned(), "x=file ${y} # c\nalone\n[s]\ny=2\n".to_owned());
    for names in [&["p0"][..], &["p1"], &["p2", "p0"], &["p3", "p1"]] {
        world.loads.push(names.iter().map(|name| (*name).to_owned()).collect());
    }
    world
}

#[test]
fn random_profiles_merge_as_tuned_merges_them() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let worlds: Vec<World> = (0..WORLDS).map(|_| world(&mut random)).collect();
    let Some(answers) = answers(&worlds) else { return };
    let mut answers = answers.into_iter();
    let (mut wrong, mut merged, mut refused, mut crashed) = (Vec::new(), 0, 0, 0);
    for world in &worlds {
        for names in &world.loads {
            let theirs = answers.next().unwrap();
            if theirs.get("crash").is_some() {
                crashed += 1;
                continue;
            }
            let found = ours(world, names);
            let both_refuse = theirs.get("error").is_some() && found.get("error").is_some();
            if both_refuse {
                refused += 1;
            } else {
                merged += 1;
            }
            // Why a name cannot be included (a newline, a slash) we say in our own words.
            let is_name =
                both_refuse && found["error"].as_str().is_some_and(|text| text.starts_with("No profile"));
            if found != theirs && !is_name {
                wrong.push(format!("{}\n{names:?} {:#?}", differences(&theirs, &found), world.files));
            }
        }
    }
    eprintln!("{merged} merged, {refused} refused by both, {crashed} where tuned itself crashed");
    assert!(merged > 400 && refused > 50);
    assert!(wrong.is_empty(), "{} differ, the first:\n{}", wrong.len(), wrong[0]);
}
