//! Writing reports.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use zenkai_report::{Block, Style, json_text, render};

/// Narrower than this, tables become unreadable; wider, sentences do.
const WIDTH_RANGE: std::ops::RangeInclusive<u16> = 60..=110;

pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Colours only for a person at a terminal who did not refuse them (https://no-color.org).
#[expect(clippy::disallowed_methods, reason = "the program reads its environment here, once")]
fn style() -> Style {
    let default = Style::default();
    if !is_terminal() {
        return default;
    }
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
    let width = if columns == 0 {
        default.width
    } else {
        columns.clamp(*WIDTH_RANGE.start(), *WIDTH_RANGE.end()).into()
    };
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    Style { width, colour: !refused && !dumb }
}

pub(super) fn write_blocks(out: &mut dyn Write, blocks: &[Block]) -> io::Result<()> {
    out.write_all(render(blocks, style()).as_bytes())
}

pub(super) fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(json_text(value)?.as_bytes())?;
    out.write_all(b"\n")
}
