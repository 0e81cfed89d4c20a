use zenkai_host::{FakeHost, TunableHost};

use super::*;
use crate::{Plan, State, plugins::testing::Bench};

const DEBIAN_CONFIG: &str = "\
### BEGIN /etc/grub.d/10_linux ###
if [ x$feature = xy ]; then
  set timeout=5
fi
menuentry 'Debian' --class debian {
\tlinux\t/boot/vmlinuz-6.1 root=UUID=1 ro quiet
\tinitrd\t/boot/initrd.img-6.1
}
submenu 'More' {
\tmenuentry 'Debian (recovery mode)' {
\t\techo\t'Loading Linux 6.1 ...'
\t\tlinux\t/boot/vmlinuz-6.1 root=UUID=1 ro single
\t\tinitrd\t/boot/initrd.img-6.1
\t}
}
### END /etc/grub.d/10_linux ###
if [ -n \"${have}\" ]; then if [ -z \"${once}\" ]; then save_env x; fi; fi
# it's a comment
### BEGIN /etc/grub.d/30_os-prober ###
menuentry 'It'\\''s another' {
\tlinux /boot/vmlinuz-5 root=UUID=2 ro
}
### END /etc/grub.d/30_os-prober ###
";

fn debian() -> FakeHost {
    FakeHost::new(&[
        ("/boot/grub/grub.cfg", DEBIAN_CONFIG),
        ("/etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n"),
        ("/etc/debian_version", "12.0\n"),
        ("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-6.1 root=UUID=1 ro quiet\n"),
    ])
}

/// The planned texts by path, and everything else as one line each.
fn outcome(plan: &Plan) -> Vec<(String, String)> {
    plan.steps
        .iter()
        .map(|step| {
            let knob = step.wish.knob().map(ToString::to_string).unwrap_or_default();
            match &step.state {
                State::Change { to, when: When::AfterReboot, .. } => (knob, to.to_string()),
                State::Leave(why) | State::Cannot { why, .. } => (String::new(), why.clone()),
                other => panic!("{other:?}"),
            }
        })
        .collect()
}

fn apply(host: &FakeHost, plan: &Plan) {
    for step in plan.changes() {
        let State::Change { to, .. } = &step.state else { panic!("{step:?}") };
        host.set(step.wish.knob().unwrap(), to).unwrap();
    }
}

#[test]
fn debian_gets_a_drop_in_and_its_menu() {
    let bench = Bench::on("bootloader", debian());
    let plan = bench.plan(&[("cmdline_x", "+skew_tick=1 nohz=on")]);
    let config = DEBIAN_CONFIG.replacen(" quiet", " quiet skew_tick=1 nohz=on", 1);
    assert_eq!(
        outcome(&plan),
        [
            ("file /boot/grub/grub.cfg".to_owned(), config),
            (
                "file /etc/default/grub.d/zz-zenkai.cfg".to_owned(),
                "# Written by zenkai with the active profile.\n\
                 GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT skew_tick=1 nohz=on\"\n"
                    .to_owned()
            ),
            (
                "file /etc/tuned/bootcmdline".to_owned(),
                "TUNED_BOOT_CMDLINE=\"skew_tick=1 nohz=on\"\nTUNED_BOOT_INITRD_ADD=\"\"\n".to_owned()
            ),
            (String::new(), "the running kernel lacks skew_tick=1 nohz=on; it needs a reboot".to_owned()),
        ]
    );
    assert_eq!(plan.steps[0].wish.risk.as_deref(), Some(RISK));
    apply(&bench.host, &plan);
    assert!(bench.plan(&[("cmdline_x", "+skew_tick=1 nohz=on")]).is_empty());
    // Another profile takes the place of the first one's arguments.
    apply(&bench.host, &bench.plan(&[("cmdline", "nosmt")]));
    let text =
        String::from_utf8(zenkai_host::Host::read(&bench.host, "/boot/grub/grub.cfg").unwrap()).unwrap();
    assert!(text.contains("ro quiet nosmt\n") && text.contains("ro single\n"), "{text}");
    assert!(text.contains("root=UUID=2 ro\n"), "{text}");
}

