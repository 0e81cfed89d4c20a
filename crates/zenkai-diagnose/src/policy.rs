//! Site policy: which checks this site accepts, and which it takes more or less seriously.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Impact, checks};

/// `/etc/zenkai/policy.toml`:
///
/// ```toml
/// accept = { cpu-smt-off = "security decision of 2024" }
/// impact = { net-ring-small = "large" }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Check ids that are known and accepted here, each with the reason.
    #[serde(default)]
    pub accept: BTreeMap<String, String>,
    /// Check ids whose impact this site sees differently.
    #[serde(default)]
    pub impact: BTreeMap<String, Impact>,
}

/// Why a policy file was refused.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Not TOML, or not of the shape above; the text names line and column.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A check id that does not exist: a typing error would silently accept nothing.
    #[error("no check is called `{0}`; `zenkai checks` lists them")]
    UnknownCheck(String),
}

impl Policy {
    /// Understands the text of a policy file. Every id must exist.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self = toml::from_str(text)?;
        match policy.accept.keys().chain(policy.impact.keys()).find(|id| checks::find(id).is_none()) {
            Some(unknown) => Err(PolicyError::UnknownCheck(unknown.clone())),
            None => Ok(policy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_must_exist() {
        let good =
            "accept = { cpu-governor-powersave = 'test box' }\nimpact = { cpu-governor-powersave = 'small' }";
        let policy = Policy::parse(good).unwrap();
        assert_eq!(policy.impact["cpu-governor-powersave"], Impact::Small);
        assert!(matches!(Policy::parse("accept = { cpu-goveror = '' }"), Err(PolicyError::UnknownCheck(_))));
        assert!(matches!(Policy::parse("acept = {}"), Err(PolicyError::Syntax(_))));
        assert!(matches!(Policy::parse("impact = { x = 'huge' }"), Err(PolicyError::Syntax(_))));
    }
}
