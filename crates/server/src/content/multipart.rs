//! Several ranges in one body: multipart/byteranges (RFC 9110, section 14.6), with its length known before.

use std::fmt::Write;

use staunch_engine::Piece;

use super::entry::Representation;
use super::range::ByteRange;

/// What is told about several parts and the parts themselves.
pub(crate) struct Multipart {
    /// Fields of the response.
    pub(crate) fields: Vec<u8>,
    /// The body in order.
    pub(crate) pieces: Vec<Piece>,
}

/// Cuts parts out of a representation of this media type.
pub(crate) fn cut(representation: &Representation, media: &str, ranges: &[ByteRange]) -> Multipart {
    let boundary = boundary(representation.etag());
    let length = representation.length_bytes();
    let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
    let mut length_bytes = 0;
    let mut push_framing = |pieces: &mut Vec<Piece>, text: String| {
        length_bytes += text.len() as u64;
        pieces.push(Piece::Bytes(text.into_bytes()));
    };
    for (index, range) in ranges.iter().enumerate() {
        let line_end = if index == 0 { "" } else { "\r\n" };
        let content_range = content_range(*range, length);
        let framing = format!("{line_end}--{boundary}\r\nContent-Type: {media}\r\n{content_range}\r\n");
        push_framing(&mut pieces, framing);
        pieces.push(representation.piece(*range));
    }
    push_framing(&mut pieces, format!("\r\n--{boundary}--\r\n"));
    length_bytes += ranges.iter().map(|range| range.length_bytes()).sum::<u64>();
    let mut fields = format!(
        "Content-Length: {length_bytes}\r\nContent-Type: multipart/byteranges; boundary={boundary}\r\n"
    )
    .into_bytes();
    fields.extend_from_slice(representation.fields_of_parts());
    Multipart { fields, pieces }
}

/// The field line that names a part (RFC 9110, section 14.4).
pub(crate) fn content_range(range: ByteRange, length_bytes: u64) -> String {
    format!("Content-Range: bytes {}-{}/{length_bytes}\r\n", range.start, range.end - 1)
}

/// A delimiter that does not occur in the content: it holds a hash of that very content, and who could write
/// content that holds its own hash could break more than this. Needs no chance, so answers stay the same.
fn boundary(etag: &[u8]) -> String {
    let mut boundary = String::from("staunch-");
    for byte in etag.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        let _ = boundary.write_char(char::from(*byte));
    }
    boundary
}
