//! Lists of quotes: lines of script, and the same as JSON.
//!
//! It owns the lines of one worker, each made once for a version of its value. It must never leave a byte of
//! a value as it is that a script would read as more than text: the crate of live data sees to that.

use foldhash::{HashMap, HashMapExt as _};
use staunch_live::quotes::append_line;
use staunch_live::{TopicName, Value, View};

use super::reply::quoted;
use crate::limits::QUOTE_LINES_MAX;

/// What names of topics of quotes begin with.
const TOPICS: &str = "quotes.";

/// A line that is ready.
#[derive(Debug)]
struct Line {
    topic: TopicName,
    number: u64,
    text: Vec<u8>,
}

/// The lines of one worker, by symbol.
#[derive(Debug)]
pub(crate) struct Quotes {
    prefix: String,
    lines: HashMap<Box<str>, Line>,
}

impl Quotes {
    /// None yet. `prefix` is what names of variables begin with.
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), lines: HashMap::new() }
    }

    /// Appends the line of a symbol. One without a value that all may read has an empty line.
    pub(crate) fn append(&mut self, symbol: &str, view: &View, body: &mut Vec<u8>) {
        if let Some(line) = self.lines.get_mut(symbol)
            && let Some(update) = view.last(&line.topic)
        {
            if line.number != update.number {
                line.number = update.number;
                line.text.clear();
                let value: &[u8] = if update.private { b"" } else { update.value.bytes() };
                append_line(&self.prefix, symbol, value, &mut line.text);
            }
            return body.extend_from_slice(&line.text);
        }
        let topic = TopicName::new(&format!("{TOPICS}{symbol}")).ok();
        let Some((topic, update)) = topic.and_then(|topic| Some((topic.clone(), view.last(&topic)?))) else {
            return append_line(&self.prefix, symbol, b"", body);
        };
        if self.lines.len() >= QUOTE_LINES_MAX {
            self.lines = HashMap::new();
        }
        let value: &[u8] = if update.private { b"" } else { update.value.bytes() };
        let mut text = Vec::new();
        append_line(&self.prefix, symbol, value, &mut text);
        body.extend_from_slice(&text);
        self.lines.insert(symbol.into(), Line { topic, number: update.number, text });
    }

    /// Values of symbols as one JSON object; `null` for a symbol without a value that all may read.
    pub(crate) fn json(symbols: &[&str], view: &View) -> String {
        let mut text = String::from("{");
        for symbol in symbols {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&quoted(symbol));
            text.push(':');
            let topic = TopicName::new(&format!("{TOPICS}{symbol}")).ok();
            let update = topic.and_then(|topic| view.last(&topic)).filter(|update| !update.private);
            match update.map(|update| &update.value) {
                Some(Value::Json(bytes)) => text.push_str(&String::from_utf8_lossy(bytes)),
                Some(Value::Text(bytes) | Value::Binary(bytes)) => {
                    text.push_str(&quoted(&String::from_utf8_lossy(bytes)));
                }
                Some(Value::Gone) | None => text.push_str("null"),
            }
        }
        text.push_str("}\n");
        text
    }
}
