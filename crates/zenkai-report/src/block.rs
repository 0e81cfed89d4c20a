//! The pieces a report is made of.

use zenkai_diagnose::Impact;

/// How a line stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Nothing wrong.
    Good,
    /// Something wrong, this much.
    Bad(Impact),
    /// Neither.
    Plain,
}

/// A named part of a finding, one line or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// `evidence`, `fix`, `risk` …
    pub label: &'static str,
    /// The lines.
    pub lines: Vec<String>,
}

/// A piece of a report. All text is plain; renderers escape what their output needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph, wrapped to the page.
    Text(String),
    /// Lines with a short name in front: one verdict per resource.
    Verdicts(Vec<(Mark, String, String)>),
    /// One finding.
    Finding {
        /// How bad.
        impact: Impact,
        /// The check's id and the subject.
        title: String,
        /// What is wrong.
        what: String,
        /// The rest.
        fields: Vec<Field>,
    },
    /// Something named, and lines about it below, indented.
    Item {
        /// The name.
        title: String,
        /// The lines.
        lines: Vec<String>,
    },
    /// Rows of columns; the last column takes the room that is left.
    Table(Vec<Vec<String>>),
    /// Text that keeps its line breaks.
    Verbatim(String),
}
