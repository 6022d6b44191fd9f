//! A request in records.
//!
//! It owns their order: begin, variables, body. It must never hold a byte of a body.

use super::record::{RecordKind, push_content, push_record};
use super::script::Script;
use super::variables::push_variables;
use crate::http1::relay::{Forwarding, RelayRefusal};
use crate::message::{BodyIn, Request};
use crate::status::Status;

/// A responder (FastCGI, section 5.1), whose connection stays or not.
const fn begin(keeps: bool) -> [u8; 8] {
    [0, 1, keeps as u8, 0, 0, 0, 0, 0]
}

/// Appends a request up to its body. Its length is to be known: applications read no body without.
///
/// # Errors
/// The request is not to be passed on; nothing was appended.
pub fn write_request(
    request: &Request<'_>,
    forwarding: &Forwarding<'_>,
    script: &Script<'_>,
    body: BodyIn,
    out: &mut Vec<u8>,
) -> Result<(), RelayRefusal> {
    let mut variables = Vec::with_capacity(request.head.len() * 2);
    push_variables(request, forwarding, script, body, &mut variables)?;
    if body == BodyIn::Open {
        return Err(LENGTH_UNKNOWN);
    }
    push_record(RecordKind::BeginRequest, &begin(script.keeps), out);
    push_content(RecordKind::Params, &variables, out);
    push_record(RecordKind::Params, b"", out);
    Ok(())
}

const LENGTH_UNKNOWN: RelayRefusal =
    RelayRefusal { status: Status::LENGTH_REQUIRED, reason: "FastCGI takes no body of unknown length" };

/// Appends a piece of the body.
pub fn write_piece(piece: &[u8], out: &mut Vec<u8>) {
    push_content(RecordKind::Stdin, piece, out);
}

/// Appends the end of the body.
pub fn write_end(out: &mut Vec<u8>) {
    push_record(RecordKind::Stdin, b"", out);
}
