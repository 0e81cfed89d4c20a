//! Intel's registers of one package (SDM volume 4).

use serde::Serialize;

use super::{Register, register};
use crate::{Observed, Reader};

/// `IA32_CLOCK_MODULATION`.
pub(super) const CLOCK_MODULATION: u32 = 0x19a;

/// Ratios count in steps of this clock since Sandy Bridge.
const BUS_MHZ: u64 = 100;

/// What the first online CPU of one package shows. A register that this model lacks fails with `EIO`.
#[derive(Debug, Clone, Serialize)]
pub struct IntelRegisters {
    /// The package.
    pub package: u32,
    /// The CPU that was asked.
    pub cpu: u32,
    /// `MSR_PLATFORM_INFO` 0xCE: base ratio in bits 15:8.
    pub platform_info: Observed<Register>,
    /// `MSR_SMI_COUNT` 0x34: system management interrupts since reset.
    pub smi_count: Observed<Register>,
    /// `MSR_PKG_CST_CONFIG_CONTROL` 0xE2: deepest package C-state in bits 3:0.
    pub package_cstate: Observed<Register>,
    /// `IA32_THERM_STATUS` 0x19C of that CPU's core: bit 2 says that the platform asserts PROCHOT# now.
    pub therm_status: Observed<Register>,
    /// `IA32_PACKAGE_THERM_STATUS` 0x1B1: the same for the package.
    pub package_therm_status: Observed<Register>,
    /// `IA32_MISC_ENABLE` 0x1A0: turbo off in bit 38.
    pub misc_enable: Observed<Register>,
    /// `MSR_TEMPERATURE_TARGET` 0x1A2.
    pub temperature_target: Observed<Register>,
    /// `MSR_MISC_FEATURE_CONTROL` 0x1A4: prefetchers off in bits 3:0.
    pub prefetch_control: Observed<Register>,
    /// `MSR_MISC_PWR_MGMT` 0x1AA: bits 8 and 18 say that the platform steers the clock itself.
    pub misc_power_management: Observed<Register>,
    /// `MSR_TURBO_RATIO_LIMIT` 0x1AD.
    pub turbo_ratio_limit: Observed<Register>,
    /// `MSR_TURBO_RATIO_LIMIT_CORES` 0x1AE: the core counts those ratios hold for (Skylake-SP and later).
    pub turbo_ratio_cores: Observed<Register>,
    /// `IA32_ENERGY_PERF_BIAS` 0x1B0.
    pub energy_perf_bias: Observed<Register>,
    /// `MSR_POWER_CTL` 0x1FC: bit 34 on some models says that the firmware, not this register, gives the bias.
    pub power_control: Observed<Register>,
    /// 0xA01: the bias the firmware gives in bits 6:3, used when bit 34 of `MSR_POWER_CTL` is set.
    pub firmware_bias: Observed<Register>,
    /// `MSR_RAPL_POWER_UNIT` 0x606.
    pub rapl_unit: Observed<Register>,
    /// `MSR_PKG_POWER_LIMIT` 0x610.
    pub power_limit: Observed<Register>,
    /// `MSR_PKG_POWER_INFO` 0x614: thermal design power in bits 14:0.
    pub power_info: Observed<Register>,
    /// `MSR_UNCORE_RATIO_LIMIT` 0x620: highest ratio in bits 6:0, lowest in 14:8.
    pub uncore_ratio_limit: Observed<Register>,
    /// `MSR_CORE_PERF_LIMIT_REASONS` 0x64F (Skylake and later).
    pub limit_reasons: Observed<Register>,
    /// `MSR_CORE_PERF_LIMIT_REASONS` 0x690 (Haswell, Broadwell).
    pub old_limit_reasons: Observed<Register>,
    /// `IA32_PM_ENABLE` 0x770: hardware P-states on in bit 0.
    pub hwp_enable: Observed<Register>,
    /// `IA32_HWP_CAPABILITIES` 0x771.
    pub hwp_capabilities: Observed<Register>,
    /// `IA32_HWP_REQUEST` 0x774 of that CPU: preference in bits 31:24, taken from the package when bit 42 is set.
    pub hwp_request: Observed<Register>,
}

