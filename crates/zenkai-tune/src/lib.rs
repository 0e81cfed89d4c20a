//! Tuning: a profile, or the remedy of a finding, becomes wishes; wishes and the machine make a plan; a transaction
//! applies the plan and keeps a journal that can undo it.

mod assemble;
mod couplings;
mod library;
mod plan;
mod scene;
mod setting;
mod wish;

pub mod plugins;
pub mod profile;
pub mod transaction;

pub use assemble::{Assigned, assigned, nearest, wishes};
pub use plan::{Plan, State, Step, same};
pub use scene::{Instance, OptionText, Scene};
pub use setting::Setting;
pub use wish::{Fault, Hold, Want, When, Wish};
