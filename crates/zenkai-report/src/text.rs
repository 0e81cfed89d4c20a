//! Blocks as text for a terminal, a pipe or a mail.

use std::fmt::Write as _;

use zenkai_diagnose::Impact;
use zenkai_host::is_hidden;

use crate::{Block, Field, Mark};

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns; longer paragraphs are wrapped.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub colour: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 100, colour: false }
    }
}

/// ANSI codes; the terminal's own palette decides how they look.
const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";

fn impact_code(impact: Impact) -> &'static str {
    match impact {
        Impact::Large => "1;31",
        Impact::Moderate => "1;33",
        Impact::Small => "36",
        Impact::Depends => "2",
    }
}

/// Renders blocks. Control characters in the data, which may come from a hostile machine, are made visible
/// instead of reaching the terminal.
pub fn render(blocks: &[Block], style: Style) -> String {
    let mut page = Page { out: String::new(), style };
    for block in blocks {
        page.block(block);
    }
    page.out
}

struct Page {
    out: String,
    style: Style,
}

impl Page {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => {
                let text = self.paint(BOLD, &printable(text));
                self.line(&format!("\n{text}"));
            }
            Block::Text(text) => self.paragraph("", "", &printable(text)),
            Block::Verdicts(rows) => self.verdicts(rows),
            Block::Finding { impact, title, what, fields } => self.finding(*impact, title, what, fields),
            Block::Item { title, lines } => {
                self.paragraph("  ", "  ", &printable(title));
                for line in lines {
                    self.paragraph("      ", "      ", &printable(line));
                }
            }
            Block::Table(rows) => self.table(rows),
            Block::Verbatim(text) => {
                for line in text.lines() {
                    self.line(&printable(line));
                }
            }
        }
    }

    fn verdicts(&mut self, rows: &[(Mark, String, String)]) {
        let widest = rows.iter().map(|(_, name, _)| name.chars().count()).max().unwrap_or(0);
        for (mark, name, sentence) in rows {
            let code = match mark {
                Mark::Good => GREEN,
                Mark::Bad(impact) => impact_code(*impact),
                Mark::Plain => DIM,
            };
            let name = format!("{:<widest$}", printable(name));
            let first = format!("  {}  ", self.paint(code, &name));
            let rest = " ".repeat(widest + 4);
            self.paragraph_with(&first, widest + 4, &rest, &printable(sentence));
        }
    }

    fn finding(&mut self, impact: Impact, title: &str, what: &str, fields: &[Field]) {
        let word = format!("{:<8}", impact.to_string());
        let word = self.paint(impact_code(impact), &word);
        let title = self.paint(BOLD, &printable(title));
        self.line(&format!("\n{word}  {title}"));
        self.paragraph("          ", "          ", &printable(what));
        for Field { label, lines } in fields {
            let label = format!("{label:<8}");
            for (index, line) in lines.iter().enumerate() {
                let shown = if index == 0 { self.paint(DIM, &label) } else { " ".repeat(8) };
                let rest = " ".repeat(20);
                self.paragraph_with(&format!("          {shown}  "), 20, &rest, &printable(line));
            }
        }
    }

    /// A table whose last column is wrapped. Where that would leave it less than a third of the line, a long first
    /// column, or else the last one, has lines of its own.
    fn table(&mut self, rows: &[Vec<String>]) {
        let shown = |row: &Vec<String>| row.iter().map(|cell| printable(cell)).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(shown).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let Some((last, others)) = widths.split_last() else { return };
        let third = self.style.width / 3;
        let taken = others.iter().map(|width| width + 2).sum::<usize>() + (*last).min(third) + 2;
        let is_wide = taken > self.style.width;
        let first_apart = is_wide && columns > 2 && widths.first().is_some_and(|first| *first > third);
        for row in &rows {
            let Some((last, mut cells)) = row.split_last() else { continue };
            let (mut head, mut widths) = (String::from("  "), widths.as_slice());
            if let ([first, more @ ..], true) = (cells, first_apart) {
                self.paragraph("  ", "  ", first);
                (head, cells, widths) = (" ".repeat(6), more, &widths[1..]);
            }
            for (cell, width) in cells.iter().zip(widths) {
                // Writing to a String cannot fail.
                let _ = write!(head, "{cell:<width$}  ");
            }
            if is_wide && !first_apart && !cells.is_empty() {
                self.line(&head);
                head = " ".repeat(6);
            }
            let indent = " ".repeat(head.chars().count());
            self.paragraph(&head, &indent, last);
        }
    }

    fn paragraph(&mut self, first: &str, rest: &str, text: &str) {
        self.paragraph_with(first, first.chars().count(), rest, text);
    }

    /// Wraps `text`. `first` starts the first line and is `shown` columns wide on screen, `rest` starts the others.
    fn paragraph_with(&mut self, first: &str, shown: usize, rest: &str, text: &str) {
        let mut line = first.to_owned();
        let mut used = shown;
        let mut fresh = true;
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if !fresh && used + 1 + length > self.style.width {
                self.line(&line);
                rest.clone_into(&mut line);
                used = rest.chars().count();
                fresh = true;
            }
            if !fresh {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
            fresh = false;
        }
        self.line(&line);
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

/// Text with control and format characters spelled out, so that data cannot steer the terminal: a bidirectional override
/// can make a path read as another one.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => out.push(' '),
            _ if is_hidden(letter) => out.extend(letter.escape_default()),
            _ => out.push(letter),
        }
    }
    out
}

