//! Facts as a tree of names and values in which every reading still knows where it came from.
//!
//! Facts are structures, which is right for checks; a comparison of two machines wants to walk over all of them and to
//! name what differs. The tree is made by serde, so that a new field is in it without anybody thinking of it:
//! [`Observed`](crate::Observed) hands its source over to serializers that are not for people to read, and only here.

use std::borrow::Cow;

use serde::{
    Serialize,
    ser::{
        self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::{Error, Value};

use crate::Reason;

/// The name of the structure that a known reading is, for this serializer.
pub(crate) const READ: &str = "$read";
/// The same for a reading without a value.
pub(crate) const MISSING: &str = "$missing";

/// One node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Nothing, a switch, a number or a text.
    Scalar(Value),
    /// Several of a kind.
    List(Vec<Node>),
    /// Named parts, in the order of the structure.
    Map(Vec<(Cow<'static, str>, Node)>),
    /// A value with the path or query it was read from.
    Read {
        /// The path or query.
        source: String,
        /// What was read.
        value: Box<Node>,
    },
    /// A value that is not there.
    Missing {
        /// The path or query it was looked for at.
        source: String,
        /// Why there is none.
        reason: Reason,
    },
}

impl Node {
    /// The tree of facts, or of a part of them. It fails only where serde would, such as a map with keys that are no
    /// text.
    pub fn of(value: &impl Serialize) -> Result<Self, Error> {
        value.serialize(Builder)
    }

    /// The part called `name`, seen through readings.
    pub fn get(&self, name: &str) -> Option<&Node> {
        match self {
            Self::Map(parts) => parts.iter().find(|(part, _)| part == name).map(|(_, node)| node),
            Self::Read { value, .. } => value.get(name),
            Self::Scalar(_) | Self::List(_) | Self::Missing { .. } => None,
        }
    }

    /// The elements of a list, seen through a reading; none for anything else.
    pub fn items(&self) -> &[Node] {
        match self {
            Self::List(items) => items,
            Self::Read { value, .. } => value.items(),
            Self::Scalar(_) | Self::Map(_) | Self::Missing { .. } => &[],
        }
    }

    /// A text, seen through a reading.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(Value::String(text)) => Some(text),
            Self::Read { value, .. } => value.text(),
            _ => None,
        }
    }

    /// The same as plain JSON: sources are left out where there is a value.
    pub fn into_value(self) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::List(items) => Value::Array(items.into_iter().map(Self::into_value).collect()),
            Self::Map(parts) => Value::Object(
                parts.into_iter().map(|(name, node)| (name.into_owned(), node.into_value())).collect(),
            ),
            Self::Read { value, .. } => value.into_value(),
            Self::Missing { source, reason } => {
                let mut map = serde_json::Map::new();
                map.insert("unavailable".to_owned(), reason.word().into());
                map.insert("source".to_owned(), source.into());
                if let Some(detail) = reason.detail() {
                    map.insert("detail".to_owned(), detail.into());
                }
                Value::Object(map)
            }
        }
    }

    fn into_text(self) -> Option<String> {
        match self {
            Self::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// Makes [`Node`]s; it says that it is not for people, which is how readings know it.
struct Builder;

/// A list or the parts of a structure in the making.
struct Parts {
    /// The enum variant that this is the content of.
    variant: Option<&'static str>,
    /// What kind of structure it is: [`READ`], [`MISSING`], or any other.
    name: &'static str,
    key: Option<Cow<'static, str>>,
    content: Vec<(Cow<'static, str>, Node)>,
    items: Vec<Node>,
}

impl Parts {
    /// A list with room for this many.
    #[inline(never)]
    fn list_of(variant: Option<&'static str>, count: usize) -> Self {
        Self { variant, name: "", key: None, content: Vec::new(), items: Vec::with_capacity(count) }
    }

    /// A structure with room for this many parts.
    #[inline(never)]
    fn structure(name: &'static str, variant: Option<&'static str>, count: usize) -> Self {
        Self { variant, name, key: None, content: Vec::with_capacity(count), items: Vec::new() }
    }

    fn add(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.push(Cow::Borrowed(key), value.serialize(Builder))
    }

    // Never inlined, as the others here: they would be copied into every structure of the facts.
    #[inline(never)]
    fn push(&mut self, key: Cow<'static, str>, node: Result<Node, Error>) -> Result<(), Error> {
        self.content.push((key, node?));
        Ok(())
    }

    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.item(value.serialize(Builder))
    }

    #[inline(never)]
    fn item(&mut self, node: Result<Node, Error>) -> Result<(), Error> {
        self.items.push(node?);
        Ok(())
    }

    #[inline(never)]
    fn list(self) -> Node {
        wrap(self.variant, Node::List(self.items))
    }

    #[inline(never)]
    fn finish(self) -> Node {
        let mut parts = self.content;
        let mut take = |name: &str| {
            let at = parts.iter().position(|(part, _)| part == name)?;
            Some(parts.swap_remove(at).1)
        };
        match self.name {
            READ => {
                if let (Some(source), Some(value)) = (take("source"), take("value")) {
                    return Node::Read {
                        source: source.into_text().unwrap_or_default(),
                        value: Box::new(value),
                    };
                }
            }
            MISSING => {
                let mut text = |name| take(name).and_then(Node::into_text).unwrap_or_default();
                let (source, word, detail) = (text("source"), text("word"), text("detail"));
                return Node::Missing { source, reason: Reason::from_word(&word, detail) };
            }
            _ => {}
        }
        wrap(self.variant, Node::Map(parts))
    }
}

fn wrap(variant: Option<&'static str>, node: Node) -> Node {
    match variant {
        Some(name) => Node::Map(vec![(Cow::Borrowed(name), node)]),
        None => node,
    }
}

macro_rules! scalars {
    ($($method:ident: $kind:ty),* $(,)?) => {
        $(fn $method(self, value: $kind) -> Result<Node, Error> {
            Ok(Node::Scalar(value.into()))
        })*
    };
}

impl ser::Serializer for Builder {
    type Ok = Node;
    type Error = Error;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    scalars!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_str: &str,
    );

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_char(self, value: char) -> Result<Node, Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Node, Error> {
        Ok(Node::List(value.iter().map(|byte| Node::Scalar((*byte).into())).collect()))
    }

    fn serialize_none(self) -> Result<Node, Error> {
        Ok(Node::Scalar(Value::Null))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Node, Error> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Node, Error> {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Node, Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Node, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Node, Error> {
        Ok(wrap(Some(variant), value.serialize(self)?))
    }

    fn serialize_seq(self, count: Option<usize>) -> Result<Parts, Error> {
        Ok(Parts::list_of(None, count.unwrap_or(0)))
    }

    fn serialize_tuple(self, count: usize) -> Result<Parts, Error> {
        Ok(Parts::list_of(None, count))
    }

    fn serialize_tuple_struct(self, _: &'static str, count: usize) -> Result<Parts, Error> {
        Ok(Parts::list_of(None, count))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Parts, Error> {
        Ok(Parts::list_of(Some(variant), count))
    }

    fn serialize_map(self, count: Option<usize>) -> Result<Parts, Error> {
        Ok(Parts::structure("", None, count.unwrap_or(0)))
    }

    fn serialize_struct(self, name: &'static str, count: usize) -> Result<Parts, Error> {
        Ok(Parts::structure(name, None, count))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        count: usize,
    ) -> Result<Parts, Error> {
        Ok(Parts::structure("", Some(variant), count))
    }
}

macro_rules! lists {
    ($($kind:ident $method:ident),* $(,)?) => {
        $(impl $kind for Parts {
            type Ok = Node;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<Node, Error> {
                Ok(self.list())
            }
        })*
    };
}

lists!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
);

macro_rules! structures {
    ($($kind:ident),* $(,)?) => {
        $(impl $kind for Parts {
            type Ok = Node;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.add(key, value)
            }

            fn end(self) -> Result<Node, Error> {
                Ok(self.finish())
            }
        })*
    };
}

structures!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Parts {
    type Ok = Node;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(match key.serialize(Builder)? {
            Node::Scalar(Value::String(text)) => Cow::Owned(text),
            Node::Scalar(other) => Cow::Owned(other.to_string()),
            _ => return Err(ser::Error::custom("a key of a map is no text")),
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().unwrap_or_default();
        self.push(key, value.serialize(Builder))
    }

    fn end(self) -> Result<Node, Error> {
        Ok(self.finish())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use zenkai_host::FakeHost;

    use super::*;
    use crate::Observed;

    #[derive(Serialize)]
    struct Sample {
        governor: Observed<String>,
        boost: Observed<bool>,
        by_number: BTreeMap<u32, Option<f32>>,
        kind: Kind,
        tuple: (u8, char),
    }

    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Plain,
        Text(String),
        Named { name: u64 },
    }

    fn sample(kind: Kind) -> Sample {
        Sample {
            governor: Observed::known("/g", "powersave".to_owned()),
            boost: Observed::unavailable("/b", Reason::NotApplicable("no turbo".to_owned())),
            by_number: BTreeMap::from([(7, Some(0.5)), (8, None)]),
            kind,
            tuple: (1, 'x'),
        }
    }

    #[test]
    fn readings_keep_their_source() {
        let tree = Node::of(&sample(Kind::Plain)).unwrap();
        assert!(matches!(tree.get("governor"), Some(Node::Read { source, .. }) if source == "/g"));
        assert_eq!(tree.get("governor").and_then(Node::text), Some("powersave"));
        let reason = Reason::NotApplicable("no turbo".to_owned());
        assert_eq!(tree.get("boost"), Some(&Node::Missing { source: "/b".to_owned(), reason }));
        assert_eq!(tree.get("tuple").map_or(0, |tuple| tuple.items().len()), 2);
    }

    #[test]
    fn the_plain_form_is_what_serde_writes() {
        for kind in [Kind::Plain, Kind::Text("a".to_owned()), Kind::Named { name: 3 }] {
            let sample = sample(kind);
            assert_eq!(Node::of(&sample).unwrap().into_value(), serde_json::to_value(&sample).unwrap());
        }
        let facts = crate::observe(&FakeHost::default());
        assert_eq!(Node::of(&facts).unwrap().into_value(), serde_json::to_value(&facts).unwrap());
    }
}
