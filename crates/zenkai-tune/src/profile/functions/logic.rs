//! Assertions: a profile that must not be used unless its variables are set.

use super::{Answer, Functions, Refusal};

pub(super) fn assertion(_: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    compare(arguments, true)
}

pub(super) fn assertion_non_equal(_: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    compare(arguments, false)
}

/// An assertion that holds gives no text either: what is written stays.
fn compare(arguments: &[String], must_be_equal: bool) -> Answer {
    match arguments {
        [text, left, right] if (left == right) != must_be_equal => Err(Refusal::Assertion(text.clone())),
        _ => Err(Refusal::Holds),
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::profile::functions::testing::call;

    #[test]
    fn assertions() {
        let host = FakeHost::new(&[]);
        assert_eq!(call(&host, None, "assertion:must be 1:1:2"), "!!must be 1");
        assert_eq!(call(&host, None, "assertion:must be 1:1:1"), "holds");
        assert_eq!(call(&host, None, "assertion_non_equal:set it::"), "!!set it");
        assert_eq!(call(&host, None, "assertion_non_equal:set it:1:"), "holds");
    }
}