#[test]
fn what_is_not_understood_is_not_touched() {
    for (config, place) in [
        ("menuentry 'a {\n linux /vmlinuz ro\n}\n", "/boot/grub/grub.cfg:1: a quote"),
        ("menuentry a {\n linux /vmlinuz ro \\\n quiet\n}\n", "/boot/grub/grub.cfg:2: a quote"),
        ("menuentry a {\n linux /vmlinuz ro\n", "/boot/grub/grub.cfg:2: a `}` is missing"),
        ("}\n", "/boot/grub/grub.cfg:1: a `}` too many"),
        ("menuentry a {\n linux /vmlinuz ro; initrd /i\n}\n", "/boot/grub/grub.cfg:2: more than"),
        ("set timeout=5\n", "/boot/grub/grub.cfg: has no kernel line"),
    ] {
        let bench = Bench::on("bootloader", debian().file("/boot/grub/grub.cfg", config));
        let plan = bench.plan(&[("cmdline", "a=1")]);
        assert_eq!(plan.steps.len(), 1, "{config}");
        assert!(outcome(&plan)[0].1.starts_with(place), "{:?}", outcome(&plan));
    }
    let bench = Bench::on("bootloader", debian());
    for word in ["a=\"b c\"", "a=$(x)", "a;reboot", "a=\u{1b}"] {
        let plan = bench.plan(&[("cmdline", &format!("x=1 {word}"))]);
        assert_eq!((plan.mistakes().count(), plan.changes().count()), (1, 0), "{word}");
    }
    let none = Bench::new("bootloader", &[("/proc/cmdline", "ro\n")]).plan(&[("cmdline", "a")]);
    assert!(none.lines().starts_with("cannot: no boot loader"));
}

#[test]
fn red_hat_with_tuneds_variable() {
    let config = "set tuned_params=\"old=1\"\nset tuned_initrd=\"\"\nmenuentry a {\n linux16 /vmlinuz ro $tuned_params\n}\n";
    let bench =
        Bench::new("bootloader", &[("/boot/grub2/grub.cfg", config), ("/etc/default/grub", "X=\"$(\n")]);
    let plan = bench.plan(&[("cmdline", "a=1")]);
    let new = config.replace("old=1", "a=1");
    assert_eq!(outcome(&plan)[0], ("file /boot/grub2/grub.cfg".to_owned(), new));
    assert_eq!(plan.changes().count(), 2);
}

#[test]
fn red_hat_without_it_edits_the_defaults() {
    let bench = Bench::new(
        "bootloader",
        &[
            ("/boot/grub2/grub.cfg", "menuentry a {\n linux /vmlinuz ro\n}\n"),
            ("/etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"rhgb\"\n"),
        ],
    );
    let plan = bench.plan(&[("cmdline", "a=1")]);
    assert_eq!(outcome(&plan)[1].1, "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"rhgb a=1\"\n");
    let odd = Bench::new(
        "bootloader",
        &[
            ("/boot/grub2/grub.cfg", "menuentry a {\n linux /vmlinuz ro\n}\n"),
            ("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"$(cat x)\"\n"),
        ],
    );
    let plan = odd.plan(&[("cmdline", "a=1")]);
    assert!(outcome(&plan)[0].1.starts_with("/etc/default/grub:1: "), "{}", plan.lines());
    assert_eq!(plan.changes().count(), 0);
}

fn environment(text: &str) -> String {
    let text = format!("# GRUB Environment Block\n{text}");
    let room = 1024 - text.len();
    text + &"#".repeat(room)
}

#[test]
fn loader_entries_and_their_environment() {
    let entry = "title A\nlinux /vmlinuz\ninitrd /initrd\noptions root=x ro\n";
    let host = FakeHost::new(&[
        ("/boot/grub2/grub.cfg", "insmod blscfg\nblscfg\n"),
        ("/boot/loader/entries/1.conf", entry),
        ("/boot/loader/entries/2.conf", "title B\nlinux /vmlinuz\noptions $kernelopts\n"),
        ("/boot/loader/entries/0-rescue.conf", entry),
        ("/etc/kernel/cmdline", "root=x ro\n"),
    ])
    .file("/boot/grub2/grubenv", &environment("saved_entry=1\nkernelopts=root=x ro\n"));
    let bench = Bench::on("bootloader", host);
    let plan = bench.plan(&[("cmdline", "a=1")]);
    assert_eq!(
        outcome(&plan)[..3],
        [
            ("file /boot/loader/entries/1.conf".to_owned(), entry.replace("ro\n", "ro a=1\n")),
            ("file /boot/grub2/grubenv".to_owned(), environment("saved_entry=1\nkernelopts=root=x ro a=1\n")),
            ("file /etc/kernel/cmdline".to_owned(), "root=x ro a=1\n".to_owned()),
        ]
    );
    apply(&bench.host, &plan);
    assert!(bench.plan(&[("cmdline", "a=1")]).is_empty());
    let long = bench.plan(&[("cmdline", &"a".repeat(1200))]);
    assert!(outcome(&long)[0].1.contains("has no room"), "{}", long.lines());
}

