//! Shell scripts: what boots, builds and cron jobs are made of. Starting programs, mapping libraries, small pipes.

use std::io;
use std::process::{Command, Stdio};

use super::{Bench, Test};

/// Six programs; their output is checked.
const SCRIPT: &str = "export LC_ALL=C
i=0
while [ $i -lt 20 ]; do echo \"$i line $((i * 7919 % 101))\"; i=$((i + 1)); done |
    sort -k 3 -n | tail -n 5 | grep line | cut -d ' ' -f 3 | tr '\\n' ' '
basename /a/b/c.d .d";
const EXPECTED: &[u8] = b"72 82 85 88 91 c\n";

pub(super) struct Shell;

impl Test for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn what(&self) -> &'static str {
        "runs of a script of /bin/sh with six small programs"
    }

    fn run(&self, bench: &Bench) -> io::Result<f64> {
        bench.rate(|times| (0..times).try_for_each(|_| once()))
    }
}

fn once() -> io::Result<()> {
    let ran = sh().args(["-c", SCRIPT]).stdin(Stdio::null()).output()?;
    if ran.status.success() && ran.stdout == EXPECTED {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(io::Error::other(format!("the shell script failed: {}", said.trim())))
}

#[expect(clippy::disallowed_methods, reason = "running a shell is what is measured")]
fn sh() -> Command {
    Command::new("/bin/sh")
}
