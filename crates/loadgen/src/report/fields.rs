//! The counts by name: one list that files, thresholds and tables are made from, so that a name means the
//! same everywhere.
//!
//! A new count has to be added here; a test sees to it.

use crate::outcome::Counts;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CountField {
    /// Its name in every file, as in [`Counts`].
    pub(crate) name: &'static str,
    /// Its name for people.
    pub(crate) words: &'static str,
    /// What is counted.
    pub(crate) unit: &'static str,
    of: fn(&mut Counts) -> &mut u64,
}

impl CountField {
    /// Its value.
    pub(crate) fn get(&self, counts: &Counts) -> u64 {
        let mut counts = *counts;
        *(self.of)(&mut counts)
    }
}

macro_rules! field {
    ($name:ident, $words:literal, $unit:literal) => {
        CountField { name: stringify!($name), words: $words, unit: $unit, of: |counts| &mut counts.$name }
    };
}

/// How a request can end. Together they are what was offered.
pub(crate) static ENDS: [CountField; 9] = [
    field!(in_time, "in time", "requests"),
    field!(late, "late", "requests"),
    field!(timed_out, "timed out", "requests"),
    field!(refused, "refused", "requests"),
    field!(reset, "reset", "requests"),
    field!(wrong_answer, "wrong answer", "requests"),
    field!(failed, "failed", "requests"),
    field!(unsent, "unsent", "requests"),
    field!(unfinished, "unfinished", "requests"),
];

/// What else is counted.
pub(crate) static OTHERS: [CountField; 11] = [
    field!(offered, "offered", "requests"),
    field!(attempted, "attempted", "requests"),
    field!(connections_begun, "connections begun", "connections"),
    field!(connections_made, "connections made", "connections"),
    field!(connections_ended, "idle connections ended by the server", "connections"),
    field!(syn_retransmitted, "SYN sent again", "segments"),
    field!(handshakes, "TLS handshakes", "handshakes"),
    field!(handshakes_resumed, "TLS handshakes that resumed a session", "handshakes"),
    field!(handshakes_failed, "TLS handshakes failed", "handshakes"),
    field!(received_bytes, "received", "bytes"),
    field!(sent_bytes, "sent", "bytes"),
];

/// Counts that files written before there was TLS do not have.
pub(crate) const LATER: [&str; 3] = ["handshakes", "handshakes_resumed", "handshakes_failed"];

/// Every count: what was offered first, then how it ended, then the rest.
pub(crate) fn all() -> impl Iterator<Item = &'static CountField> {
    OTHERS[..2].iter().chain(&ENDS).chain(&OTHERS[2..])
}

/// The count of that name.
pub(crate) fn find(name: &str) -> Option<&'static CountField> {
    all().find(|field| field.name == name)
}

/// Whether a request that ended so is an error: neither answered rightly nor still under way.
pub(crate) fn is_error(field: &CountField) -> bool {
    !matches!(field.name, "in_time" | "late" | "unfinished")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_stands_in_the_list_and_ends_add_up() {
        let mut counts = Counts::default();
        for (index, field) in all().enumerate() {
            *(field.of)(&mut counts) = 1 << index;
        }
        let written = serde_json::to_value(counts).unwrap();
        let written = written.as_object().unwrap();
        assert_eq!(written.len(), all().count());
        for (index, field) in all().enumerate() {
            assert_eq!(written[field.name], 1u64 << index, "{}", field.name);
            assert_eq!(field.get(&counts), 1 << index);
            assert!(std::ptr::eq(find(field.name).unwrap(), field));
        }
        assert_eq!(ENDS.iter().map(|field| field.get(&counts)).sum::<u64>(), counts.settled());
        let errors = ENDS.iter().filter(|field| is_error(field));
        assert_eq!(errors.map(|field| field.get(&counts)).sum::<u64>(), counts.errors());
        assert!(find("nothing").is_none());
    }
}
