//! Nobody spreads the interrupts.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use super::shared::crowded;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "irqbalance-missing",
    subsystem: Subsystem::Irq,
    summary: "several devices send all their interrupts to one CPU",
    impact: Impact::Moderate,
    effect: "one CPU does the interrupt work of all of them (estimate)",
    risk: "irqbalance moves interrupts that were placed by hand, unless it is told not to",
    source: "https://man7.org/linux/man-pages/man1/irqbalance.1.html",
    explanation: include_str!("irqbalance_missing.md"),
    run,
};

fn run(facts: &Facts, _context: Context) -> Judgement {
    judge(facts).into()
}

fn judge(facts: &Facts) -> Result<Option<Finding>, Outcome> {
    let cpus = need(&facts.cpu.online)?.len();
    if cpus < 4 || facts.irq.devices.is_empty() {
        return Err(Outcome::not_applicable("there is nothing to spread"));
    }
    let Some((cpu, devices)) = crowded(facts) else { return Ok(None) };
    let names: Vec<String> = devices.iter().map(|device| device.device.clone()).collect();
    let irqbalance = facts.services.service("irqbalance");
    let running = irqbalance.is_some_and(|service| service.running.value() == Some(true));
    let remedy = if running {
        Remedy::Do("irqbalance is here but does not help: see its log, and whether the interrupts are banned or bound by hand".into())
    } else {
        Remedy::Set(vec![Setting::service("irqbalance", "start")])
    };
    Ok(Some(
        Finding::new(Subject::Devices(names), format!("all queues interrupt CPU {cpu} only, of {cpus} CPUs"))
            .with(Evidence::part(
                &facts.services.present,
                if running { "irqbalance is running" } else { "irqbalance is not running" },
            ))
            .with(Evidence::derived(
                facts.irq.interrupts.source(),
                format!("busiest CPU of every queue: {cpu}"),
            ))
            .remedy(remedy)
            .because(format!("all device interrupts go to CPU {cpu}")),
    ))
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::{
        Remedy,
        checks::net::shared_testing::{found, healthy, interrupts},
    };

    fn two_devices(cpu: usize) -> FakeHost {
        let mut text = interrupts(|_| 0);
        for queue in 0..2 {
            let counts: Vec<&str> =
                (0..8).map(|column| if column == cpu { "5000000" } else { "0" }).collect();
            text.extend([format!(
                "{}: {} PCI-MSI {queue}-edge nvme0q{queue}\n",
                60 + queue,
                counts.join(" ")
            )]);
        }
        let nvme = "/sys/class/nvme/nvme0/device/msi_irqs";
        healthy()
            .file("/proc/interrupts", &text)
            .file(&format!("{nvme}/60"), "msix\n")
            .file(&format!("{nvme}/61"), "msix\n")
    }

    #[test]
    fn two_devices_on_one_cpu() {
        let finding = &found(&super::CHECK, two_devices(0))[0];
        assert_eq!(finding.subject.to_string(), "eth0, nvme0");
        assert!(matches!(&finding.remedy, Remedy::Set(_)));
        let unit = "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs";
        let running = two_devices(0).file(unit, "812\n");
        assert!(matches!(&found(&super::CHECK, running)[0].remedy, Remedy::Do(_)));
        assert_eq!(found(&super::CHECK, two_devices(3)), [], "each on its own is another finding");
    }
}
