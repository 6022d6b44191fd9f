//! A request on its way to its answer.
//!
//! It owns the pen: whoever has the errand answers it, or hands it on. It must never be answered twice, and
//! cannot: each step uses it up.

use staunch_engine::Answer;
use staunch_protocol::{Method, Request, Status, Version};

use crate::rules::Ruling;

/// What is asked, and the pen to answer it with.
pub(crate) struct Errand<'e> {
    pub(crate) request: &'e Request<'e>,
    pub(crate) answer: Answer<'e>,
}

impl Errand<'_> {
    /// An answer that another thread's mail has led to does not know any more that credentials were asked
    /// for.
    pub(crate) fn note_guard(&self, ruling: Option<&Ruling>) {
        if ruling.is_some_and(|ruling| ruling.auth.is_some()) {
            self.answer.guard();
        }
    }

    /// Sends the early hints of a path ahead of an answer that is not there yet: to a client that may have
    /// that. By HTTP/2 alone, for some programs of HTTP/1.1 take an interim answer for the final one; and for
    /// pages alone, where the client tells them apart.
    pub(crate) fn hint(&mut self, ruling: Option<&Ruling>) {
        let hints = ruling.map(|ruling| &ruling.early_hints[..]).filter(|hints| !hints.is_empty());
        if let Some(hints) = hints
            && is_for_page(self.request)
        {
            self.answer.interim(self.request, Status::EARLY_HINTS, hints);
        }
    }
}

fn is_for_page(request: &Request<'_>) -> bool {
    let mut modes = request.values(b"sec-fetch-mode");
    request.version == Version::Http2
        && request.method == Method::Get
        && modes.next().is_none_or(|mode| mode == b"navigate")
}
