//! Instructions that tell what the CPU is.

use std::io;

use rustix::io::Errno;

use crate::Reply;

/// CPUID on the CPU that happens to run us. Leaves above the highest one the CPU has are refused: the
/// instruction would answer with another leaf's data (Intel SDM, CPUID).
#[cfg(target_arch = "x86_64")]
pub(super) fn cpuid(leaf: u32, subleaf: u32) -> io::Result<Reply> {
    use std::arch::x86_64::__cpuid_count;
    // Hypervisors stack their leaves in blocks of 0x100 (KVM or Xen behind Hyper-V's own).
    let block =
        if (0x4000_0000..0x4001_0000).contains(&leaf) { leaf & 0xffff_ff00 } else { leaf & 0xc000_0000 };
    let highest = __cpuid_count(block, 0).eax;
    if leaf > highest {
        return Err(Errno::NODATA.into());
    }
    let answer = __cpuid_count(leaf, subleaf);
    Ok(Reply::Numbers([answer.eax, answer.ebx, answer.ecx, answer.edx].map(u64::from).to_vec()))
}

/// There is no CPUID on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn cpuid(_leaf: u32, _subleaf: u32) -> io::Result<Reply> {
    Err(Errno::OPNOTSUPP.into())
}
