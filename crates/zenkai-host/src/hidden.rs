//! Letters that nobody sees.

/// Whether a terminal acts on a letter, or shows nothing in its place: the control characters, and those that order,
/// join, part and mark text (general category Cf of the Unicode Standard, with the two separators of lines and
/// paragraphs, as far as a name could read as another one by them).
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
