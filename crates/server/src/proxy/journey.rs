//! The way of a request to a server, as it is told afterwards: whom it was sent to, how often, and how long
//! each part took.
//!
//! All times are those of the worker's turns. A journey must never decide anything.

use std::sync::Arc;

use staunch_engine::Standing;

use super::application::{AppServer, ServerName};
use crate::log::passed::Passed;

/// The way of one request.
#[derive(Debug, Default)]
pub(crate) struct Journey {
    /// The server that was asked last.
    server: Option<Arc<AppServer>>,
    tries: u32,
    /// The standing of the request in line.
    pub(super) standing: Standing,
    /// Since when it stands in line, if it does.
    in_line_since_ms: Option<u64>,
    line_ms: u64,
    /// When it was given its last place.
    placed_at_ms: u64,
    header_ms: Option<u64>,
    response_ms: Option<u64>,
}

impl Journey {
    /// The request stands in line from now on, unless it did already.
    pub(super) fn enter_line(&mut self, now_ms: u64) {
        self.in_line_since_ms.get_or_insert(now_ms);
    }

    /// The request stands in no line any more.
    pub(super) fn leave_line(&mut self, now_ms: u64) {
        if let Some(since_ms) = self.in_line_since_ms.take() {
            self.line_ms += now_ms.saturating_sub(since_ms);
        }
    }

    /// A server is asked, at which the request has had a place since then.
    pub(super) fn ask(&mut self, server: &ServerName, placed_at_ms: u64) {
        self.server = server.application.servers.get(server.index).map(Arc::clone);
        self.tries += 1;
        self.placed_at_ms = placed_at_ms;
        (self.header_ms, self.response_ms) = (None, None);
    }

    /// The head of the answer is there.
    pub(super) fn note_header(&mut self, now_ms: u64) {
        let since_ms = self.placed_at_ms;
        self.header_ms.get_or_insert_with(|| now_ms.saturating_sub(since_ms));
    }

    /// The server has answered, or will not.
    pub(super) fn note_end(&mut self, now_ms: u64) {
        self.response_ms = Some(now_ms.saturating_sub(self.placed_at_ms));
    }

    /// The field that shows a client these times (W3C Server Timing), for an answer whose head is there.
    pub(super) fn server_timing(&self) -> String {
        let app_ms = self.header_ms.unwrap_or(0);
        format!("Server-Timing: line;dur={}, app;dur={app_ms}\r\n", self.line_ms)
    }

    /// The record for the access log, encoded.
    pub(crate) fn record(&self) -> Vec<u8> {
        let short = |time_ms: u64| u32::try_from(time_ms).unwrap_or(u32::MAX);
        let server = self.server.as_ref().map(|server| server.address.to_string()).unwrap_or_default();
        let passed = Passed {
            server: server.as_bytes(),
            tries: self.tries,
            standing: self.standing,
            line_ms: short(self.line_ms),
            header_ms: self.header_ms.map(short),
            response_ms: self.response_ms.map(short),
        };
        passed.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_line_is_added_up_and_the_head_is_noted_once() {
        let mut journey = Journey { placed_at_ms: 60, ..Journey::default() };
        journey.enter_line(10);
        // The server in whose line it stood has vanished: it goes to another line.
        journey.enter_line(20);
        journey.leave_line(40);
        journey.leave_line(50);
        journey.note_header(94);
        journey.note_header(99);
        assert_eq!(journey.server_timing(), "Server-Timing: line;dur=30, app;dur=34\r\n");
        journey.note_end(100);
        assert_eq!((journey.header_ms, journey.response_ms), (Some(34), Some(40)));
    }
}
