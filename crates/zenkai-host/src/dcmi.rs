//! What management controllers say of the machine's power (Data Center Manageability Interface 1.5, section 6.6.1).

/// Network function of group extensions.
pub const GROUP_EXTENSION: u8 = 0x2c;
/// DCMI's number among the group extensions: the first byte of each request, and the second of each answer.
pub const DCMI: u8 = 0xdc;
/// The command "Get Power Reading".
pub const POWER_READING: u8 = 0x02;
/// Its data: the system's power statistics.
pub const POWER_READING_DATA: [u8; 4] = [DCMI, 0x01, 0, 0];

/// An answer to "Get Power Reading".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerReading {
    /// The draw of the whole machine now, in W.
    pub current_watts: u16,
    /// Highest in the controller's statistics window, in W.
    pub max_watts: u16,
    /// Average in that window, in W.
    pub average_watts: u16,
    /// Whether the controller measures at the moment; `None` where the answer ends before it says so.
    pub active: Option<bool>,
}

/// Why an answer holds no reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoReading {
    /// The controller refused, with this completion code (IPMI 2.0, table 5-2).
    #[error("the controller answers with completion code {0:#04x}{what}", what = meaning(*.0))]
    Refused(u8),
    /// Zeros: a controller without a meter.
    #[error("the controller measures nothing")]
    NoMeter,
    /// Bytes are missing.
    #[error("too short an answer")]
    TooShort,
}

fn meaning(code: u8) -> &'static str {
    match code {
        0xc0 => " (busy)",
        0xc1 => " (it does not know this command)",
        0xc3 => " (it took too long)",
        0xd2 => " (it is starting)",
        0xd4 => " (not allowed)",
        0xd5 => " (not possible in its present state)",
        _ => "",
    }
}

impl PowerReading {
    /// Reads an answer, which begins with its completion code.
    pub fn parse(answer: &[u8]) -> Result<Self, NoReading> {
        match answer.first() {
            Some(0) => {}
            Some(&code) => return Err(NoReading::Refused(code)),
            None => return Err(NoReading::TooShort),
        }
        let word = |at: usize| {
            let pair = answer.get(at..)?.first_chunk::<2>()?;
            Some(u16::from_le_bytes(*pair))
        };
        match (word(2), word(6), word(8)) {
            (Some(0), _, _) => Err(NoReading::NoMeter),
            (Some(current_watts), Some(max_watts), Some(average_watts)) => {
                // Behind them a time stamp and the length of the window.
                let active = answer.get(18).map(|state| state & 0x40 != 0);
                Ok(Self { current_watts, max_watts, average_watts, active })
            }
            _ => Err(NoReading::TooShort),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_and_what_is_none() {
        let mut answer = vec![0, 0xdc, 245, 0, 100, 0, 44, 1, 200, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x40];
        let reading = PowerReading::parse(&answer).unwrap();
        assert_eq!((reading.current_watts, reading.max_watts, reading.average_watts), (245, 300, 200));
        assert_eq!(reading.active, Some(true));
        answer[18] = 0;
        assert_eq!(PowerReading::parse(&answer).unwrap().active, Some(false));
        assert_eq!(PowerReading::parse(&answer[..14]).unwrap().active, None);
        assert_eq!(PowerReading::parse(&answer[..9]), Err(NoReading::TooShort));
        answer[2] = 0;
        assert_eq!(PowerReading::parse(&answer), Err(NoReading::NoMeter));
        assert!(PowerReading::parse(&[0xc0]).unwrap_err().to_string().ends_with("0xc0 (busy)"));
        assert_eq!(PowerReading::parse(&[]), Err(NoReading::TooShort));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            let _ = PowerReading::parse(&bytes);
        }
    }
}