/// Gives the first reading back when it has no value: then the others have none either.
pub(super) fn observe(
    reader: &Reader<'_>,
    package: u32,
    cpu: u32,
) -> Result<IntelRegisters, Observed<Register>> {
    let read = |number| register(reader, cpu, number);
    let platform_info = read(0xce);
    if platform_info.get().is_none() {
        return Err(platform_info);
    }
    Ok(IntelRegisters {
        package,
        cpu,
        platform_info,
        smi_count: read(0x34),
        package_cstate: read(0xe2),
        therm_status: read(0x19c),
        package_therm_status: read(0x1b1),
        misc_enable: read(0x1a0),
        temperature_target: read(0x1a2),
        prefetch_control: read(0x1a4),
        misc_power_management: read(0x1aa),
        turbo_ratio_limit: read(0x1ad),
        turbo_ratio_cores: read(0x1ae),
        energy_perf_bias: read(0x1b0),
        power_control: read(0x1fc),
        firmware_bias: read(0xa01),
        rapl_unit: read(0x606),
        power_limit: read(0x610),
        power_info: read(0x614),
        uncore_ratio_limit: read(0x620),
        limit_reasons: read(0x64f),
        old_limit_reasons: read(0x690),
        hwp_enable: read(0x770),
        hwp_capabilities: read(0x771),
        hwp_request: read(0x774),
    })
}

impl IntelRegisters {
    /// Whether the answers can be those of hardware. Emulators answer every register with 0 instead of refusing it,
    /// but no CPU has a base clock of 0.
    pub fn is_plausible(&self) -> bool {
        self.base_mhz().is_some()
    }

    /// The base clock in MHz; right since Sandy Bridge, where ratios count in 100 MHz.
    pub fn base_mhz(&self) -> Option<u64> {
        let ratio = self.platform_info.value()?.bits(15, 8);
        (ratio > 0).then(|| ratio.saturating_mul(BUS_MHZ))
    }

    /// The highest clock with one busy core, in MHz. The register lists eight ratios; which of them is for one core
    /// differs, but it is always the highest.
    pub fn single_core_turbo_mhz(&self) -> Option<u64> {
        let ratios = self.turbo_ratio_limit.value()?.0.to_le_bytes();
        let highest = u64::from(ratios.into_iter().max()?);
        (highest > 0).then(|| highest.saturating_mul(BUS_MHZ))
    }

    /// Unit of the power registers in µW: `1 / 2^n` W.
    fn power_unit(&self) -> Option<u32> {
        let shift = self.rapl_unit.value()?.bits(3, 0);
        u32::try_from(shift).ok()
    }

    /// Thermal design power in µW.
    pub fn thermal_design_power_uw(&self) -> Option<u64> {
        let raw = self.power_info.value()?.bits(14, 0);
        (raw > 0).then(|| (raw * 1_000_000) >> self.power_unit().unwrap_or(3))
    }

    /// The long-term power limit in µW, when it is in force (bit 15).
    pub fn long_term_limit_uw(&self) -> Option<u64> {
        let limit = self.power_limit.value().filter(|limit| limit.bit(15))?;
        Some((limit.bits(14, 0) * 1_000_000) >> self.power_unit()?)
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::{FakeHost, Query, Reply};

    use super::*;

    #[test]
    fn a_skylake_server() {
        let values = [
            (0xce, 0x800_0000_1b00_u64),
            (0x1ad, 0x2020_2222_2525_2525),
            (0x606, 0xa_0e03),
            (0x610, 0x78_04b0_0015_8410),
            (0x614, 0x24_0800_0168_0410),
        ];
        let host = values.iter().fold(FakeHost::new(&[]), |host, (register, value)| {
            host.reply(&Query::Msr { cpu: 0, register: *register }, Reply::Numbers(vec![*value]))
        });
        let registers = observe(&Reader::new(&host), 0, 0).unwrap();
        assert_eq!(registers.base_mhz(), Some(2700));
        assert_eq!(registers.single_core_turbo_mhz(), Some(3700));
        assert_eq!(registers.thermal_design_power_uw(), Some(130_000_000));
        assert_eq!(registers.long_term_limit_uw(), Some(130_000_000));
        let zeros = FakeHost::new(&[]).reply(&Query::Msr { cpu: 0, register: 0xce }, Reply::Numbers(vec![0]));
        assert!(!observe(&Reader::new(&zeros), 0, 0).unwrap().is_plausible());
    }
}
