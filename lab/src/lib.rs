//! The real-kernel laboratory: QEMU guests with the stock Debian kernel, in which a static binary meets real cpufreq,
//! cpuidle, block, md, LVM, NIC, NUMA, MSR, IPMI and Xen interfaces, without any such hardware.
//!
//! ```no_run
//! # fn main() -> Result<(), zenkai_lab::LabError> {
//! use zenkai_lab::{Job, Machine};
//! let machine = Machine::start("hwp")?;
//! let outcome = machine.run("cat /sys/devices/system/cpu/intel_pstate/no_turbo")?;
//! assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "0\n"));
//! // The program under test, found as `zenkai` in the guest's PATH:
//! let outcome = machine.run(Job::shell("zenkai facts cpu --json").program("target/release/zenkai"))?;
//! # Ok(()) }
//! ```
//!
//! Every [`Machine::run`] begins from the same state: a snapshot taken after the machine has booted and was prepared.
//! Nothing a run does is seen by another, so runs may go side by side. Machines are data: `lab/machines/*.toml`.
//! `docs/lab.md` in the repository says how to build the images.
#![expect(
    clippy::disallowed_methods,
    reason = "a tool for developers that starts QEMU and keeps files; it is no part of the program that users run"
)]

pub mod ailment;
mod archive;
mod bmc;
mod cache;
mod caps;
mod error;
mod hash;
mod job;
mod machine;
mod qemu;
mod qmp;
mod spec;
mod ssdt;

pub use cache::{Cache, Tier};
pub use error::LabError;
pub use job::{Job, Outcome};
pub use machine::{Machine, Timing, machine_or_skip};
pub use spec::{MachineSpec, Mode};
