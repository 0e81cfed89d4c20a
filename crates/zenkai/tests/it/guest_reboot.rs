//! A change that is killed, then a real reboot: files on a disk that lasts are put back by the first command after it, and
//! the kernel's values, which are gone anyway, are left alone.

use std::fs::File;

use zenkai_lab::{Job, Machine, machine_or_skip};

use crate::guests::program;

/// Lets the disk that lasts hold the journal and a folder of files. Its script holds the change up until it is killed.
const DISK: &str = r#"
for serial in /sys/block/*/serial; do [ "$(cat "$serial")" = lasting ] && disk=/dev/$(basename "${serial%/serial}"); done
[ -n "$NEW" ] && mkfs.ext4 -q "$disk"
mount -o sync "$disk" /srv || exit 9
mkdir -p /srv/state /srv/modprobe.d /var/lib/zenkai /etc/modprobe.d /etc/tuned/held
mount --bind /srv/state /var/lib/zenkai
mount --bind /srv/modprobe.d /etc/modprobe.d
chmod 700 /srv/state
modules=/etc/modprobe.d/tuned.conf
show() { echo "$1 swappiness=$(cat /proc/sys/vm/swappiness) $(grep -qs max_loop=7 $modules && echo written || echo gone)"; }
"#;

const KILLED: &str = r#"
printf '[sysctl]\nvm.swappiness=7\n[modules]\nloop=max_loop=7\n[wait]\ntype=script\nscript=${i:PROFILE_DIR}/wait.sh\npriority=50\n' > /etc/tuned/held/tuned.conf
printf '#!/bin/sh\n[ "$1" = start ] && touch /tmp/held && sleep 600\nexit 0\n' > /etc/tuned/held/wait.sh
chmod 755 /etc/tuned/held/wait.sh
zenkai profile apply held > /tmp/out 2>&1 &
pid=$!
while [ ! -e /tmp/held ] && kill -0 $pid; do sleep 0.1; done
kill -9 $pid
show killed
cat /tmp/out
"#;

const AFTER: &str = r"
show rebooted
echo 33 > /proc/sys/vm/swappiness
zenkai profile active
show recovered
zenkai profile off
show off
";

fn run(machine: &Machine, disk: &str, script: &str) -> String {
    let drive = format!("file={disk},format=raw,if=none,id=lasting,cache=writethrough");
    let device = "virtio-blk-pci,drive=lasting,serial=lasting".to_owned();
    let qemu = ["-drive".to_owned(), drive, "-device".to_owned(), device];
    let job = Job::shell(script).program(program().unwrap()).qemu(&qemu);
    let outcome = machine.run(job).unwrap();
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    format!("{}{}", outcome.stdout, outcome.stderr)
}

#[test]
fn what_a_killed_change_left_on_disk_is_put_back_after_a_reboot() {
    let (Some(_), Some(machine)) = (program(), machine_or_skip("nvme")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    File::create(&disk).unwrap().set_len(64 << 20).unwrap();
    let disk = disk.to_str().unwrap();
    let first = run(&machine, disk, &format!("NEW=yes\n{DISK}{KILLED}"));
    assert!(first.contains("killed swappiness=7 written"), "{first}");
    let second = run(&machine, disk, &format!("{DISK}{AFTER}"));
    for line in ["rebooted swappiness=60 written", "recovered swappiness=33 gone", "off swappiness=33 gone"] {
        assert!(second.contains(line), "no `{line}`:\n{second}\nbefore the reboot:\n{first}");
    }
}
