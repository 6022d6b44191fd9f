//! The head that came last, on whatever connection, with what it says.
//!
//! It owns nothing but speed: a server under load sends the same head again and again until its clock's next
//! second, and to compare is much cheaper than to parse. It must never give anything but what parsing would.

use super::fault::AnswerFault;
use super::head::{Head, parse_head};

/// Remembers one head. One a thread serves all its connections.
#[derive(Debug, Default)]
pub struct HeadMemory {
    bytes: Vec<u8>,
    asked_by_head: bool,
    head: Option<Head>,
}

impl HeadMemory {
    /// Remembers nothing yet.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), asked_by_head: false, head: None }
    }

    /// Gives what [`parse_head`] gives, from memory where the same head came last.
    #[inline]
    pub(super) fn parse_head(
        &mut self,
        input: &[u8],
        asked_by_head: bool,
    ) -> Result<Option<Head>, AnswerFault> {
        // A whole head ends with its blank line, so what begins with the same bytes has the same head.
        if self.head.is_some() && self.asked_by_head == asked_by_head && input.starts_with(&self.bytes) {
            return Ok(self.head);
        }
        self.parse_new_head(input, asked_by_head)
    }

    #[inline(never)]
    fn parse_new_head(&mut self, input: &[u8], asked_by_head: bool) -> Result<Option<Head>, AnswerFault> {
        let parsed = parse_head(input, asked_by_head)?;
        if let Some(head) = parsed
            && let Some(bytes) = input.get(..head.length_bytes)
            && !head.interim
        {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            (self.asked_by_head, self.head) = (asked_by_head, parsed);
        }
        Ok(parsed)
    }
}