#[test]
fn systemd_boot_and_odd_entries() {
    let files = [("/efi/loader/entries/a.conf", "title A\nlinux /k\noptions ro\noptions quiet\n")];
    let bench = Bench::new("bootloader", &files);
    let plan = bench.plan(&[("cmdline", "a=1")]);
    assert_eq!(outcome(&plan)[0].1, "title A\nlinux /k\noptions ro\noptions quiet a=1\n");
    let odd = Bench::new("bootloader", &[("/efi/loader/entries/a.conf", "title A\n[x]\n")]);
    assert!(outcome(&odd.plan(&[("cmdline", "a=1")]))[0].1.starts_with("/efi/loader/entries/a.conf:2: "));
}

#[test]
fn images_have_their_own_commands() {
    let entry = ("/boot/loader/entries/ostree-1.conf", "linux /k\noptions root=x b\n");
    let files = [("/run/ostree-booted", ""), ("/usr/bin/rpm-ostree", ""), entry];
    let plan = Bench::new("bootloader", &files).plan(&[("cmdline", "a=1 b")]);
    assert!(plan.lines().starts_with(
        "run: rpm-ostree kargs --append-if-missing=a=1 (undo: rpm-ostree kargs --delete-if-present=a=1)\n"
    ));
    let there = Bench::new("bootloader", &files).plan(&[("cmdline", "b")]);
    assert!(there.lines().starts_with("leave: a boot entry has these arguments\n"));
    let bootc = Bench::new("bootloader", &[("/run/ostree-booted", ""), entry]).plan(&[("cmdline", "a")]);
    assert!(bootc.lines().contains("--source tuned --options a "), "{}", bootc.lines());
}

#[test]
fn a_ramdisk_and_skipping() {
    let bench = Bench::on("bootloader", debian().file("/etc/x/over.img", "cpio"));
    let plan = bench.plan(&[("initrd_add_img", "/etc/x/over.img"), ("initrd_dst_img", "z.img")]);
    let lines = plan.lines();
    assert!(
        lines.starts_with("run: cp -- /etc/x/over.img /boot/z.img (undo: rm -f -- /boot/z.img)\n"),
        "{lines}"
    );
    assert!(lines.contains("/boot/initrd.img-6.1 /boot/z.img"));
    for (source, target) in
        [("over.img", "z"), ("/etc/x/none", "z"), ("/etc/x/over.img", "../z"), ("/etc/x/over.img", "/")]
    {
        let wrong = bench.plan(&[("initrd_add_img", source), ("initrd_dst_img", target)]);
        assert_eq!((wrong.mistakes().count(), wrong.steps.len()), (1, 1), "{source} {target}");
    }
    let skipped = bench.plan(&[("cmdline", "a=1"), ("skip_grub_config", "1")]);
    assert_eq!(skipped.changes().count(), 1);
    assert!(skipped.lines().starts_with("file /etc/tuned/bootcmdline: "));
}

#[test]
fn a_remedy_takes_the_place_of_a_value() {
    let host = debian()
        .file("/etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet idle=poll\"\n")
        .file("/boot/grub/grub.cfg", "menuentry a {\nlinux /k ro idle=poll\n}\n");
    let scene = Scene::new(&host, true);
    let texts = |value: &str| -> Vec<String> {
        kernel_argument_wishes(&scene, &[("idle".into(), value.into())])
            .into_iter()
            .map(|want| match want {
                Want::Set { to, .. } => to.to_string(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let gone = texts("");
    assert_eq!(gone, ["menuentry a {\nlinux /k ro\n}\n", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"]);
    assert_eq!(texts("nomwait")[0], "menuentry a {\nlinux /k ro idle=nomwait\n}\n");
}
