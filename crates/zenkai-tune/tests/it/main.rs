//! Tests of the profile language against the real tuned.
#![expect(clippy::disallowed_methods, reason = "tests read the oracle's files and run it")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod merge;
mod oracle;
mod random;
