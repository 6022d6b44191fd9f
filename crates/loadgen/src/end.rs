//! How a request ended that was not answered rightly, and under which count it goes.
//!
//! It must never know a connection.

use crate::outcome::Counts;

/// Why a request has no right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection was refused.
    Refused,
    /// The connection was reset or ended before the answer was complete.
    Reset,
    /// What came was not the answer that was expected.
    WrongAnswer,
    /// The client has given up.
    TimedOut,
    /// The generator has no descriptor, port or memory left.
    Unsent,
    /// Anything else the kernel said.
    Failed,
}

impl End {
    /// What an errno of connecting or sending means.
    pub(crate) fn of_errno(errno: i32) -> Self {
        use rustix::io::Errno;
        match Errno::from_raw_os_error(errno) {
            // A Unix socket whose queue is full says EAGAIN; it has no way to make a client wait.
            Errno::CONNREFUSED | Errno::AGAIN => Self::Refused,
            Errno::CONNRESET | Errno::PIPE => Self::Reset,
            Errno::ADDRNOTAVAIL
            | Errno::ADDRINUSE
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOBUFS
            | Errno::NOMEM => Self::Unsent,
            _ => Self::Failed,
        }
    }

    /// Counts so many requests that ended so.
    pub(crate) fn count(self, counts: &mut Counts, requests: u64) {
        let count = match self {
            Self::Refused => &mut counts.refused,
            Self::Reset => &mut counts.reset,
            Self::WrongAnswer => &mut counts.wrong_answer,
            Self::TimedOut => &mut counts.timed_out,
            Self::Unsent => &mut counts.unsent,
            Self::Failed => &mut counts.failed,
        };
        *count += requests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_has_one_end() {
        let ends = [
            (111, End::Refused),
            (11, End::Refused),
            (104, End::Reset),
            (32, End::Reset),
            (105, End::Unsent),
            (24, End::Unsent),
            (99, End::Unsent),
            (110, End::Failed),
            (113, End::Failed),
        ];
        for (errno, end) in ends {
            assert_eq!(End::of_errno(errno), end, "errno {errno}");
        }
    }
}
