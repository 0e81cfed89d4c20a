//! `zenkai`: finds out why a Linux server is not running at full speed.

use std::{io::Write as _, process::ExitCode};

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let code = zenkai::cli::run(std::env::args_os(), &mut out, &mut err);
    // A reader that went away (`zenkai facts | head`) is no failure of ours.
    let _ = out.flush();
    code.into()
}
