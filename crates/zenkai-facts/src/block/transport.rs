//! How a disk is attached, told from its place in the device tree.

use serde::Serialize;

/// The way requests take to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// NVMe on PCIe.
    Nvme,
    /// NVMe over a network.
    NvmeFabrics,
    /// A SATA (or PATA) port of an AHCI-like controller.
    Sata,
    /// A SAS port, directly or through expanders; the drive itself may be SATA.
    Sas,
    /// Fibre Channel.
    FibreChannel,
    /// iSCSI.
    Iscsi,
    /// A SCSI host of another kind, such as a RAID controller that hides its drives.
    Scsi,
    /// USB.
    Usb,
    /// SD card or eMMC.
    Mmc,
    /// Virtio, block or SCSI: a hypervisor's disk.
    Virtio,
    /// Xen's block front end: a hypervisor's disk.
    Xen,
    /// Hyper-V's storage bus: a hypervisor's disk.
    HyperV,
    /// None of these.
    Other,
}

/// Names of directories in the device tree and what they say, the most telling first: a virtio SCSI disk is
/// below both `virtio0` and `host0`.
const SIGNS: [(&str, Transport); 15] = [
    ("nvme-fabrics", Transport::NvmeFabrics),
    ("nvme-subsystem", Transport::Nvme),
    ("nvme", Transport::Nvme),
    ("usb", Transport::Usb),
    ("virtio", Transport::Virtio),
    ("vbd-", Transport::Xen),
    ("VMBUS", Transport::HyperV),
    ("MSFT1000", Transport::HyperV),
    ("mmc_host", Transport::Mmc),
    ("rport-", Transport::FibreChannel),
    ("session", Transport::Iscsi),
    ("end_device-", Transport::Sas),
    ("ata", Transport::Sata),
    ("host", Transport::Scsi),
    ("vmbus_", Transport::HyperV),
];

/// The transport of a disk whose canonical sysfs path is `path`.
pub(super) fn of_path(path: &str) -> Transport {
    let names: Vec<&str> = path.split('/').collect();
    let found = SIGNS.iter().find(|(sign, _)| names.iter().any(|name| is_sign(name, sign)));
    found.map_or(Transport::Other, |(_, transport)| *transport)
}

/// A word that ends in a letter must be followed by a number or nothing: `ata3` is a port, `ata_link` is not.
fn is_sign(name: &str, sign: &str) -> bool {
    name.strip_prefix(sign).is_some_and(|rest| {
        let numbered = rest.bytes().all(|byte| byte.is_ascii_digit());
        numbered || sign.ends_with(['-', '_']) || (sign == "VMBUS" || sign == "MSFT1000")
    })
}

/// The number N of the first directory `<prefix>N` on a path.
pub(super) fn numbered_component(path: &str, prefix: &str) -> Option<u32> {
    path.split('/').find_map(|name| name.strip_prefix(prefix)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_from_the_path() {
        let pci = "/sys/devices/pci0000:00/0000:00:1f.2";
        let cases = [
            ("/ata3/host2/target2:0:0/2:0:0:0/block/sda", Transport::Sata),
            ("/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda", Transport::Sas),
            ("/host0/target0:2:0/0:2:0:0/block/sda", Transport::Scsi),
            ("/nvme/nvme0/nvme0n1", Transport::Nvme),
            ("/virtio1/block/vda", Transport::Virtio),
            ("/virtio1/host0/target0:0:0/0:0:0:0/block/sda", Transport::Virtio),
            ("/usb2/2-1/2-1:1.0/host9/target9:0:0/9:0:0:0/block/sdb", Transport::Usb),
            ("/host7/rport-7:0-3/target7:0:0/7:0:0:1/block/sdd", Transport::FibreChannel),
            ("/mmc_host/mmc0/mmc0:0001/block/mmcblk0", Transport::Mmc),
        ];
        for (rest, transport) in cases {
            assert_eq!(of_path(&format!("{pci}{rest}")), transport, "{rest}");
        }
        assert_eq!(of_path("/sys/devices/vbd-51712/block/xvda"), Transport::Xen);
        assert_eq!(of_path("/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"), Transport::Nvme);
        assert_eq!(of_path("/sys/devices/platform/host1/session1/target/block/sda"), Transport::Iscsi);
        assert_eq!(
            of_path("/sys/devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/ab-cd/host0/target0:0:0/block/sda"),
            Transport::HyperV
        );
        assert_eq!(of_path(""), Transport::Other);
        assert_eq!(numbered_component("/a/ata3/host2", "ata"), Some(3));
    }
}
