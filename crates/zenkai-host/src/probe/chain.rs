//! Chains of dependent instructions, whose time in core cycles is known, so that their time in ns gives the
//! clock.
//!
//! **Addition, register to register: one cycle.** On every x86-64 of the last twenty years and every server
//! ARMv8 core. The register form is essential: Intel since Golden Cove (Alder Lake, Sapphire Rapids) adds small
//! *immediates* while renaming, with no latency at all, up to five dependent `add rax, 12` per cycle, but "only
//! for add-immediate, not add rax, rcx even if the register values are small numbers" (P. Cordes,
//! <https://stackoverflow.com/a/79363816>; per-CPU tables at <https://uops.info> and
//! <https://www.agner.org/optimize/instruction_tables.pdf>).
//!
//! **Multiplication, 32 bits: three cycles** on Intel since Nehalem and on AMD K8 to Zen, four on AMD Bulldozer
//! and Intel's small cores of some generations (Agner Fog's tables; the 64-bit form would add 5 and 6 to this
//! list). Should a future front end fold the addition after all, the ratio leaves that set, and the clock is
//! reported as inconsistent instead of wrong. On ARM the 32-bit MUL takes 2 (Neoverse N1) to 5 (ThunderX2)
//! cycles by the vendors' optimisation guides, so the check there only asks for a whole number in that range.
//!
//! A second hardware thread on the core does not disturb either chain: together they need two instructions per
//! cycle of a core that issues at least three.

/// Dependent instructions in one turn of the loop: enough that the loop's own decrement and branch, which run
/// beside the chain, never become the bottleneck, and few enough to stay in the decoded-instruction cache.
const UNROLL: u64 = 64;

/// Turns in one slice of additions: 524 288 cycles, that is 0.13 ms at 4 GHz and 0.65 ms at 800 MHz. Shorter
/// than the 1 ms timer tick of a HZ=1000 kernel, so most slices see no interrupt at all; and long enough that
/// a clock read that is a system call on a slow clocksource (2 µs) stays within about 1 %.
const ADD_TURNS: u64 = 8192;

/// Turns in one slice of multiplications: about as long as a slice of additions.
const MUL_TURNS: u64 = ADD_TURNS / 3;

/// Cycles in one slice of additions, one per instruction.
pub(super) const ADD_CYCLES: u64 = ADD_TURNS * UNROLL;

/// Instructions in one slice of multiplications.
pub(super) const MUL_COUNT: u64 = MUL_TURNS * UNROLL;

/// Cycles that a dependent 32-bit multiplication may take on this architecture; empty where there is no chain.
#[cfg(target_arch = "x86_64")]
pub(super) const MUL_LATENCIES: &[u32] = &[3, 4];
/// Cycles that a dependent 32-bit multiplication may take on this architecture; empty where there is no chain.
#[cfg(target_arch = "aarch64")]
pub(super) const MUL_LATENCIES: &[u32] = &[2, 3, 4, 5];
/// Cycles that a dependent 32-bit multiplication may take on this architecture; empty where there is no chain.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const MUL_LATENCIES: &[u32] = &[];

/// Run one slice of additions: [`ADD_CYCLES`] cycles of the core.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a compiler would fold the chain into one multiplication")]
pub(super) fn adds() {
    // SAFETY: works on three registers that the compiler assigns and on the flags; no memory, no stack.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {addend}",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            sum = inout(reg) 1_u64 => _,
            addend = in(reg) 0x9e37_79b9_7f4a_7c15_u64,
            turns = inout(reg) ADD_TURNS => _,
            options(nomem, nostack),
        );
    }
}

/// Run one slice of [`MUL_COUNT`] multiplications.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a compiler would fold the chain into one power")]
pub(super) fn muls() {
    // SAFETY: works on three registers that the compiler assigns and on the flags; no memory, no stack.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "imul {product:e}, {factor:e}",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            product = inout(reg) 1_u32 => _,
            factor = in(reg) 0x9e37_79b9_u32,
            turns = inout(reg) MUL_TURNS => _,
            options(nomem, nostack),
        );
    }
}

/// Run one slice of additions: [`ADD_CYCLES`] cycles of the core.
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "a compiler would fold the chain into one multiplication")]
pub(super) fn adds() {
    // SAFETY: works on three registers that the compiler assigns and on the flags; no memory, no stack.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {addend}",
            ".endr",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            sum = inout(reg) 1_u64 => _,
            addend = in(reg) 0x9e37_79b9_7f4a_7c15_u64,
            turns = inout(reg) ADD_TURNS => _,
            options(nomem, nostack),
        );
    }
}

/// Run one slice of [`MUL_COUNT`] multiplications.
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "a compiler would fold the chain into one power")]
pub(super) fn muls() {
    // SAFETY: works on three registers that the compiler assigns and on the flags; no memory, no stack.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "mul {product:w}, {product:w}, {factor:w}",
            ".endr",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            product = inout(reg) 1_u32 => _,
            factor = in(reg) 0x9e37_79b9_u32,
            turns = inout(reg) MUL_TURNS => _,
            options(nomem, nostack),
        );
    }
}

/// Keeps the CPU busy where no chain is written for the architecture; [`MUL_LATENCIES`] is empty there, so
/// nothing is concluded from its time.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn adds() {
    for turn in 0..ADD_TURNS {
        core::hint::black_box(turn);
    }
}

/// As [`adds`].
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn muls() {
    adds();
}
