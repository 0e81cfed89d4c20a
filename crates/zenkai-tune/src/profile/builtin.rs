//! The profiles that come with zenkai: the files in `profiles/` at the root of the repository.

/// Each profile's name and the text of its file. Without an installed profile of the same name it is used under its
/// bare name, always under `zenkai/NAME`.
pub static BUILTIN: &[(&str, &str)] = &[];
