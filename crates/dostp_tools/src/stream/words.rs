//! The words between the ends of a stream: questions and answers as JSON, and the head of each message.
//!
//! This module owns these bytes. They must never be believed: anybody on the network may send some.

use std::fs;

use serde::{Deserialize, Serialize};
use staunch_dostp::kinds::realtime;

use super::report::StreamReport;

/// The port that receives streams, unless another is said.
pub(super) const PORT: u16 = 5291;

/// Bytes of a message before what fills it up: the head of its kind, the stream's number, the message's.
pub(super) const HEAD_BYTES: usize = 32;

/// The longest question or answer.
const WORDS_BYTES_MAX: usize = 4_096;

/// A question of the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamQuestion {
    /// The number of the stream, drawn by its sender.
    pub(super) stream: u64,
    pub(super) asks: Asks,
}

/// Whether to begin or to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Asks {
    /// Is somebody there? With the name of the sender's clock; empty where it has none.
    Begin { clock: String },
    /// The sender has sent so many, and asks what has come.
    End { sent: u64 },
}

/// An answer of the receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StreamAnswer {
    /// The number of the stream.
    pub(super) stream: u64,
    /// The counts, at the end of the stream.
    pub(super) report: Option<StreamReport>,
    /// Whether this stream is not counted, for as many as can be are counted already.
    #[serde(default)]
    pub(super) is_full: bool,
}

/// A question or an answer as a message.
pub(super) fn write(words: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(words).unwrap_or_default()
}

/// A message as a question or an answer, if it is one.
pub(super) fn read<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Option<T> {
    if message.len() > WORDS_BYTES_MAX || !message.starts_with(b"{") {
        return None;
    }
    serde_json::from_slice(message).ok()
}

/// A message of a stream, of so many bytes.
pub(super) fn message(stream: u64, number: u64, size: usize, deadline_us: u32, now_us: u64) -> Vec<u8> {
    let value = [stream.to_be_bytes(), number.to_be_bytes()].concat();
    let mut message = realtime::stamp(&value, deadline_us, now_us);
    message.resize(size.max(HEAD_BYTES), 0x5a);
    message
}

/// The numbers of a stream and of a message, by its value.
pub(super) fn numbers(value: &[u8]) -> Option<(u64, u64)> {
    let (stream, rest) = value.split_first_chunk()?;
    Some((u64::from_be_bytes(*stream), u64::from_be_bytes(*rest.first_chunk()?)))
}

/// The name of this process's clock: that of the kernel's start, and of the time namespace. Two processes
/// with one name read one clock. Empty where the kernel does not tell.
pub(super) fn clock_name() -> String {
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    if start.is_empty() { String::new() } else { format!("{} {}", start.trim(), namespace.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written_and_nothing_else_is() {
        let asked = StreamQuestion { stream: u64::MAX, asks: Asks::End { sent: 7 } };
        assert_eq!(read(&write(&asked)), Some(asked.clone()));
        assert_eq!(read::<StreamAnswer>(&write(&asked)).map(|answer| answer.report), Some(None));
        for message in [&b""[..], b"{", b"[]", &[b'{'; WORDS_BYTES_MAX + 1]] {
            assert_eq!(read::<StreamQuestion>(message), None);
        }
    }

    #[test]
    fn a_message_bears_its_numbers_however_short_it_is_to_be() {
        for size in [0, HEAD_BYTES, 100] {
            let message = message(5, 6, size, 1_000, 9);
            assert_eq!(message.len(), size.max(HEAD_BYTES));
            let (budget_us, sent_us, value) = realtime::read(&message).expect("of the kind");
            assert_eq!((budget_us, sent_us, numbers(value)), (1_000, 9, Some((5, 6))));
            assert_eq!(numbers(&value[..15]), None);
        }
    }
}
