//! What the machine really did under load, when a probe was run.

use zenkai_host::{Query, Reply, probe::Probe};

use crate::{Observed, Reader, Reason};

/// The result of the active probe; [`Reason::NotAsked`] when none was run.
pub fn observe(reader: &Reader<'_>) -> Observed<Probe> {
    let text = reader.query(&Query::Probe, |reply| match reply {
        Reply::Text(text) => Some(text.clone()),
        _ => None,
    });
    match text.reason() {
        Some(Reason::NotRecorded) => {
            let how = "made without a probe; `zenkai capture --probe` adds one";
            Observed::unavailable("probe", Reason::NotAsked(how.to_owned()))
        }
        Some(_) => {
            let how = "`zenkai doctor --probe` loads the machine for three seconds and measures it";
            Observed::unavailable("probe", Reason::NotAsked(how.to_owned()))
        }
        None => text.parse(|text| serde_json::from_str(&text).map_err(|error| error.to_string())),
    }
}
