//! Kernel messages that go letter by letter over a serial line.

use zenkai_facts::Facts;
use zenkai_tune::Setting;

use crate::checks::shared::in_guest;
use crate::{
    Check, Context, Evidence, Finding, Impact, Judgement, Outcome, Remedy, Subject, Subsystem, Workload, need,
};

/// See the explanation.
pub(super) static CHECK: Check = Check {
    id: "kernel-serial-console-verbose",
    subsystem: Subsystem::Kernel,
    summary: "many kernel messages go over a serial line",
    impact: Impact::Depends,
    effect: "bursts of messages over a slow serial line stall the CPU that prints, up to hard lockups (SUSE)",
    risk: "messages are missing on the console; they stay in the kernel log",
    source: "https://www.suse.com/support/kb/doc/?id=000020516",
    explanation: include_str!("kernel_serial_console_verbose.md"),
    run,
};

/// Speeds at which one line takes longer than 20 ms.
const SLOW_BAUD: u32 = 38_400;

fn run(facts: &Facts, context: Context) -> Judgement {
    judge(facts, context).into()
}

fn judge(facts: &Facts, context: Context) -> Result<Option<Finding>, Outcome> {
    let output = &facts.kernel.console;
    let levels = *need(&output.levels)?;
    let consoles = need(&output.consoles)?;
    let Some(console) = consoles.iter().find(|console| console.serial && console.enabled) else {
        return Err(Outcome::not_applicable("there is no serial console"));
    };
    let line = facts.kernel.command_line.get();
    let all_levels = line.is_some_and(|line| line.has("ignore_loglevel"));
    let slow = console.baud.is_some_and(|baud| baud <= SLOW_BAUD) && !in_guest(facts);
    let debug = all_levels || levels.console >= 8;
    let for_latency = context.works_as(&[Workload::Latency]) && levels.console > 5;
    let printing = debug || for_latency || (slow && levels.console > 4);
    if !printing {
        return Ok(None);
    }
    let speed = console.baud.map_or(String::new(), |baud| format!(" at {baud} baud"));
    let what = if debug { "all kernel messages, debug ones too," } else { "kernel messages" };
    let mut settings = vec![Setting::sysctl("kernel.printk", "4 4 1 7")];
    if all_levels {
        settings.push(Setting::kernel_argument("ignore_loglevel", ""));
    }
    Ok(Some(
        Finding::new(Subject::device(&console.name), format!("{what} are printed over a serial line{speed}"))
            .with(Evidence::of(&output.levels).expected("4 or less in front"))
            .with(Evidence::derived(output.consoles.source(), format!("{}{speed}", console.name)))
            .remedy(Remedy::Set(settings)),
    ))
}

#[cfg(test)]
mod tests {
    use crate::checks::testing::findings;

    fn fires(printk: &str, console: &str, line: &str) -> bool {
        let consoles = format!("{console}                -W- (EC  p a)    4:64\n");
        let files = [
            ("/proc/sys/kernel/printk", printk),
            ("/proc/consoles", consoles.as_str()),
            ("/proc/cmdline", line),
        ];
        !findings(&super::CHECK, &files).is_empty()
    }

    #[test]
    fn a_usual_cloud_image_is_silent() {
        assert!(!fires("7 4 1 7\n", "ttyS0", "console=tty0 console=ttyS0,115200n8"));
        assert!(!fires("4 4 1 7\n", "ttyS0", "console=ttyS0,9600"));
        assert!(!fires("8 4 1 7\n", "tty0", ""));
        assert!(fires("7 4 1 7\n", "ttyS0", "console=ttyS0,9600"));
        assert!(fires("8 4 1 7\n", "ttyS0", "console=ttyS0,115200n8"));
        assert!(fires("4 4 1 7\n", "ttyS0", "console=ttyS0,115200n8 ignore_loglevel"));
    }
}
