//! The power of the whole machine, as its management controller (BMC) measures it: DCMI "Get Power Reading".
//!
//! A controller takes 1 to 100 ms and more for an answer, so a thread of its own asks about once a second, adds the
//! energy up by the times of the answers, and a sample takes what there is by then. Where the driver has no interrupt,
//! asking costs CPU time of the kernel's thread `kipmi0` at the lowest priority (`Documentation/driver-api/ipmi.rst`).

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use zenkai_host::{
    dcmi::{GROUP_EXTENSION, NoReading, POWER_READING, POWER_READING_DATA, PowerReading},
    gauges::Controller,
};

use crate::sampler::{
    Options,
    channel::{Channels, Rule},
    source::{Cadence, Part, Source},
    template::{Digits, Lines},
};

use super::slowly::{APART, Slowly};

pub(in crate::sampler) static SOURCE: Source =
    Source { name: "ipmi", cadence: Cadence::Second, digits: Digits::Decimal, open, channels };

/// An answer that takes longer is not waited for. The driver's thread has the lowest priority: on a busy machine it
/// may come late.
const PATIENCE: Duration = Duration::from_secs(3);

fn open(_: &Options) -> Result<Vec<Part>, String> {
    let controller = Controller::open().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("/dev/ipmi0: {error}; there is no BMC, or a module (ipmi_devintf) is missing")
        }
        _ => format!("/dev/ipmi0: {error}"),
    })?;
    let meter = Meter::start(controller).map_err(|error| format!("no thread for the BMC: {error}"))?;
    Ok(vec![Part::told("bmc", move |text| meter.read(text))])
}

fn channels(lines: &Lines, channels: &mut Channels) {
    for line in lines.lines.iter().filter(|line| line.section == "bmc") {
        let (Some(amount), Some(micros)) = (line.named("energy_uj"), line.named("measured_us")) else {
            continue;
        };
        let words = "power of the whole machine, as its BMC says about once a second";
        channels.by("energy.bmc", "W", words, Rule::Timed { amount, micros }, 1e-6);
    }
}

/// Asks until it is dropped.
struct Meter {
    state: Arc<Mutex<State>>,
    _asking: Slowly,
}

impl Meter {
    fn start(mut controller: Controller) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let theirs = Arc::clone(&state);
        let asking = Slowly::start("zenkai-bmc", move || {
            let answer = ask(&mut controller);
            // One that measures nothing need not be asked again.
            let again = !matches!(answer, Err(Trouble { forever: true, .. }));
            lock(&theirs).take(Instant::now(), answer);
            again
        })?;
        Ok(Self { state, _asking: asking })
    }

    fn read(&self, text: &mut Vec<u8>) -> io::Result<()> {
        let (energy_uj, measured_us) = lock(&self.state).show(Instant::now()).map_err(io::Error::other)?;
        text.extend_from_slice(format!("energy_uj {energy_uj} measured_us {measured_us}").as_bytes());
        Ok(())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing that holds the lock leaves it half done.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why there is no reading.
struct Trouble {
    reason: String,
    /// Whether asking again is of no use.
    forever: bool,
}

/// The watts now.
fn ask(controller: &mut Controller) -> Result<u16, Trouble> {
    let passing = |reason: String| Trouble { reason, forever: false };
    let answer = controller.ask(GROUP_EXTENSION, POWER_READING, &POWER_READING_DATA, PATIENCE);
    let answer = answer.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => passing("the BMC gives no answer".to_owned()),
        _ => passing(format!("/dev/ipmi0: {error}")),
    })?;
    reading(&answer)
}

fn reading(answer: &[u8]) -> Result<u16, Trouble> {
    match PowerReading::parse(answer) {
        Ok(PowerReading { active: Some(false), .. }) => Err(Trouble {
            reason: "the controller says that it does not measure power at the moment".to_owned(),
            forever: false,
        }),
        Ok(reading) => Ok(reading.current_watts),
        Err(why) => {
            // 0xc1: the command is unknown to it.
            let forever = matches!(why, NoReading::NoMeter | NoReading::Refused(0xc1));
            Err(Trouble { reason: why.to_string(), forever })
        }
    }
}

