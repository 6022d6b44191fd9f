//! Close codes (RFC 6455, section 7.4, and the registry of its section 11.7).
//!
//! It must never let a code pass that must not stand in a frame.

use crate::limits::CONTROL_BYTES_MAX;

/// Why a WebSocket is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CloseCode(u16);

impl CloseCode {
    /// What was to be said has been said.
    pub const NORMAL: Self = Self(1000);
    /// The server ends, or the page is left.
    pub const GOING_AWAY: Self = Self(1001);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// A kind of message that is not taken.
    pub const UNSUPPORTED: Self = Self(1003);
    /// A message is not what it says, such as text that is not UTF-8.
    pub const INVALID_DATA: Self = Self(1007);
    /// The peer may not do this.
    pub const POLICY: Self = Self(1008);
    /// A message is too long.
    pub const TOO_LONG: Self = Self(1009);
    /// The server failed.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// The service starts anew.
    pub const RESTART: Self = Self(1012);
    /// The server is too busy: try again later.
    pub const TRY_AGAIN: Self = Self(1013);

    /// The code with this number, unless it must not stand in a frame: those below 1000, those that say what
    /// no frame can (1004 to 1006, 1015), and those nobody defined (1016 to 2999, 5000 and above).
    pub fn new(number: u16) -> Option<Self> {
        matches!(number, 1000..=1003 | 1007..=1014 | 3000..=4999).then_some(Self(number))
    }

    /// The number on the wire.
    pub fn number(self) -> u16 {
        self.0
    }

    /// The payload of a close frame. A reason that is too long is cut at a character.
    pub fn payload(self, reason: &str) -> Vec<u8> {
        let reason = &reason[..reason.floor_char_boundary(CONTROL_BYTES_MAX - 2)];
        [&self.0.to_be_bytes()[..], reason.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_may_stand_in_a_frame() {
        let (mut number, mut ranges) = (0u32, Vec::new());
        while number <= u32::from(u16::MAX) {
            let from = number;
            let allowed = CloseCode::new(number as u16).is_some();
            while number <= 65535 && CloseCode::new(number as u16).is_some() == allowed {
                number += 1;
            }
            if allowed {
                ranges.push(from..=number - 1);
            }
        }
        assert_eq!(ranges, [1000..=1003, 1007..=1014, 3000..=4999]);
    }

    #[test]
    fn a_reason_is_cut_at_a_character() {
        assert_eq!(CloseCode::NORMAL.payload(""), [3, 232]);
        let payload = CloseCode::TOO_LONG.payload(&"ä".repeat(80));
        assert_eq!(payload.len(), 124);
        assert!(std::str::from_utf8(&payload[2..]).is_ok());
    }
}
