//! Tuning: a profile, or the remedy of a finding, becomes wishes; wishes and the machine make a plan; a transaction
//! applies the plan and keeps a journal that can undo it.

mod setting;

pub mod profile;

pub use setting::Setting;
