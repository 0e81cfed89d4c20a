//! `[variables]`: defined in their order, each with those before it.

use std::io;

use zenkai_host::Host;

use super::{
    Expander, Note, OptionValue, Origin, ProfileError,
    expand::is_word,
    ini::{self, Dialect},
    load::{Options, absolute},
};

/// All variables of a profile together cannot be longer.
const TEXT_LIMIT: usize = 4 << 20;

struct Definer<'d, 'h> {
    expander: &'d mut Expander<'h>,
    notes: &'d mut Vec<Note>,
    defined: Options,
    size: usize,
}

/// Defines the variables of a merged `[variables]` section; the key `include` reads a file of them.
pub(super) fn define(
    host: &dyn Host,
    definitions: Options,
    expander: &mut Expander<'_>,
    notes: &mut Vec<Note>,
) -> Result<Options, ProfileError> {
    let mut definer = Definer { expander, notes, defined: Options::new(), size: 0 };
    for (key, value) in definitions {
        if key == "include" {
            definer.include(host, &value)?;
        } else {
            definer.define(&key, &value.raw, value.origin)?;
        }
    }
    Ok(definer.defined)
}

impl Definer<'_, '_> {
    fn define(&mut self, name: &str, raw: &str, origin: Origin) -> Result<(), ProfileError> {
        if name.is_empty() || !name.chars().all(is_word) {
            let text = format!("`{}` is no name for a variable; passed over", name.escape_debug());
            self.notes.push(Note { origin, text });
            return Ok(());
        }
        let expanded = self.expander.expand(raw);
        if let Some(text) = expanded.failed_assertion {
            return Err(ProfileError::Assertion { origin, text });
        }
        self.notes.extend(expanded.notes.into_iter().map(|text| Note { origin: origin.clone(), text }));
        self.size += expanded.text.len();
        if self.size > TEXT_LIMIT {
            let message = format!("the variables grow over {TEXT_LIMIT} bytes");
            return Err(ProfileError::BadValue { origin, message });
        }
        self.expander.define(name, expanded.text.clone());
        let value = OptionValue { raw: expanded.text, origin };
        match self.defined.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.defined.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// A file that is missing or cannot be parsed is noted, as in tuned; one that may not be read is an error.
    fn include(&mut self, host: &dyn Host, value: &OptionValue) -> Result<(), ProfileError> {
        let path = self.expander.expand(&value.raw).text;
        let directory = match &value.origin {
            Origin::Line { file, .. } => file.rsplit_once('/').map_or("", |(directory, _)| directory),
            _ => "",
        };
        let file = absolute(directory, &path);
        let content = match host.read(&file) {
            Ok(content) => content,
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied) => {
                return Err(ProfileError::Unreadable { file, error: error.to_string() });
            }
            Err(error) => {
                let text = format!("the variables in `{}` are not read: {error}", file.escape_debug());
                self.notes.push(Note { origin: value.origin.clone(), text });
                return Ok(());
            }
        };
        let ini = match ini::parse(&file, &content, Dialect::Headerless) {
            Ok(ini) => ini,
            Err(error) => {
                let text = format!("its variables are not read: {}", error.message);
                let origin = Origin::Line { file: error.file, line: error.line };
                self.notes.push(Note { origin, text });
                return Ok(());
            }
        };
        for entry in ini.sections.iter().flat_map(|section| &section.entries) {
            if let Some(raw) = &entry.value {
                self.define(&entry.key, raw, Origin::Line { file: file.clone(), line: entry.line })?;
            }
        }
        Ok(())
    }
}
