//! Which answers are right.
//!
//! It owns expectations of status and body, and judging by them. It must never keep a body: what it has to
//! know of the bytes seen so far is one number.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::Fault;

/// What an answer has to be like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Check {
    /// The status codes that are right.
    pub status: StatusSet,
    /// What the body has to be like.
    pub body: BodyCheck,
}

/// A set of status codes. The default is 200 to 399.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusSet {
    /// First and last of each range.
    ranges: Arc<[(u16, u16)]>,
}

impl Default for StatusSet {
    fn default() -> Self {
        Self { ranges: Arc::new([(200, 399)]) }
    }
}

impl StatusSet {
    /// Whether it has this code.
    #[inline]
    pub fn contains(&self, status: u16) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}

impl FromStr for StatusSet {
    type Err = Fault;

    /// Codes, classes and ranges with commas between: `200`, `2xx`, `200-399,404`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let ranges: Result<Vec<_>, Fault> = text.split(',').map(|part| parse_range(part.trim())).collect();
        Ok(Self { ranges: ranges?.into() })
    }
}

fn parse_range(text: &str) -> Result<(u16, u16), Fault> {
    let fault = || Fault::new(format!("`{text}` is not a status: write 200, 2xx or 200-399"));
    let code = |text: &str| {
        let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u16>().ok()).flatten().filter(|code| *code >= 100).ok_or_else(fault)
    };
    if let Some(class) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
        let first = code(&format!("{class}00"))?;
        return Ok((first, first + 99));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (code(first.trim())?, code(last.trim())?);
    if first > last {
        return Err(Fault::new(format!("`{text}`: the lowest status stands first")));
    }
    Ok((first, last))
}

/// What a body has to be like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BodyCheck {
    /// Anything.
    #[default]
    None,
    /// So many bytes.
    Length(u64),
    /// The body has these bytes somewhere.
    Contains(Needle),
    /// Exactly these bytes.
    Equals(Arc<[u8]>),
}

impl FromStr for BodyCheck {
    type Err = Fault;

    /// `length:500`, `contains:some text` or `file:PATH`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        match text.split_once(':') {
            Some(("length", digits)) => digits.parse().map(Self::Length).map_err(|_| {
                Fault::new(format!("`{digits}` in `{text}` is not a number of bytes, written without a unit"))
            }),
            Some(("contains", text)) => Needle::new(text.as_bytes()).map(Self::Contains),
            Some(("file", path)) => Self::of_file(Path::new(path)),
            _ => {
                let known = "length:BYTES, contains:TEXT and file:PATH";
                Err(Fault::new(format!("`{text}` is not a check of a body: known are {known}")))
            }
        }
    }
}

impl BodyCheck {
    /// The bytes of a file, read now.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> Result<Self, Fault> {
        let bytes = fs::read(path).map_err(|error| Fault::new(format!("{}: {error}", path.display())))?;
        Ok(Self::Equals(bytes.into()))
    }
}

/// Bytes to be searched for in pieces (Knuth, Morris and Pratt: no byte is looked at twice, none kept).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    bytes: Arc<[u8]>,
    /// With so many bytes matched and the next one wrong, so many of them are a beginning still.
    fallback: Arc<[usize]>,
}

impl Needle {
    /// To search for these bytes.
    ///
    /// # Errors
    /// `bytes` is empty.
    pub fn new(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.is_empty() {
            return Err(Fault::new("the text a body has to contain is empty"));
        }
        let mut fallback = vec![0; bytes.len() + 1];
        let mut matched = 0;
        for at in 1..bytes.len() {
            while matched > 0 && bytes[at] != bytes[matched] {
                matched = fallback[matched];
            }
            matched += usize::from(bytes[at] == bytes[matched]);
            fallback[at + 1] = matched;
        }
        Ok(Self { bytes: bytes.into(), fallback: fallback.into() })
    }

    /// So many bytes are matched when `piece` has come too; all of them stay all of them.
    fn go_on(&self, mut matched: usize, mut piece: &[u8]) -> usize {
        while matched < self.bytes.len() {
            if matched == 0 {
                let Some(at) = memchr::memchr(self.bytes[0], piece) else { return 0 };
                piece = &piece[at..];
            }
            let Some((byte, rest)) = piece.split_first() else { break };
            if self.bytes[matched] == *byte {
                matched += 1;
                piece = rest;
            } else {
                matched = self.fallback[matched];
            }
        }
        matched
    }
}

/// What is known of one answer's body so far. Give it the same check each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckState {
    /// Bytes seen, matched or equal, by the kind of check.
    reached: u64,
}

/// No body is so long.
const WRONG: u64 = u64::MAX;

impl CheckState {
    /// Before the first byte.
    pub const fn new() -> Self {
        Self { reached: 0 }
    }

    /// The next bytes of the body.
    #[inline]
    pub fn feed(&mut self, check: &Check, bytes: &[u8]) {
        if !matches!(check.body, BodyCheck::None) {
            self.feed_body(&check.body, bytes);
        }
    }

    fn feed_body(&mut self, check: &BodyCheck, bytes: &[u8]) {
        self.reached = match check {
            BodyCheck::None => return,
            _ if self.reached == WRONG => return,
            BodyCheck::Length(_) => self.reached + bytes.len() as u64,
            BodyCheck::Contains(needle) => needle.go_on(self.reached as usize, bytes) as u64,
            BodyCheck::Equals(all) => match all.get(self.reached as usize..) {
                Some(rest) if rest.starts_with(bytes) => self.reached + bytes.len() as u64,
                _ => WRONG,
            },
        };
    }

    /// Whether the answer is right, now that it is complete.
    #[inline]
    pub fn verdict(&self, check: &Check, status: u16) -> bool {
        check.status.contains(status)
            && match &check.body {
                BodyCheck::None => true,
                BodyCheck::Length(length_bytes) => self.reached == *length_bytes,
                BodyCheck::Contains(needle) => self.reached == needle.bytes.len() as u64,
                BodyCheck::Equals(all) => self.reached == all.len() as u64,
            }
    }
}

#[cfg(test)]
mod tests;
