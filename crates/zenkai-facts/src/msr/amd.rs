//! AMD's registers of one package (Processor Programming Reference of family 17h and later).

use serde::Serialize;

use super::{Register, register};
use crate::{Observed, Reader};

/// What the first online CPU of one package shows.
#[derive(Debug, Clone, Serialize)]
pub struct AmdRegisters {
    /// The package.
    pub package: u32,
    /// The CPU that was asked.
    pub cpu: u32,
    /// `HWCR` C001_0015: bit 25 switches boost (CPB) off.
    pub hardware_config: Observed<Register>,
    /// `PStateCurLim` C001_0061: highest P-state allowed now in bits 2:0.
    pub pstate_limit: Observed<Register>,
    /// `PStateDef` C001_0064 and following: bit 63 says that the state is in use.
    pub pstates: Vec<Observed<Register>>,
    /// `CPPC_CAPABILITY_1` C001_02B0.
    pub cppc_capability: Observed<Register>,
    /// `CPPC_ENABLE` C001_02B1.
    pub cppc_enable: Observed<Register>,
    /// `CPPC_REQUEST` C001_02B3 of that CPU.
    pub cppc_request: Observed<Register>,
}

/// Gives the first reading back when it has no value: then the others have none either.
pub(super) fn observe(
    reader: &Reader<'_>,
    package: u32,
    cpu: u32,
) -> Result<AmdRegisters, Observed<Register>> {
    let read = |number| register(reader, cpu, number);
    let hardware_config = read(0xc001_0015);
    if hardware_config.get().is_none() {
        return Err(hardware_config);
    }
    Ok(AmdRegisters {
        package,
        cpu,
        hardware_config,
        pstate_limit: read(0xc001_0061),
        pstates: (0xc001_0064..=0xc001_006b).map(read).collect(),
        cppc_capability: read(0xc001_02b0),
        cppc_enable: read(0xc001_02b1),
        cppc_request: read(0xc001_02b3),
    })
}

impl AmdRegisters {
    /// Whether the answers can be those of hardware: a real CPU has at least one P-state, an emulator that answers
    /// everything with 0 has none.
    pub fn is_plausible(&self) -> bool {
        self.pstates.iter().any(|state| state.value().is_some_and(|state| state.0 != 0))
    }
}
