//! What must go, what must stay.

use proptest::prelude::*;

use super::*;
use crate::{EntryKind, EthtoolRequest};

fn read(capture: &mut Capture, path: &str, content: &str) {
    capture.record_read(path, &Ok(content.as_bytes().to_vec()));
}

fn content(capture: &Capture, path: &str) -> String {
    String::from_utf8(capture.reads[path].clone().unwrap()).unwrap()
}

fn sole(path: &str, text: &str) -> String {
    let mut capture = Capture::default();
    read(&mut capture, path, text);
    content(&anonymise(capture), path)
}

#[test]
fn what_is_no_identity_stays() {
    let harmless = [
        "6.1.0-13-amd64 6.1.0.13-amd64 v5.4.17.1",
        "0000:00:1f.2 0000:3b:00.0 10000:e1:00.0",
        "0-3,8-11,64-127",
        "ffffffff,ffffffff,00000000",
        "10:00:00:00 0:0:0:0 2:0:1:0",
        "pci:v00008086d00001572sv00001028sd00001F99bc02sc00i00",
        "Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz",
        "00:00:00:00:00:00 ff:ff:ff:ff:ff:ff",
        "mitigations=auto nosmt intel_iommu=on hugepagesz=1G hugepages=16 vconsole.keymap=us",
        "0x0000000000850089 12:34:56",
        "always [madvise] never",
    ];
    for text in harmless {
        for path in ["/proc/cmdline", "/sys/x", "/proc/mounts", "/proc/net/x"] {
            assert_eq!(sole(path, text), text, "{path}");
        }
    }
    assert_eq!(
        sole("/proc/cmdline", "BOOT_IMAGE=/vmlinuz-6.1.0.13 root=/dev/sda1"),
        "BOOT_IMAGE=/vmlinuz-6.1.0.13 root=/dev/sda1"
    );
}

#[test]
fn what_looks_like_an_identity_goes() {
    let cases = [
        ("a4:bf:01:2e:11:fe", "02:00:5e:00:00:01"),
        ("BOOTIF=01-a4-bf-01-2e-11-fe", "BOOTIF=01-02-00-5e-00-00-01"),
        ("root=UUID=1f2e3d4c-1111-2222-3333-444455556666", "root=UUID=00000000-0000-4000-8000-000000000001"),
        ("root=PARTUUID=1f2e3d4c-02", "root=PARTUUID=0000-0001"),
        ("rd.md.uuid=12345678:9abcdef0:12345678:9abcdef0", "rd.md.uuid=00000000:00000000:00000000:00000001"),
        ("naa.5000c500a1b2c3d4", "naa.0000000000000001"),
        ("0x5000c500a1b2c3d4", "0x0000000000000001"),
        ("0::/x/ea543250b8e831080d6637265d8e33be", "0::/x/00000000000000000000000000000001"),
        ("/home/alice/data /home/bob", "/home/user-1/data /home/user-2"),
        ("/dev/disk/by-id/ata-SAMSUNG_S3XNX0-part2 x", "/dev/disk/by-id/id-1-part2 x"),
        ("LVM-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHH1", "LVM-00000000000000000000000000000001"),
    ];
    for (text, expected) in cases {
        assert_eq!(sole("/sys/x", text), expected);
    }
}

#[test]
fn secrets_and_addresses_on_the_command_line() {
    let line = |text: &str| sole("/proc/cmdline", text);
    assert_eq!(line("rd.password=tiger api_token=abc x=1"), "rd.password=hidden api_token=hidden x=1");
    assert_eq!(line("nfsroot=10.1.2.3:/srv,vers=4.2"), "nfsroot=192.0.2.1:/srv,vers=4.2");
    assert_eq!(
        line("ip=10.1.2.9:10.1.2.3:10.1.2.1:255.255.255.0:web01.corp:eth0:off"),
        "ip=192.0.2.1:192.0.2.2:192.0.2.3:255.255.255.0:host-1:eth0:off"
    );
    assert_eq!(line("inst.ks=http://u:pw@ks.corp.example/a.ks"), "inst.ks=http://server-1/a.ks");
    assert_eq!(line("netroot=iscsi:joe:pw@10.0.0.1::3260"), "netroot=iscsi:hidden@192.0.2.1::3260");
    assert_eq!(line("ip=[fe80::1]"), "ip=[2001:db8::1]");
    let mounts = sole(
        "/proc/mounts",
        "filer.corp:/vol /mnt nfs4 rw,addr=10.0.0.7 0 0\n//nas/x /m cifs username=joe,vers=3 0 0\n",
    );
    assert_eq!(
        mounts,
        "server-1:/vol /mnt nfs4 rw,addr=192.0.2.1 0 0\n//server-2/x /m cifs username=hidden,vers=3 0 0\n"
    );
}

