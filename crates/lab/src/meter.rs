//! How many clients each process or thread of a pool took: the meter of Stevens (UNIX Network Programming,
//! volume 1, chapter 30), with which one sees whether the kernel deals clients out evenly.
//!
//! It owns the counters and the line that tells them. It must never decide who takes a client.

use std::io::{self, Write as _};

pub(crate) use crate::syscall::Counter as Meter;
use crate::syscall::shared_counters;

/// What stands before the counts.
const HEAD: &str = "served by:";

/// So many counters at zero, in memory that a `fork` does not copy: parent and children see the same.
///
/// # Errors
/// Those of mmap(2).
pub(crate) fn meters(count: usize) -> io::Result<&'static [Meter]> {
    shared_counters(count)
}

/// Tells the counts, as a line on standard output. Nobody reading is no fault.
///
/// # Errors
/// The line cannot be written for another reason.
pub(crate) fn print(meters: &[Meter]) -> io::Result<()> {
    let mut line = HEAD.to_owned();
    for meter in meters {
        line += &format!(" {}", meter.value());
    }
    match writeln!(io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// What a server said of its counts before it ended, largest first; empty if it said nothing, for there is
/// only one that takes clients.
pub fn parse(output: &str) -> Vec<u64> {
    let Some(counts) = output.lines().find_map(|line| line.strip_prefix(HEAD)) else { return Vec::new() };
    let counts = counts.split_ascii_whitespace().map(str::parse);
    let mut counts = counts.collect::<Result<Vec<u64>, _>>().unwrap_or_default();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_what_a_server_says() {
        let table = [
            ("listening on http://127.0.0.1:1\nserved by: 3 12 7\n", &[12, 7, 3][..]),
            ("served by: 0\n", &[0]),
            ("served by:\n", &[]),
            ("listening on http://127.0.0.1:1\n", &[]),
            ("was served by: 1\n", &[]),
            ("served by: 1 many\n", &[]),
            ("", &[]),
        ];
        for (output, counts) in table {
            assert_eq!(parse(output), counts, "{output:?}");
        }
    }

    #[test]
    fn meters_count_apart() {
        let meters = meters(3).expect("memory");
        meters[0].count();
        meters[2].count();
        meters[2].count();
        let counts: Vec<u64> = meters.iter().map(|meter| meter.value()).collect();
        assert_eq!(counts, [1, 0, 2]);
    }
}