/// The same for a message of several lines: line breaks stay, and what follows one is indented, so that no line of it
/// looks like one of ours.
pub fn printable_lines(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut out = printable(lines.next().unwrap_or_default());
    for line in lines {
        out.push_str(if line.starts_with("  ") { "\n" } else { "\n  " });
        out.push_str(&printable(line));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_steer_the_terminal() {
        let blocks = [Block::Text("a\x1b[2Jb\u{202e}c\nd".to_owned())];
        assert_eq!(render(&blocks, Style::default()), "a\\u{1b}[2Jb\\u{202e}c\\nd\n");
        assert_eq!(printable("a\u{200b}b\u{feff}\u{2028}ü日"), "a\\u{200b}b\\u{feff}\\u{2028}ü日");
    }

    #[test]
    fn long_lines_wrap_under_themselves() {
        let blocks = [Block::Table(vec![
            vec!["a".into(), "one two three".into()],
            vec!["long".into(), "four".into()],
        ])];
        let text = render(&blocks, Style { width: 16, colour: false });
        assert_eq!(text, "  a     one two\n        three\n  long  four\n");
    }

    #[test]
    fn a_narrow_terminal_leaves_every_column_readable() {
        let row = |first: &str, last: &str| vec![first.into(), "6".into(), last.into()];
        let long = "cmd:fio --name=r --filename=data";
        let text = render(
            &[Block::Table(vec![row("arm", "spread"), row(long, "91.9 %")])],
            Style { width: 40, colour: false },
        );
        assert_eq!(text, format!("  arm\n      6  spread\n  {long}\n      6  91.9 %\n"));
        let rows = vec![vec!["A".into(), "20 letters of a name".into(), "one two three four five".into()]];
        let text = render(&[Block::Table(rows)], Style { width: 30, colour: false });
        assert_eq!(text, "  A  20 letters of a name\n      one two three four five\n");
        // What is spelled out takes the room that it takes.
        let rows = vec![vec!["\u{202e}".into(), "x".into()], vec!["a".into(), "y".into()]];
        let text = render(&[Block::Table(rows)], Style::default());
        assert_eq!(text, "  \\u{202e}  x\n  a         y\n");
    }

    #[test]
    fn colour_is_only_paint() {
        let blocks = [
            Block::Heading("h".into()),
            Block::Verdicts(vec![(Mark::Bad(Impact::Large), "CPU".into(), "slow".into())]),
            Block::Finding {
                impact: Impact::Small,
                title: "t".into(),
                what: "w".into(),
                fields: vec![Field { label: "fix", lines: vec!["x".into()] }],
            },
        ];
        let plain = render(&blocks, Style { width: 80, colour: false });
        let painted = render(&blocks, Style { width: 80, colour: true });
        let mut bare = painted.clone();
        while let Some(start) = bare.find('\x1b') {
            let end = bare[start..].find('m').unwrap() + start;
            bare.replace_range(start..=end, "");
        }
        assert_ne!(plain, painted);
        assert_eq!(bare, plain);
    }
}
