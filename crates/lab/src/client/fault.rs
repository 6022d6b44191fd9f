//! What can go wrong with a connection, as a number to count by and in words.
//!
//! It must never hide one kind behind another.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;

/// So many kinds can be counted: error numbers of Linux end at 133, ours follow from 160 on, then each status
/// up to 599.
pub(super) const KINDS_MAX: usize = STATUS + 600;
const OWN: usize = 160;
const OWN_WORDS: [&str; 4] = ["short answer", "answer too long", "not HTTP", "not tried after timing out"];
const STATUS: usize = OWN + OWN_WORDS.len();

/// Why there was no answer, or not the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// What the system said.
    System(Errno),
    /// The peer closed before the answer was whole.
    Short,
    /// More came than was asked for.
    Long,
    /// What came is no answer of HTTP.
    NotHttp,
    /// An answer with this status and not 200.
    Status(u16),
    /// The connection was not tried: one before it has timed out, and the child has given up.
    NotTried,
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl Fault {
    /// Its number, below [`KINDS_MAX`].
    pub(super) fn number(self) -> usize {
        match self {
            Self::System(errno) => usize::try_from(errno.raw_os_error()).unwrap_or(0).min(OWN - 1),
            Self::Short => OWN,
            Self::Long => OWN + 1,
            Self::NotHttp => OWN + 2,
            Self::NotTried => OWN + 3,
            Self::Status(status) => STATUS + usize::from(status.min(599)),
        }
    }

    /// Whether a deadline has passed: with one set, `recv` says EAGAIN and `connect` EINPROGRESS.
    pub(super) fn is_time_out(self) -> bool {
        matches!(self, Self::System(Errno::AGAIN | Errno::INPROGRESS | Errno::TIMEDOUT))
    }
}

/// Counts by number as counts by words, most frequent first.
pub(super) fn in_words(counts: &[u64; KINDS_MAX]) -> Vec<(String, u64)> {
    let mut by_words = BTreeMap::new();
    for (number, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        *by_words.entry(words(number)).or_insert(0) += count;
    }
    let mut errors: Vec<(String, u64)> = by_words.into_iter().collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    errors
}

fn words(number: usize) -> String {
    if let Some(status) = number.checked_sub(STATUS) {
        return format!("status {status}");
    }
    if let Some(words) = number.checked_sub(OWN).and_then(|own| OWN_WORDS.get(own)) {
        return (*words).to_owned();
    }
    let errno = number as i32;
    let known = match Errno::from_raw_os_error(errno) {
        Errno::CONNREFUSED => "connection refused",
        Errno::CONNRESET | Errno::PIPE => "connection reset",
        Errno::AGAIN | Errno::INPROGRESS | Errno::TIMEDOUT => "timed out",
        Errno::MFILE | Errno::NFILE => "no descriptor left",
        Errno::ADDRNOTAVAIL => "no port left",
        Errno::HOSTUNREACH | Errno::NETUNREACH => "unreachable",
        _ => {
            let said = io::Error::from_raw_os_error(errno).to_string();
            return said.split(" (os error").next().unwrap_or_default().to_lowercase();
        }
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_words() {
        let table = [
            (Fault::System(Errno::CONNREFUSED), "connection refused"),
            (Fault::System(Errno::CONNRESET), "connection reset"),
            (Fault::System(Errno::PIPE), "connection reset"),
            (Fault::System(Errno::INPROGRESS), "timed out"),
            (Fault::System(Errno::AGAIN), "timed out"),
            (Fault::System(Errno::MFILE), "no descriptor left"),
            (Fault::System(Errno::ADDRNOTAVAIL), "no port left"),
            (Fault::System(Errno::ACCESS), "permission denied"),
            (Fault::Short, "short answer"),
            (Fault::Long, "answer too long"),
            (Fault::NotHttp, "not HTTP"),
            (Fault::Status(100), "status 100"),
            (Fault::Status(503), "status 503"),
            (Fault::Status(999), "status 599"),
            (Fault::NotTried, "not tried after timing out"),
        ];
        for (fault, expected) in table {
            assert_eq!(words(fault.number()), expected, "{fault:?}");
        }
    }

    #[test]
    fn the_most_frequent_stands_first() {
        let mut counts = [0; KINDS_MAX];
        counts[Fault::System(Errno::PIPE).number()] = 2;
        counts[Fault::System(Errno::CONNRESET).number()] = 3;
        counts[Fault::Short.number()] = 4;
        counts[Fault::System(Errno::CONNREFUSED).number()] = 900;
        let expected = [("connection refused", 900), ("connection reset", 5), ("short answer", 4)];
        assert_eq!(in_words(&counts), expected.map(|(words, count)| (words.to_owned(), count)));
        assert!(in_words(&[0; KINDS_MAX]).is_empty());
    }
}
