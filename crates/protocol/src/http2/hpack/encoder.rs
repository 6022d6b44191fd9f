//! A block of fields, written with the static table and literals only.
//!
//! It owns how a field is spelled. It must never refer to a dynamic table: so a block is made once and valid
//! for every connection.

use super::huffman;
use super::integer;
use super::static_table;
use crate::message::Fields;

/// Fields of a response as HTTP/2 sends them, made once for all connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedFields(Box<[u8]>);

impl PreparedFields {
    /// Spells the fields. Those of a connection (RFC 9113, section 8.2.2) are left out.
    pub fn new(fields: Fields<'_>) -> Self {
        let mut block = Vec::new();
        push_fields(fields, &mut block);
        Self(block.into())
    }

    /// The block, without the status.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Names that HTTP/2 must not send: what they say is said by frames.
const LEFT_OUT: [&[u8]; 6] =
    [b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade"];

/// Values that a proxy must not put into a table either (RFC 7541, section 7.1.3).
const SECRET: [&[u8]; 2] = [b"set-cookie", b"authorization"];

/// Appends fields, but for those of a connection.
pub(crate) fn push_fields(fields: Fields<'_>, block: &mut Vec<u8>) {
    let mut lower = [0; 64];
    for (name, value) in fields.iter() {
        match lower.get_mut(..name.len()) {
            Some(lower) => {
                lower.copy_from_slice(name);
                lower.make_ascii_lowercase();
                push_unless_left_out(lower, value, block);
            }
            None => push_unless_left_out(&name.to_ascii_lowercase(), value, block),
        }
    }
}

fn push_unless_left_out(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    if !LEFT_OUT.contains(&name) {
        push_field(name, value, block);
    }
}

/// Appends one field, whose name has no capitals.
pub(crate) fn push_field(name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    let (whole, of_name) = static_table::find(name, value);
    if whole > 0 {
        integer::push(whole, 7, 0x80, block);
        return;
    }
    let first = if SECRET.contains(&name) { 0x10 } else { 0 };
    integer::push(of_name, 4, first, block);
    if of_name == 0 {
        push_text(name, block);
    }
    push_text(value, block);
}

/// Appends a text in whichever way is shorter.
fn push_text(text: &[u8], block: &mut Vec<u8>) {
    let coded_bytes = huffman::coded_bytes(text);
    if coded_bytes < text.len() {
        integer::push(coded_bytes, 7, 0x80, block);
        huffman::encode(text, block);
    } else {
        integer::push(text.len(), 7, 0, block);
        block.extend_from_slice(text);
    }
}
