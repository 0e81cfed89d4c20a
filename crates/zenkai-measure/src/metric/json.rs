//! A number in JSON, found without keeping anything else of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer as Json;

/// Steps of a path.
const DEPTH: usize = 32;
/// How many lines may look like the beginning of JSON and be none.
const STARTS: usize = 64;

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
    /// Part of a JSON pointer, which does not say which of the two it is.
    Either(String),
}

/// Where a number stands in a JSON text: `jobs[0].read.iops`, `clat_ns.percentile["99.000000"]`, or a JSON pointer
/// (RFC 6901), `/jobs/0/read/iops`.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

impl JsonPath {
    /// Reads a path, without the `json:` before it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let steps = match text.strip_prefix('/') {
            Some(rest) => {
                rest.split('/').map(|part| Step::Either(part.replace("~1", "/").replace("~0", "~"))).collect()
            }
            None => dotted(text).ok_or_else(|| {
                format!("json:{text} is no path; write json:jobs[0].read.iops or json:/jobs/0/read/iops")
            })?,
        };
        if steps.len() > DEPTH {
            return Err(format!("json:{text} has more than {DEPTH} steps"));
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn name(&self) -> String {
        format!("json:{}", self.text)
    }

    /// The number there in the last JSON value of `output` that has one there. Text before and between, such as
    /// warnings, is left out.
    pub(super) fn read(&self, output: &[u8]) -> Result<f64, String> {
        let mut rest = output;
        let mut found = None;
        let mut values = 0;
        let mut failure = None;
        let mut starts = 0;
        while let Some(start) = start(rest) {
            rest = rest.get(start..).unwrap_or_default();
            let mut json = Json::from_slice(rest).into_iter::<IgnoredAny>();
            if matches!(json.next(), Some(Ok(_))) {
                let (value, after) = rest.split_at(json.byte_offset().min(rest.len()));
                values += 1;
                let walk = Walk { steps: &self.steps };
                // A number too large for a float is not there, but an earlier one is not the last.
                let there = walk.deserialize(&mut Json::from_slice(value));
                found = there.map_err(|error| format!("json:{}: {error}", self.text))?.or(found);
                rest = after;
                continue;
            }
            starts += 1;
            if starts == STARTS {
                failure = Some("much that begins like JSON and is none");
                break;
            }
            // The line of this start; what follows may still be JSON.
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            rest = rest.get(end..).unwrap_or_default();
        }
        found.ok_or_else(|| match (values, failure) {
            (0, None) => format!("json:{}: the output has no JSON", self.text),
            (0, Some(why)) => format!("json:{}: the output has {why}", self.text),
            _ => format!("json:{}: there is no number at this place", self.text),
        })
    }
}

/// Where the next line begins that starts like an object or an array.
fn start(text: &[u8]) -> Option<usize> {
    let mut line = 0;
    while line < text.len() {
        let rest = text.get(line..)?;
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        if matches!(rest.get(blank), Some(b'{' | b'[')) {
            return Some(line + blank);
        }
        line += rest.iter().skip(blank).position(|byte| *byte == b'\n')? + blank + 1;
    }
    None
}

/// `a.b[0]["c.d"]`
fn dotted(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (key, after) = quoted.split_once("\"]")?;
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
        } else {
            let name = if steps.is_empty() { rest } else { rest.strip_prefix('.')? };
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (key, after) = name.split_at(end);
            if key.is_empty() {
                return None;
            }
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// Goes along the path and looks at nothing else. serde_json bounds the depth (128).
struct Walk<'a> {
    steps: &'a [Step],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<f64>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<f64>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<f64>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Option<f64>, E> {
        Ok(self.steps.is_empty().then_some(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Option<f64>, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Option<f64>, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<f64>, E> {
        Ok(text.trim().parse().ok().filter(|_| self.steps.is_empty()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<f64>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<f64>, A::Error> {
        let wanted = match self.steps.first() {
            Some(Step::Key(key) | Step::Either(key)) => Some(key),
            _ => None,
        };
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if Some(&key) == wanted {
                found = map.next_value_seed(Walk { steps: self.steps.get(1..).unwrap_or_default() })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<f64>, A::Error> {
        let wanted = match self.steps.first() {
            Some(Step::Index(index)) => Some(*index),
            Some(Step::Either(text)) => text.parse().ok(),
            _ => None,
        };
        let mut found = None;
        for index in 0_usize.. {
            if Some(index) == wanted {
                let Some(value) =
                    list.next_element_seed(Walk { steps: self.steps.get(1..).unwrap_or_default() })?
                else {
                    break;
                };
                found = value;
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, text: &str) -> Result<f64, String> {
        JsonPath::parse(path)?.read(text.as_bytes())
    }

    #[test]
    fn paths_lead_to_numbers() {
        let text = r#"{"a": {"b.c": [1, {"d": "2.5"}], "e/f": -3, "n": null, "t": true}, "a2": 1e3}"#;
        for (path, value) in [
            ("a2", 1000.0),
            (r#"a["b.c"][0]"#, 1.0),
            (r#"a["b.c"][1].d"#, 2.5),
            ("/a/b.c/1/d", 2.5),
            ("/a/e~1f", -3.0),
        ] {
            assert_eq!(read(path, text), Ok(value), "{path}");
        }
        for path in ["a", "a.n", "a.t", "x", "a2.b", r#"a["b.c"][7]"#, r#"a["b.c"].d"#] {
            assert!(read(path, text).unwrap_err().ends_with("no number at this place"), "{path}");
        }
    }

    #[test]
    fn wrong_paths_are_refused() {
        for path in ["", ".", "a..b", "a[x]", "a[", "a[\"b\"", "a[0]b"] {
            assert!(JsonPath::parse(path).unwrap_err().contains("is no path"), "{path}");
        }
        assert!(JsonPath::parse(&"/a".repeat(40)).is_err());
    }

    #[test]
    fn text_around_it_is_left_out() {
        let text = "warning: {x}\n[not json\n{\"v\": 1}\nbetween\n {\n \"v\": 2 }\n{\"w\": 3}\n{\"v\": 4";
        assert_eq!(read("v", text), Ok(2.0));
        assert!(read("v", "a { b").unwrap_err().contains("no JSON"));
        let error = read("v", "{\"v\": 1}\n{\"v\": 1e400}").unwrap_err();
        assert!(error.starts_with("json:v: number out of range"), "{error}");
        assert_eq!(read("[1]", "[5, 6]\n"), Ok(6.0));
        assert!(read("v", &"{\n".repeat(1000)).unwrap_err().contains("begins like JSON"));
        assert!(read("v", &"[".repeat(1_000_000)).is_err());
    }
}
