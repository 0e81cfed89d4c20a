//! A command of which nothing is known.

use super::{Adapter, Kind};

pub(super) struct Plain;

impl Adapter for Plain {
    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    fn packages(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    fn primary(&self) -> &'static str {
        "time"
    }

    fn kinds(&self) -> &'static [Kind] {
        &[]
    }

    fn additions(&self, _: &[String]) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, _: &[u8], _: &[u8]) -> Result<Vec<(String, f64)>, String> {
        Ok(Vec::new())
    }
}
