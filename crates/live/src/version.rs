//! Versions: `EPOCH-NUMBER`.
//!
//! It owns their text. It must never use a clock: an epoch is drawn by who starts a hub without its state.

use std::fmt;
use std::str::FromStr;

/// Names one life of the numbering. Numbers of different epochs say nothing about each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// A number with its epoch: what an ETag, an event's id and a resuming reader say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// The life of the numbering.
    pub epoch: Epoch,
    /// The number of an update; 0 before the first.
    pub number: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

/// A text that is no version of ours. It is not an error of the peer: its id may be of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOurs;

impl FromStr for Version {
    type Err = NotOurs;

    /// Reads exactly what `Display` writes, and the same behind `#`, as Mercure's ids are written.
    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let bare = text.strip_prefix('#').unwrap_or(text);
        let (epoch, number) = bare.split_once('-').ok_or(NotOurs)?;
        let version = Self {
            epoch: Epoch(u64::from_str_radix(epoch, 16).map_err(|_| NotOurs)?),
            number: number.parse().map_err(|_| NotOurs)?,
        };
        if version.to_string() == bare { Ok(version) } else { Err(NotOurs) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_written() {
        let version = Version { epoch: Epoch(0xbeef), number: 17 };
        assert_eq!(version.to_string(), "beef-17");
        assert_eq!("beef-17".parse(), Ok(version));
        assert_eq!("#beef-17".parse(), Ok(version));
        let foreign = [
            "",
            "17",
            "beef",
            "beef-",
            "-17",
            "BEEF-17",
            "beef-017",
            "beef-+1",
            "beef-1-2",
            "+f-1",
            "beef-99999999999999999999",
            "urn:uuid:5f0-1",
            "##beef-17",
        ];
        for text in foreign {
            assert_eq!(text.parse::<Version>(), Err(NotOurs), "{text}");
        }
    }
}
