//! What every response begins with.
//!
//! It owns the fields that the server itself adds. They are spelled once a second, not once a response.

use super::hpack::{PreparedFields, push_field, push_fields};
use crate::message::Fields;
use crate::status::Status;

/// `server` and `date`, spelled for the responses of one second.
#[derive(Debug, Clone)]
pub struct Opening {
    date: [u8; 29],
    block: Vec<u8>,
}

/// Room for both, so that nothing is allocated when the second changes.
const BLOCK_BYTES: usize = 48;

impl Opening {
    /// For responses of this date (an IMF-fixdate, RFC 9110, section 5.6.7).
    pub fn new(date: &[u8; 29]) -> Self {
        let mut opening = Self { date: *date, block: Vec::with_capacity(BLOCK_BYTES) };
        opening.spell();
        opening
    }

    /// The date may have changed.
    #[inline]
    pub fn set_date(&mut self, date: &[u8; 29]) {
        if self.date != *date {
            self.date = *date;
            self.spell();
        }
    }

    fn spell(&mut self) {
        self.block.clear();
        push_field(b"server", b"staunch", &mut self.block);
        push_field(b"date", &self.date, &mut self.block);
    }
}

/// The other fields of a response.
#[derive(Debug, Clone, Copy)]
pub enum HeadFields<'a> {
    /// Spelled before.
    Prepared(&'a PreparedFields),
    /// To be spelled now.
    Lines(Fields<'a>),
}

/// Room for everything a usual head takes, so that one reservation serves a response.
const HEAD_BYTES: usize = 256;

/// Appends the block of a response: status, what the opening says, and the fields.
#[inline]
pub(super) fn push_head(status: Status, opening: &Opening, fields: HeadFields<'_>, out: &mut Vec<u8>) {
    out.reserve(HEAD_BYTES);
    push_status(status, out);
    out.extend_from_slice(&opening.block);
    match fields {
        HeadFields::Prepared(fields) => out.extend_from_slice(fields.as_bytes()),
        HeadFields::Lines(fields) => push_fields(fields, out),
    }
}

/// Appends `:status`, in a byte where the static table has it.
#[inline]
fn push_status(status: Status, out: &mut Vec<u8>) {
    let index = match status.code() {
        200 => 8,
        204 => 9,
        206 => 10,
        304 => 11,
        400 => 12,
        404 => 13,
        500 => 14,
        code => return push_rare_status(code, out),
    };
    out.push(0x80 | index);
}

/// A literal with the name of entry 8, not to be added to a table.
fn push_rare_status(code: u16, out: &mut Vec<u8>) {
    let digit = |power: u16| b'0' + (code / power % 10) as u8;
    out.extend_from_slice(&[0x08, 3, digit(100), digit(10), digit(1)]);
}

/// Appends the block of an interim response, which has neither `server` nor `date`.
pub(super) fn push_interim_head(status: Status, fields: Fields<'_>, out: &mut Vec<u8>) {
    push_rare_status(status.code(), out);
    push_fields(fields, out);
}

/// The block of 100 (RFC 9110, section 15.2.1).
pub(super) fn push_continue(out: &mut Vec<u8>) {
    push_rare_status(100, out);
}
