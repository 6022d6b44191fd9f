//! A request on its way to its answer.
//!
//! It owns the pen: whoever has the errand answers it, or hands it on. It must never be answered twice, and
//! cannot: each step uses it up.

use staunch_engine::Answer;
use staunch_protocol::Request;

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
}
