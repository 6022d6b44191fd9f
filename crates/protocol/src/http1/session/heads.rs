//! From bytes to a request that is given.
//!
//! It must never give a request whose head is not complete.

use super::super::body::{Discard, check_chunked};
use super::super::head::{Head, HeadSearch, parse_head};
use super::super::response::{Persistence, Refusal};
use super::{Phase, Session};
use crate::message::{BodyIn, Method, Request, Version};

impl Session {
    /// Skips one empty line before a request line, for old clients that send one too many (RFC 9112,
    /// section 2.2).
    #[inline]
    pub(super) fn skip_empty_line(&mut self, input: &mut &[u8]) {
        if let [b'\r', b'\n', rest @ ..] = *input
            && !self.search.empty_line_skipped
        {
            self.search = HeadSearch::behind_empty_line();
            *input = rest;
        }
    }

    #[inline]
    pub(super) fn poll_head<'i>(
        &mut self,
        input: &mut &'i [u8],
        parse: impl FnOnce(&'i [u8]) -> Option<Head<'i>>,
    ) -> Result<Option<Request<'i>>, Refusal> {
        if input.is_empty() {
            return Ok(None);
        }
        let at_once = if self.search.is_new() { parse(input) } else { None };
        let head = match at_once {
            Some(head) => head,
            None => match self.search.find_end(input)? {
                Some(head_bytes) => parse_head(&input[..head_bytes])?,
                None => return Ok(None),
            },
        };
        let behind = &input[head.request.head.len()..];
        if matches!(head.request.content, BodyIn::Open) && !head.expects_continue {
            check_chunked(behind)?;
        }
        *input = behind;
        self.begin_request(&head);
        Ok(Some(head.request))
    }

    #[inline]
    fn begin_request(&mut self, head: &Head<'_>) {
        self.phase = Phase::Answering;
        self.search = HeadSearch::default();
        self.omit_body = head.request.method == Method::Head;
        // A body withheld until 100 is sent never comes: the final status is sent at once (RFC 9110, section
        // 10.1.1).
        self.discard =
            if head.expects_continue { Discard::WITHHELD } else { Discard::new(head.request.content) };
        if !head.keep_alive || head.wants_tunnel {
            self.persistence = Persistence::Close;
        } else if self.persistence != Persistence::Close {
            self.persistence = if self.discard.is_lost() {
                Persistence::Unread
            } else if head.request.version == Version::Http10 {
                Persistence::KeepAlive
            } else {
                Persistence::Implied
            };
        }
    }
}
