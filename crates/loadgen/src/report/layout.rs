//! How JSON is laid out: an object per name a line, an array on one line, so that columns stay readable and a
//! difference of two files is small.
//!
//! It must never change a value.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// As JSON, with a line break at its end.
pub fn write(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Lines(PrettyFormatter::new()));
    // Memory takes every byte, and the reports' names are words: neither can be refused.
    value.serialize(&mut serializer).expect("a report can always be written");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

struct Lines(PrettyFormatter<'static>);

impl Formatter for Lines {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        writer.write_all(if is_first { b"" } else { b"," })
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, is_first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn objects_have_lines_and_arrays_have_one() {
        let value = json!({ "a": [1, 2, null], "b": { "c": [] }, "d": [{ "e": 1 }] });
        let text = super::write(&value);
        assert_eq!(
            text,
            "{\n  \"a\": [1,2,null],\n  \"b\": {\n    \"c\": []\n  },\n  \"d\": [{\n    \"e\": 1\n  }]\n}\n"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
