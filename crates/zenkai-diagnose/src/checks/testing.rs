//! What the checks' own tests share: a small world written out by hand, and what one check says of it.

use zenkai_host::FakeHost;

use crate::{Check, Context, Finding, Judgement};

/// What the check concludes on a complete small world of `(path, content)` pairs.
pub(crate) fn judge<P: AsRef<str>, C: AsRef<str>>(check: &Check, files: &[(P, C)]) -> Judgement {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, content)| (path.as_ref(), content.as_ref())).collect();
    judge_host(check, FakeHost::new(&files), Context::default())
}

/// What the check concludes on a host that needs more than files.
pub(crate) fn judge_host(check: &Check, host: FakeHost, context: Context) -> Judgement {
    (check.run)(&zenkai_facts::observe(&host), context)
}

/// What the check finds.
pub(crate) fn findings<P: AsRef<str>, C: AsRef<str>>(check: &Check, files: &[(P, C)]) -> Vec<Finding> {
    judge(check, files).findings
}