fn sample() -> Capture {
    let mut capture = Capture::default();
    read(&mut capture, "/proc/sys/kernel/hostname", "web-01.corp.example\n");
    read(&mut capture, "/sys/block/dm-0/dm/name", "vg_web--01-root\n");
    read(&mut capture, "/sys/block/sda/device/wwid", "naa.5000c500a1b2c3d4\n");
    read(&mut capture, "/sys/block/nvme0n1/device/serial", "S4EUNX0N700999      \n");
    read(&mut capture, "/sys/class/net/enxa4bf012e11fe/address", "a4:bf:01:2e:11:fe\n");
    read(
        &mut capture,
        "/proc/mounts",
        "/dev/mapper/vg_web--01-root / xfs rw 0 0\n/dev/sdb /home/alice ext4 rw 0 0\n",
    );
    read(&mut capture, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    let entry = |name: &str| DirEntry { name: name.into(), kind: EntryKind::Link };
    capture.record_list("/sys/class/net", &Ok(vec![entry("enxa4bf012e11fe"), entry("lo")]));
    capture.record_list("/dev/disk/by-id", &Ok(vec![entry("nvme-SAMSUNG_S4EUNX0N700999-part1")]));
    capture.record_list("/home", &Ok(vec![entry("alice")]));
    capture.record_link("/dev/mapper/vg_web--01-root", &Ok("/dev/dm-0".into()));
    capture.record_query(
        &Query::Ethtool { device: "enxa4bf012e11fe".into(), request: EthtoolRequest::Rings },
        &Ok(Reply::Named(vec![("rx".into(), 1)])),
    );
    capture.record_query(&Query::Statfs { path: "/home/alice".into() }, &Ok(Reply::Named(vec![])));
    capture.record_query(&Query::Msr { cpu: 0, register: 0x4f }, &Ok(Reply::Numbers(vec![0xdead_beef])));
    capture.record_query(
        &Query::Ipmi { netfn: 0x0a, command: 0x11, data: vec![0] },
        &Ok(Reply::Bytes(b"\0SN12345".to_vec())),
    );
    capture
}

#[test]
fn what_belonged_together_still_does() {
    let done = anonymise(sample());
    let text = done.to_text();
    for secret in
        ["web-01", "web--01", "corp", "5000c500", "S4EUNX", "a4bf01", "a4:bf", "alice", "deadbeef", "SN123"]
    {
        assert!(!text.contains(secret), "{secret} in\n{text}");
    }
    assert_eq!(content(&done, "/proc/sys/kernel/hostname"), "host-1\n");
    assert_eq!(content(&done, "/sys/block/dm-0/dm/name"), "vg_host-1-root\n");
    assert_eq!(done.links.keys().collect::<Vec<_>>(), ["/dev/mapper/vg_host-1-root"]);
    assert_eq!(content(&done, "/sys/class/net/enx02005e000001/address"), "02:00:5e:00:00:01\n");
    assert_eq!(done.lists["/sys/class/net"].as_ref().unwrap()[0].name, "enx02005e000001");
    assert_eq!(done.lists["/home"].as_ref().unwrap()[0].name, "user-1");
    assert!(done.queries.contains_key(&Query::Statfs { path: "/home/user-1".into() }));
    assert!(content(&done, "/proc/mounts").contains("/dev/mapper/vg_host-1-root / xfs"));
    assert_eq!(content(&done, "/sys/kernel/mm/transparent_hugepage/enabled"), "always [madvise] never\n");
    assert_eq!(Capture::parse(&text).unwrap(), done);
    assert_eq!(anonymise(done.clone()), done, "twice is once");
}

#[test]
fn a_host_named_like_a_kernel_word() {
    let mut capture = Capture::default();
    read(&mut capture, "/proc/sys/kernel/hostname", "vm\n");
    read(&mut capture, "/proc/sys/vm/swappiness", "60\n");
    read(&mut capture, "/proc/swaps", "Filename\n/dev/mapper/vm-swap partition 1 0 -2\n");
    let done = anonymise(capture);
    assert_eq!(content(&done, "/proc/sys/vm/swappiness"), "60\n");
    assert!(content(&done, "/proc/swaps").contains("/dev/mapper/host-1-swap"));
}

fn table() -> Vec<u8> {
    let mut bytes = vec![1, 27, 1, 0, 1, 2, 0, 3];
    bytes.extend(1..=16_u8);
    bytes.extend([6, 0, 0]);
    bytes.extend(b"Dell Inc.\0PowerEdge\0ABC1234\0\0");
    bytes.extend([17, 28, 2, 0]);
    bytes.extend([0; 12]);
    bytes.extend([1, 0, 26, 0, 0, 0, 0, 0, 2, 3, 0, 0]);
    bytes.extend(b"A1\x0041F2B3C4  \0NoTag99\0\0");
    bytes.extend([221, 8, 3, 0, 0xde, 0xad, 0xbe, 0xef]);
    bytes.extend(b"iDRAC 10.0.0.1\0\0");
    bytes.extend([127, 4, 4, 0, 0, 0]);
    bytes
}

#[test]
fn the_firmware_table_still_parses() {
    let mut capture = Capture::default();
    capture.record_read(SMBIOS, &Ok(table()));
    read(&mut capture, "/sys/class/dmi/id/product_serial", "ABC1234\n");
    read(&mut capture, "/sys/class/dmi/id/product_uuid", "04030201-0605-0807-090a-0b0c0d0e0f10\n");
    let done = anonymise(capture);
    let bytes = done.reads[SMBIOS].clone().unwrap();
    assert_eq!(bytes.len(), table().len());
    let text = String::from_utf8_lossy(&bytes);
    for secret in ["ABC1234", "41F2B3C4", "NoTag99", "10.0.0.1", "\u{4}\u{3}"] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("Dell Inc.\0PowerEdge\0ID0000") && text.contains("A1\0ID"));
    let serial = content(&done, "/sys/class/dmi/id/product_serial");
    assert!(text.contains(serial.trim()), "the same serial has the same stand-in");
    let uuid = content(&done, "/sys/class/dmi/id/product_uuid");
    assert_eq!(uuid, "00000000-0000-4000-8000-000000000001\n");
    assert_eq!(bytes[8..24], [0, 0, 0, 0, 0, 0, 0, 0x40, 0x80, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(anonymise(done.clone()), done);
}

#[test]
fn the_serial_number_of_a_pci_device() {
    let mut config = vec![0_u8; 0x120];
    config[0] = 0xff;
    config[0x100..0x104].copy_from_slice(&0x1100_0001_u32.to_le_bytes());
    config[0x110..0x114].copy_from_slice(&0x1000_0003_u32.to_le_bytes());
    config[0x114..0x11c].fill(0xab);
    let mut capture = Capture::default();
    capture.record_read("/sys/bus/pci/devices/0000:00:01.0/config", &Ok(config.clone()));
    config[0x114..0x11c].fill(0);
    let done = anonymise(capture);
    assert_eq!(done.reads["/sys/bus/pci/devices/0000:00:01.0/config"], Ok(config));
}

proptest! {
    #[test]
    fn no_secret_survives(
        host in "[a-z]{3}[g-z]{2}[0-9]{2}",
        serial in "[A-Z]{3}[0-9]{4}[A-Z]{2}",
        mac in "[1-9a-f][048c](:[1-9a-f][0-9a-f]){5}",
        uuid in "[1-9a-f]{8}-[1-9a-f]{4}-[1-9a-f]{4}-[1-9a-f]{4}-[1-9a-f]{12}",
        user in "[g-z]{6}",
        filling in "[ -~]{0,30}",
    ) {
        let mut capture = Capture::default();
        read(&mut capture, "/etc/hostname", &format!("{host}\n"));
        read(&mut capture, "/sys/block/sda/device/serial", &serial);
        let text = format!("{filling} {mac} UUID={uuid} /home/{user}/x {host}-root ata_{serial}-part1\n");
        read(&mut capture, "/proc/cmdline", &text);
        read(&mut capture, &format!("/x/{mac}/{serial}/{uuid}/{host}"), &text);
        capture.record_link(&format!("/dev/{host}/root"), &Ok(format!("/home/{user}")));
        capture.record_list("/dev/disk/by-id", &Ok(vec![DirEntry { name: format!("ata_{serial}"), kind: EntryKind::Link }]));
        let done = anonymise(capture);
        let shown = done.to_text();
        for secret in [&host, &serial, &mac, &uuid, &user] {
            // The random filling may hold them by itself, bound to other letters.
            prop_assume!(!filling.contains(secret.as_str()));
            prop_assert!(!shown.contains(secret.as_str()), "{} in {}", secret, shown);
        }
        prop_assert_eq!(&Capture::parse(&shown).unwrap(), &done);
        prop_assert_eq!(&anonymise(done.clone()), &done);
    }

    #[test]
    fn hostile_captures_never_panic(
        path in "/[ -~é]{0,30}", text in "\\PC{0,80}", bytes in proptest::collection::vec(any::<u8>(), 0..200),
        place in prop::sample::select(vec!["/proc/cmdline", "/proc/mounts", "/etc/hostname", "/sys/x/serial", "/proc/net/x"]),
    ) {
        let mut capture = Capture::default();
        read(&mut capture, &path, &text);
        read(&mut capture, place, &text);
        capture.record_read(SMBIOS, &Ok(bytes));
        let done = anonymise(capture);
        prop_assert_eq!(&anonymise(done.clone()), &done, "twice is once");
    }
}

#[test]
fn a_volume_keeps_its_kind_and_loses_its_identity() {
    let anonymous = |uuid: &str| {
        let mut capture = Capture::default();
        capture.record_read("/sys/block/dm-0/dm/uuid", &Ok(format!("{uuid}\n").into_bytes()));
        let text = capture.anonymised().to_text();
        text.lines().nth(1).unwrap().rsplit(" = ").next().unwrap().to_owned()
    };
    let id = "abcdefghABCDEFGH01234567abcdefgh".repeat(2);
    let cow = anonymous(&format!("LVM-{id}-cow"));
    assert!(cow.starts_with("LVM-0") && cow.ends_with("-cow") && cow.len() == 72, "{cow}");
    let crypt = anonymous("CRYPT-LUKS2-0123456789abcdef0123456789abcdef-cryptroot");
    assert!(crypt.starts_with("CRYPT-LUKS2-") && !crypt.contains("abcdef"), "{crypt}");
    assert!(anonymous("mpath-360000000000012345").starts_with("mpath-"));
}
