//! One file that needs nothing else.

use super::Experiment;

/// An experiment as a page.
pub fn experiment_html(experiment: &Experiment) -> String {
    let _ = experiment;
    String::new()
}
