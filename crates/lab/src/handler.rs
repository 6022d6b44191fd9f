//! The application behind Staunch's own engine: the same answers as every model gives.
//!
//! It must never be used by a plain model: those show what an engine is made of.

use std::sync::Arc;

use staunch_engine::{Answer, Answered, Handler};
use staunch_protocol::Request;

use crate::wire;
use crate::work;

/// Answers as [`crate::wire`] says.
pub(crate) struct Sized {
    work_ns: u64,
    /// The answer last given: a client of the laboratory asks for the same again and again.
    last: Option<Prepared>,
}

struct Prepared {
    answer: wire::WireAnswer,
    block: Arc<[u8]>,
    fields_bytes: usize,
}

impl Sized {
    pub(crate) fn new(work_ns: u64) -> Self {
        Self { work_ns, last: None }
    }
}

impl Handler for Sized {
    type Mail = ();

    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        work::burn(self.work_ns);
        let wanted = wire::WireAnswer::to(request);
        let last = self.last.take().filter(|last| last.answer == wanted);
        let last = self.last.insert(last.unwrap_or_else(|| prepare(wanted)));
        answer.block(wanted.status, &last.block, last.fields_bytes)
    }

    fn resume(&mut self, (): (), request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.handle(request, answer)
    }
}

fn prepare(answer: wire::WireAnswer) -> Prepared {
    let mut block = Vec::new();
    answer.write_fields(&mut block);
    let fields_bytes = block.len();
    block.extend_from_slice(b"\r\n");
    block.resize(block.len() + answer.bytes, b'x');
    Prepared { answer, block: block.into(), fields_bytes }
}
