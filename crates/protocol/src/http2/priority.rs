//! How urgent an answer is (RFC 9218, section 4).
//!
//! It must never refuse: what is not understood is as if it had not been sent.

/// Urgency and whether pieces may go in turn with those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Priority {
    /// 0 first, 7 last.
    pub(super) urgency: u8,
    pub(super) incremental: bool,
}

/// What holds if nothing is said (sections 4.1 and 4.2).
const URGENCY_DEFAULT: u8 = 3;
const URGENCY_MAX: u8 = 7;

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: URGENCY_DEFAULT, incremental: false }
    }
}

impl Priority {
    /// Reads the value of the field or of a PRIORITY_UPDATE: a dictionary (RFC 9651, section 3.2) of which
    /// `u` and `i` matter. Of a name that stands twice the last counts.
    pub(super) fn read(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|byte| *byte == b',') {
            let member = member.trim_ascii();
            // Parameters of a member have no meaning here.
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default();
            match member {
                [b'u', b'=', digit @ b'0'..=b'9'] if digit - b'0' <= URGENCY_MAX => {
                    priority.urgency = digit - b'0';
                }
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// In four bits.
    pub(super) fn packed(self) -> u8 {
        self.urgency | u8::from(self.incremental) << 3
    }

    /// From the lowest four bits.
    pub(super) fn unpacked(bits: u8) -> Self {
        Self { urgency: bits & URGENCY_MAX, incremental: bits & 8 != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let cases: &[(&str, u8, bool)] = &[
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i,u=1", 1, true),
            ("u=1, u=5", 5, false),
            ("i=?1", 3, true),
            ("i, i=?0", 3, false),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=10", 3, false),
            ("u = 1", 3, false),
            ("u=2;x=1, i;y", 2, true),
            ("\u{0}\u{ff}", 3, false),
        ];
        for (value, urgency, incremental) in cases {
            let read = Priority::read(value.as_bytes());
            assert_eq!((read.urgency, read.incremental), (*urgency, *incremental), "{value:?}");
            assert_eq!(Priority::unpacked(read.packed()), read);
        }
    }
}
