//! Texts with variables in double braces: `{{serial}}`, `{{random 1 1000}}`, `{{pick a b c}}` and the like.
//!
//! It owns how they are written and what stands in their place. It must never know which part of a request it
//! makes. Two braces that are meant themselves are written `{{{{`.

use rand::{Rng, RngExt};

use crate::Fault;

/// What is told about the request that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    /// Number of the request in the run.
    pub serial: u64,
    /// Number of the thread.
    pub thread: u32,
    /// Number of the connection.
    pub connection: u32,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
}

/// A text taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Serial,
    Thread,
    Connection,
    UnixMs,
    /// A number, both ends possible.
    Random(u64, u64),
    /// Any of these, each as often as another.
    Pick(Vec<Vec<u8>>),
}

const KNOWN: &str =
    "known are serial, thread, connection, unix_ms, random LOWEST HIGHEST, and pick with its choices";

impl Template {
    /// Takes a text apart. `place` says in faults where the text stands, for instance `the target`.
    ///
    /// # Errors
    /// A variable that is unknown, wrongly written or not closed, with its place.
    pub fn parse(text: &[u8], place: &str) -> Result<Self, Fault> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(found) = find(rest, b"{{") {
            template.push_literal(&rest[..found]);
            rest = &rest[found..];
            if let Some(after) = rest.strip_prefix(b"{{{{") {
                template.push_literal(b"{{");
                rest = after;
                continue;
            }
            if rest.starts_with(b"{{{") {
                // The last two belong together: `{{{serial}}}` is a number in braces.
                template.push_literal(b"{");
                rest = &rest[1..];
            }
            let character = String::from_utf8_lossy(&text[..text.len() - rest.len()]).chars().count() + 1;
            let at = |sentence: String| Fault::new(format!("{place}, character {character}: {sentence}"));
            let end = find(rest, b"}}").ok_or_else(|| {
                at("`{{` is not closed by `}}`; two braces that are meant are written `{{{{`".to_owned())
            })?;
            let inner = String::from_utf8_lossy(&rest[2..end]);
            template.pieces.push(parse_variable(&inner).map_err(at)?);
            rest = &rest[end + 2..];
        }
        template.push_literal(rest);
        Ok(template)
    }

    /// A text in which nothing is replaced.
    pub fn literal(text: &[u8]) -> Self {
        let mut template = Self::default();
        template.push_literal(text);
        template
    }

    /// Appends a text in which nothing is replaced.
    pub fn push_literal(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Literal(before)) => before.extend_from_slice(text),
            _ => self.pieces.push(Piece::Literal(text.to_vec())),
        }
    }

    /// Appends another template.
    pub fn push(&mut self, other: Self) {
        for piece in other.pieces {
            match piece {
                Piece::Literal(text) => self.push_literal(&text),
                piece => self.pieces.push(piece),
            }
        }
    }

    /// Its bytes, when no variable is in it.
    pub fn as_static(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [] => Some(b""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Every text that can come into what is made: literals and choices. Everything else is digits.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|piece| -> Box<dyn Iterator<Item = &[u8]>> {
            match piece {
                Piece::Literal(text) => Box::new(std::iter::once(&text[..])),
                Piece::Pick(choices) => Box::new(choices.iter().map(Vec::as_slice)),
                _ => Box::new(std::iter::empty()),
            }
        })
    }

    /// Appends the text to `out`, with the variables' values in their places.
    pub fn render(&self, values: &Values, random: &mut impl Rng, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text),
                Piece::Serial => push_number(out, values.serial),
                Piece::Thread => push_number(out, values.thread.into()),
                Piece::Connection => push_number(out, values.connection.into()),
                Piece::UnixMs => push_number(out, values.unix_ms),
                Piece::Random(lowest, highest) => push_number(out, random.random_range(*lowest..=*highest)),
                Piece::Pick(choices) => out.extend_from_slice(&choices[random.random_range(..choices.len())]),
            }
        }
    }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, needle)
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// What stands between the braces; the fault is a sentence without its place.
fn parse_variable(inner: &str) -> Result<Piece, String> {
    let mut words = inner.split_whitespace();
    let name = words.next().ok_or_else(|| format!("`{{{{}}}}` names no variable: {KNOWN}"))?;
    let words: Vec<&str> = words.collect();
    let alone = |piece: Piece| {
        if words.is_empty() {
            Ok(piece)
        } else {
            Err(format!("`{{{{{name}}}}}` takes nothing besides its name"))
        }
    };
    match name {
        "serial" => alone(Piece::Serial),
        "thread" => alone(Piece::Thread),
        "connection" => alone(Piece::Connection),
        "unix_ms" => alone(Piece::UnixMs),
        "random" => parse_random(&words),
        "pick" if words.is_empty() => Err("`{{pick}}` has nothing to choose from".to_owned()),
        "pick" => Ok(Piece::Pick(words.iter().map(|word| word.as_bytes().to_vec()).collect())),
        _ => Err(format!("`{{{{{name}}}}}` is not known: {KNOWN}")),
    }
}

fn parse_random(words: &[&str]) -> Result<Piece, String> {
    let number = |word: &str| {
        let parsed = word.parse::<u64>();
        parsed.map_err(|_| format!("`{word}` in `{{{{random}}}}` is not a number from 0 to {}", u64::MAX))
    };
    let [lowest, highest] = words else {
        return Err("`{{random}}` takes two numbers, the lowest and the highest".to_owned());
    };
    let (lowest, highest) = (number(lowest)?, number(highest)?);
    if lowest > highest {
        return Err(format!("`{{{{random {lowest} {highest}}}}}`: the lowest number stands first"));
    }
    Ok(Piece::Random(lowest, highest))
}

#[cfg(test)]
mod tests;