/// What the answers made up to now.
#[derive(Default)]
struct State {
    energy_uj: u64,
    /// The time over which that energy was drawn.
    measured_us: u64,
    /// The last reading, in W, and when it came.
    last: Option<(Instant, u16)>,
    /// Why there is none since.
    trouble: Option<String>,
}

impl State {
    fn take(&mut self, now: Instant, answer: Result<u16, Trouble>) {
        match answer {
            Err(trouble) => self.trouble = Some(trouble.reason),
            Ok(watts) => {
                self.trouble = None;
                if let Some((then, before)) = self.last.replace((now, watts))
                    && let passed = now.saturating_duration_since(then)
                    && passed <= APART
                {
                    let micros = u64::try_from(passed.as_micros()).unwrap_or(0);
                    let both = u64::from(before) + u64::from(watts);
                    // 65 kW for 50 000 days.
                    self.energy_uj = self.energy_uj.saturating_add(both.saturating_mul(micros) / 2);
                    self.measured_us = self.measured_us.saturating_add(micros);
                }
            }
        }
    }

    /// Energy and time, or what has been wrong for longer than readings may be apart.
    fn show(&self, now: Instant) -> Result<(u64, u64), String> {
        let fresh = self.last.is_some_and(|(then, _)| now.saturating_duration_since(then) <= APART);
        match &self.trouble {
            Some(reason) if !fresh => Err(reason.clone()),
            _ => Ok((self.energy_uj, self.measured_us)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::sources::testing::between;

    fn passing(reason: &str) -> Result<u16, Trouble> {
        Err(Trouble { reason: reason.to_owned(), forever: false })
    }

    #[test]
    fn energy_is_added_up_by_the_times_of_the_answers() {
        let (mut state, start) = (State::default(), Instant::now());
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        assert_eq!(state.show(start), Ok((0, 0)), "no answer yet, and nothing wrong yet");
        state.take(at(0.0), Ok(200));
        state.take(at(1.0), Ok(200));
        state.take(at(3.0), Ok(400));
        assert_eq!(state.show(at(3.0)), Ok((800_000_000, 3_000_000)));
        // One that was missed is bridged, a long silence is not.
        state.take(at(4.0), passing("busy"));
        state.take(at(5.0), Ok(400));
        assert_eq!(state.show(at(5.0)), Ok((1_600_000_000, 5_000_000)));
        state.take(at(6.0), passing("busy"));
        assert_eq!(state.show(at(9.9)), Ok((1_600_000_000, 5_000_000)));
        assert_eq!(state.show(at(10.1)), Err("busy".to_owned()));
        state.take(at(11.0), Ok(400));
        assert_eq!(state.show(at(11.0)), Ok((1_600_000_000, 5_000_000)));
        state.take(at(12.0), Ok(400));
        assert_eq!(state.show(at(12.0)), Ok((2_000_000_000, 6_000_000)));
    }

    #[test]
    fn what_is_no_reading() {
        let mut answer = vec![0, 0xdc, 245, 0, 100, 0, 44, 1, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40];
        assert_eq!(reading(&answer).ok(), Some(245));
        answer[18] = 0;
        let trouble = reading(&answer).err().unwrap();
        assert!(trouble.reason.contains("does not measure") && !trouble.forever);
        assert!(reading(&[0xc0]).is_err_and(|busy| !busy.forever));
        assert!(reading(&[0xc1]).is_err_and(|unknown| unknown.forever));
        answer[2] = 0;
        assert!(reading(&answer).is_err_and(|without_meter| without_meter.forever));
    }

    #[test]
    fn power_between_two_samples_and_none_where_no_answer_came() {
        let text = |energy: u64, time: u64| format!("@bmc\nenergy_uj {energy} measured_us {time}\n");
        let values = between(&SOURCE, &text(0, 0), &text(500_000_000, 2_000_000), 0.1);
        assert_eq!(values["energy.bmc"], Some(250.0), "by its own times");
        assert_eq!(between(&SOURCE, &text(7, 9), &text(7, 9), 0.1)["energy.bmc"], None);
    }
}
