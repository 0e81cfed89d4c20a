//! `scsi_host`: link power management of SATA ports (Documentation/scsi/link_power_management_policy.rst).

use zenkai_host::Knob;

use super::{OptionSpec, Plugin, Wishes};
use crate::{Fault, Instance, Scene, Want};

pub(super) static PLUGIN: Plugin = Plugin {
    name: "scsi_host",
    summary: "Sets the link power management of SATA ports",
    options: &[OptionSpec {
        name: "alpm",
        help: "max_performance, medium_power, med_power_with_dipm, min_power_with_partial or min_power",
        default: "",
    }],
    devices: Some(|scene| scene.names("/sys/class/scsi_host")),
    plan,
};

/// `ata_lpm_policy_names` in drivers/ata/libata-sata.c.
const POLICIES: [&str; 6] = [
    "keep_firmware_settings",
    "max_performance",
    "medium_power",
    "med_power_with_dipm",
    "min_power_with_partial",
    "min_power",
];

/// `PORT_CMD_HPCP` and `PORT_CMD_ESP` in drivers/ata/ahci.h: a disk may be plugged into the port while it runs.
const EXTERNAL: u32 = 1 << 18 | 1 << 21;

fn plan(scene: &Scene, instance: &Instance, wishes: &mut Wishes) {
    let Some(option) = instance.option("alpm") else { return };
    let policy = option.value.trim();
    if !POLICIES.contains(&policy) {
        wishes.cannot(option, "", Fault::Profile, format!("`{policy}` is none of {}", POLICIES.join(", ")));
        return;
    }
    if instance.devices.is_empty() {
        wishes.cannot(option, "", Fault::Machine, "no SATA ports");
    }
    for host in &instance.devices {
        let dir = format!("/sys/class/scsi_host/{host}");
        let command = scene.text(&format!("{dir}/ahci_port_cmd"));
        let command = command.and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        if command.is_some_and(|bits| bits & EXTERNAL != 0) {
            let why =
                format!("{host} is an external port: a sleeping link would not see a disk being plugged in");
            wishes.want(option, host, Want::Leave(why));
            continue;
        }
        wishes.set(option, host, Knob::Attribute(format!("{dir}/link_power_management_policy")), policy);
    }
}

#[cfg(test)]
mod tests {
    use crate::plugins::testing::Bench;

    #[test]
    fn external_ports_are_left_alone() {
        let bench = Bench::new(
            "scsi_host",
            &[
                ("/sys/class/scsi_host/host0/link_power_management_policy", "max_performance\n"),
                ("/sys/class/scsi_host/host1/link_power_management_policy", "max_performance\n"),
                ("/sys/class/scsi_host/host1/ahci_port_cmd", "40000\n"),
                ("/sys/class/scsi_host/host2/proc_name", "virtio_scsi\n"),
            ],
        );
        assert_eq!(
            bench.plan(&[("alpm", "min_power")]).lines(),
            "/sys/class/scsi_host/host0/link_power_management_policy: max_performance -> min_power\n\
             leave: host1 is an external port: a sleeping link would not see a disk being plugged in\n\
             cannot: /sys/class/scsi_host/host2/link_power_management_policy does not exist here\n"
        );
        assert!(bench.plan(&[("alpm", "max_performance")]).is_empty());
        assert_eq!(bench.plan(&[("alpm", "fast")]).mistakes().count(), 1);
        assert_eq!(
            Bench::new("scsi_host", &[]).plan(&[("alpm", "min_power")]).lines(),
            "cannot: no SATA ports\n"
        );
    }
}
