//! The shell library that profiles' scripts read, where no tuned has brought it.

use zenkai_host::{Act, Knob};

use crate::{Scene, Want, When, Wish};

/// Where scripts look for it.
const PATH: &str = "/usr/lib/tuned/functions";
/// Ours, which has the functions that scripts call.
const TEXT: &str = include_str!("../../../packaging/functions");
/// A script longer than this is not searched.
const SCRIPT_LIMIT: usize = 1 << 20;

/// Puts the library before the first script that reads it, where there is none: as a file of the transaction, so that
/// the plan shows it, and undoing takes it away after the last script has used it. One that is there already is left
/// as it is; one of ours stays wanted.
pub(crate) fn provide(scene: &Scene, wishes: &mut Vec<Wish>) {
    let Some(first) = wishes.iter().position(|wish| reads_it(scene, wish)) else { return };
    let there = scene.host.read(PATH);
    let wanted = match &there {
        Ok(content) => content == TEXT.as_bytes(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !wanted {
        return;
    }
    let script = &wishes[first];
    let library = Wish {
        origin: script.origin.clone(),
        unit: script.unit.clone(),
        plugin: script.plugin.clone(),
        option: script.option.clone(),
        device: None,
        asked: "the functions that scripts of profiles call".to_owned(),
        want: Want::Set { knob: Knob::File(PATH.to_owned()), to: TEXT.into(), when: When::Now },
        risk: None,
    };
    wishes.insert(first, library);
}

fn reads_it(scene: &Scene, wish: &Wish) -> bool {
    let Want::Run { act: Act::Script { path, .. }, .. } = &wish.want else { return false };
    let script = scene.host.read(path).unwrap_or_default();
    script.len() <= SCRIPT_LIMIT && script.windows(PATH.len()).any(|part| part == PATH.as_bytes())
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;
    use crate::profile::Origin;

    fn wish(path: &str) -> Wish {
        let act = Act::Script { path: path.to_owned(), arguments: Vec::new(), environment: Vec::new() };
        Wish {
            origin: Origin::Line { file: "p".to_owned(), line: 3 },
            unit: "script".to_owned(),
            plugin: "script".to_owned(),
            option: "script".to_owned(),
            device: None,
            asked: path.to_owned(),
            want: Want::Run { act, undo: None, verify: None },
            risk: None,
        }
    }

    fn provided(host: &FakeHost) -> Vec<Wish> {
        let mut wishes = vec![wish("/plain.sh"), wish("/reads.sh"), wish("/reads.sh")];
        provide(&Scene::new(host, true), &mut wishes);
        wishes
    }

    #[test]
    fn it_comes_before_the_first_script_that_reads_it() {
        let host = FakeHost::new(&[
            ("/plain.sh", "#!/bin/sh\n"),
            ("/reads.sh", "#!/bin/sh\n. /usr/lib/tuned/functions\nprocess $@\n"),
        ]);
        let wishes = provided(&host);
        assert_eq!(wishes.len(), 4);
        assert_eq!(wishes[1].knob(), Some(&Knob::File(PATH.to_owned())));
        // Applied once, it is still wanted: a switch to another profile with scripts must not take it away.
        assert_eq!(provided(&host.file(PATH, TEXT)).len(), 4);
    }

    #[test]
    fn what_tuned_brought_stays() {
        let host = FakeHost::new(&[("/reads.sh", ". /usr/lib/tuned/functions\n"), (PATH, "another one\n")]);
        assert_eq!(provided(&host).len(), 3);
        assert_eq!(provided(&FakeHost::new(&[("/reads.sh", "exit 0\n")])).len(), 3);
    }
}
