//! A choice by regular expression or by the kind of machine.

use super::{Answer, Functions, Refusal, misc, unexpanded};
use crate::profile::{
    regex::{Flags, search},
    virt,
};

pub(super) fn regex_search_ternary(_: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    let [text, pattern, yes, no] = arguments else { return unexpanded("four arguments are wanted") };
    let found = search(pattern, text, Flags::default()).map_err(Refusal::Unexpanded)?;
    Ok(if found { yes } else { no }.clone())
}

pub(super) fn cpuinfo_check(on: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    let content = on.host.read("/proc/cpuinfo");
    let content = content.map_err(|error| Refusal::Unexpanded(format!("/proc/cpuinfo: {error}")))?;
    first_found(&String::from_utf8_lossy(&content), arguments)
}

pub(super) fn lscpu_check(on: &Functions<'_>, arguments: &[String], _: &mut Vec<String>) -> Answer {
    first_found(&misc::run(on, &["lscpu".to_owned()])?, arguments)
}

/// Pairs of expression and answer; a last one without a partner is the answer when nothing was found.
fn first_found(text: &str, arguments: &[String]) -> Answer {
    for pair in arguments.chunks(2) {
        match pair {
            [pattern, answer] => {
                let flags = Flags { multiline: true, ..Flags::default() };
                if search(pattern, text, flags).map_err(Refusal::Unexpanded)? {
                    return Ok(answer.clone());
                }
            }
            [otherwise] => return Ok(otherwise.clone()),
            _ => {}
        }
    }
    Ok(String::new())
}

/// The second answer also where it cannot be told.
pub(super) fn virt_check(on: &Functions<'_>, arguments: &[String], notes: &mut Vec<String>) -> Answer {
    let [guest, metal] = arguments else { return unexpanded("two arguments are wanted") };
    Ok(match virt::words(on.host) {
        Ok(words) if !words.is_empty() => guest.clone(),
        Ok(_) => metal.clone(),
        Err(why) => {
            notes.push(format!("function `virt_check`: {why}; taken as no virtual machine"));
            metal.clone()
        }
    })
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use crate::profile::functions::testing::call;

    #[test]
    fn choices() {
        let host = FakeHost::new(&[
            ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu aes hypervisor\n"),
            ("/proc/1/comm", "systemd\n"),
        ]);
        for (text, wanted) in [
            ("regex_search_ternary:abc:^b:1:2", "2"),
            ("regex_search_ternary:abc:b:1:2", "1"),
            ("cpuinfo_check:^vendor_id.*AMD$:amd:^vendor_id.*Intel$:intel", "intel"),
            ("cpuinfo_check:x86:1:other", "other"),
            ("cpuinfo_check:zzz:1", ""),
            ("virt_check:guest:metal", "guest"),
        ] {
            assert_eq!(call(&host, None, text), wanted, "{text}");
        }
        assert!(call(&host, None, "regex_search_ternary:a:(:1:2").contains("no regular expression"));
        assert!(call(&host, None, "lscpu_check:a:b").contains("not done here"));
        assert_eq!(call(&FakeHost::new(&[]), None, "virt_check:guest:metal"), "metal");
    }
}
