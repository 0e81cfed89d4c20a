use proptest::prelude::*;
use zenkai_host::FakeHost;

use super::*;
use crate::profile::Library;

fn library(host: &FakeHost) -> Library<'_> {
    Library::new(host, vec!["/usr/lib/tuned".to_owned(), "/etc/tuned".to_owned()])
}

fn world(profiles: &[(&str, &str)]) -> FakeHost {
    profiles.iter().fold(FakeHost::new(&[]), |host, (name, text)| {
        let path =
            if name.starts_with('/') { (*name).to_owned() } else { format!("/etc/tuned/{name}/tuned.conf") };
        host.file(&path, text)
    })
}

fn try_load(host: &FakeHost, names: &str) -> Result<Profile, ProfileError> {
    let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
    library(host).load(&names, None, &Functions { host, commands: None })
}

fn options(unit: &Unit) -> String {
    let option = |(key, value): &(String, OptionValue)| format!("{key}={}", value.raw);
    unit.options.iter().map(option).collect::<Vec<_>>().join(" ")
}

/// `NAME:PLUGIN:DEVICES[options]` of every unit that is enabled, `-` before one that is not.
fn shown(host: &FakeHost, names: &str) -> String {
    let unit = |unit: &Unit| {
        let off = if unit.enabled { "" } else { "-" };
        format!("{off}{}:{}:{}[{}]", unit.name, unit.plugin, unit.devices, options(unit))
    };
    match try_load(host, names) {
        Ok(profile) => profile.units.iter().map(unit).collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_the_child_does_not_mention_is_reset() {
    let host = world(&[
        ("p", "[d]\ntype=disk\ndevices=sda\nenabled=0\nelevator=none\napm=1\n[vm]\na=1\n"),
        ("c", "[main]\ninclude=p\n[d]\napm=2\nspindown=3\n[vm]\nenabled=yes\n"),
    ]);
    assert_eq!(shown(&host, "p"), "-d:disk:sda[elevator=none apm=1] vm:vm:*[a=1]");
    assert_eq!(shown(&host, "c"), "d:d:*[elevator=none apm=2 spindown=3] -vm:vm:*[a=1]");
}

#[test]
fn drop_replace_and_prepend() {
    let host = world(&[
        ("p", "[sysctl]\na=1\nb=2\nc=3\n[vm]\nx=1\n[variables]\nv=1\n"),
        ("drop", "[main]\ninclude=p\n[sysctl]\ndrop=a, c;d\na=9\n"),
        ("replace", "[main]\ninclude=p\n[sysctl]\nreplace=1\nz=1\n"),
        ("prepend", "[main]\ninclude=p\n[sysctl]\nprepend=true\nz=1\nb=5\n"),
        ("new", "[sysctl]\ndrop=a\na=1\n"),
    ]);
    assert_eq!(shown(&host, "drop"), "sysctl:sysctl:*[b=2 a=9] vm:vm:*[x=1]");
    assert_eq!(shown(&host, "replace"), "sysctl:sysctl:*[z=1] vm:vm:*[x=1]");
    assert_eq!(shown(&host, "prepend"), "sysctl:sysctl:*[z=1 a=1 b=5 c=3] vm:vm:*[x=1]");
    assert_eq!(shown(&host, "new"), "sysctl:sysctl:*[a=1]");
    assert_eq!(split_drop("a.b , c;d"), ["a.b", "c", "d"]);
    assert_eq!(split_drop("/sys/x*,b"), ["/sys/x*,b"]);
}

#[test]
fn only_the_unit_named_script_keeps_all_scripts() {
    let host = world(&[
        ("p", "[script]\nscript=a.sh\nx=1\n[s2]\ntype=script\nscript=a.sh\n"),
        (
            "c",
            "[main]\ninclude=p\n[script]\nscript=${i:PROFILE_DIR}/b.sh\n[s2]\ntype=script\nscript=../b.sh\n",
        ),
    ]);
    assert_eq!(
        shown(&host, "c"),
        "script:script:*[script=/etc/tuned/p/a.sh script=/etc/tuned/c/b.sh x=1] s2:script:*[script=/etc/tuned/b.sh]"
    );
    let profile = try_load(&host, "c").unwrap();
    let scripts: Vec<String> = profile.units[0].all("script").map(|value| value.origin.to_string()).collect();
    assert_eq!(scripts, ["/etc/tuned/p/tuned.conf:2", "/etc/tuned/c/tuned.conf:4"]);
}

#[test]
fn includes() {
    let host = world(&[
        ("a", "[s]\na=1\n"),
        ("b", "[s]\nb=1\na=2\n"),
        ("list", "[main]\ninclude=a ; b,\n  -absent\n[s]\nc=1\n"),
        ("loop", "[main]\ninclude=pool\n[s]\nl=1\n"),
        ("pool", "[main]\ninclude=loop\n[s]\np=1\n"),
        ("missing", "[main]\nsummary=x\ninclude=nope\n"),
        ("up", "[main]\ninclude=../../tmp/x\n"),
        ("function", "[main]\ninclude=${f:strip: a }\n"),
        ("variable", "[variables]\nx=a\n[main]\ninclude=${x}\n"),
        ("/usr/lib/tuned/same/tuned.conf", "[s]\nstock=1\n"),
        ("same", "[main]\ninclude=same\n[s]\nmine=1\n"),
        ("off", "[DEFAULT]\nq=1\n[main]\ninclude=a\n[s]\n"),
    ]);
    assert_eq!(shown(&host, "list"), "s:s:*[a=2 b=1 c=1]");
    assert_eq!(shown(&host, "loop"), "s:s:*[p=1 l=1]");
    assert_eq!(shown(&host, "b a"), "s:s:*[b=1 a=1]");
    assert_eq!(shown(&host, "a b a"), "s:s:*[a=2 b=1]");
    assert_eq!(shown(&host, "function"), "s:s:*[a=1]");
    assert_eq!(shown(&host, "same"), "s:s:*[stock=1 mine=1]");
    assert_eq!(shown(&host, "off"), "s:s:*[a=1 q=1]");
    assert!(
        shown(&host, "missing").starts_with("/etc/tuned/missing/tuned.conf:3: there is no profile `nope`")
    );
    assert!(shown(&host, "up").starts_with("/etc/tuned/up/tuned.conf:2: `../../tmp/x` is no profile's name"));
    assert!(shown(&host, "variable").contains("there is no profile `${x}`"));
}

#[test]
fn a_long_chain_of_includes_ends() {
    let mut host = FakeHost::new(&[]);
    for number in 0..150 {
        let text = format!("[main]\ninclude=p{}\n", number + 1);
        host = host.file(&format!("/etc/tuned/p{number}/tuned.conf"), &text);
    }
    assert!(shown(&host, "p0").contains("includes more than 100 files"));
}

#[test]
fn variables_in_their_order() {
    let host = world(&[
        (
            "p",
            "[variables]\nlater=${v2}\nv2=2\nboth=${v2}${v1}\nv1=1\nesc=\\${v1}\ntype=x\nbad-name=1\n\
             include=/etc/vars.conf\nassembled=${from_file}\n",
        ),
        ("/etc/vars.conf", "from_file=${v1}/f # note\nalone\n[any]\nv1=other\n"),
        ("c", "[main]\ninclude=p\n[variables]\nv2=two\nlast=${v2}\n"),
        ("next", "[variables]\nx=${v2}\n"),
        ("gone", "[variables]\ninclude=/etc/nope.conf\na=1\n"),
    ]);
    let variables = |names: &str| {
        let profile = try_load(&host, names).unwrap();
        let variable = |(name, value): &(String, OptionValue)| format!("{name}={}", value.raw);
        profile.variables.iter().map(variable).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(variables("p"), "later=${v2} v2=2 both=2${v1} v1=other esc=${v1} from_file=1/f assembled=1/f");
    assert_eq!(
        variables("c"),
        "later=${v2} v2=two both=two${v1} v1=other esc=${v1} from_file=1/f assembled=1/f last=two"
    );
    // The difference from tuned: nothing of an earlier profile is left.
    assert_eq!(variables("next"), "x=${v2}");
    assert_eq!(variables("gone"), "a=1");
    let profile = try_load(&host, "p").unwrap();
    assert_eq!(profile.variables[3].1.origin.to_string(), "/etc/vars.conf:4");
    assert_eq!(profile.notes.len(), 1, "{:?}", profile.notes);
    assert!(try_load(&host, "gone").unwrap().notes[0].text.contains("/etc/nope.conf"));
}

#[test]
fn assertions_and_bad_values_name_their_line() {
    let host = world(&[
        ("a", "[variables]\nx=1\nassert=${f:assertion:x must be 2:${x}:2}\n"),
        ("b", "[vm]\npriority=high\n"),
        ("c", "[vm]\nx\n"),
    ]);
    assert_eq!(
        shown(&host, "a"),
        "/etc/tuned/a/tuned.conf:3: the profile demands: x must be 2; set what it asks for"
    );
    assert_eq!(try_load(&host, "a").unwrap_err().as_tuned(), "Assertion 'x must be 2' failed.");
    assert!(shown(&host, "b").starts_with("/etc/tuned/b/tuned.conf:2: priority is no whole number"));
    assert_eq!(shown(&host, "c"), "/etc/tuned/c/tuned.conf:2: neither a [section] nor key=value");
    assert_eq!(try_load(&host, "c").unwrap_err().as_tuned(), "Cannot parse '/etc/tuned/c/tuned.conf'.");
}

#[test]
fn priorities_sort_and_are_inherited() {
    let host = world(&[
        ("p", "[a]\nx=1\n[b]\npriority=-5\nx=1\n[c]\n"),
        ("c", "[main]\ninclude=p\n[b]\ny=1\n[c]\npriority=-9\n"),
    ]);
    assert_eq!(shown(&host, "c"), "c:c:*[] b:b:*[x=1 y=1] a:a:*[x=1]");
}

#[test]
fn ours_and_installed_ones() {
    let host =
        world(&[("both", "[s]\nfrom=tuned\n"), ("mine", "[main]\ninclude=zenkai/both\n[s]\nmine=1\n")]);
    let library = library(&host).with_builtin(&[
        ("both", "[main]\nsummary=ours\n[s]\nfrom=${i:PROFILE_DIR}\n"),
        ("own", "[s]\no=1\n"),
    ]);
    let load = |name: &str| {
        let functions = Functions { host: &host, commands: None };
        let profile = library.load(&[name.to_owned()], Some("own"), &functions).unwrap();
        (options(&profile.units[0]), profile.units[0].origin.to_string(), profile.names.join(" "))
    };
    assert_eq!(load("both").0, "from=tuned o=1");
    let (options, origin, names) = load("zenkai/both");
    assert_eq!(options, "from=zenkai/both o=1");
    assert_eq!((origin.as_str(), names.as_str()), ("zenkai/both:3", "zenkai/both own"));
    assert_eq!(load("mine").0, "from=zenkai/both mine=1 o=1");
}

proptest! {
    #[test]
    fn anything_loads_or_is_refused_with_its_file(
        texts in proptest::collection::vec(
            r"(\[(main|variables|script|a)\]\n|include=|drop=|script=|p[0-2]|-p9|,|=|\$\{|\}|f:strip:|\n|x|[ \\;#:]){0,40}",
            3,
        ),
    ) {
        let host = world(&[("p0", &texts[0]), ("p1", &texts[1]), ("p2", &texts[2])]);
        match try_load(&host, "p0 p1") {
            Ok(profile) => prop_assert!(profile.files.contains(&"/etc/tuned/p0/tuned.conf".to_owned())),
            Err(error) => {
                let text = error.to_string();
                prop_assert!(text.starts_with("/etc/tuned/p"), "{}", text);
                prop_assert!(!text.contains('\n'), "{}", text);
            }
        }
    }
}
