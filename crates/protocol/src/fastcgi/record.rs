//! Records: a head of eight bytes, content, padding.
//!
//! It must never know what a content means.

/// Bytes of a record's head.
pub(super) const HEAD_BYTES: usize = 8;
/// Longest content of a record.
pub(super) const CONTENT_BYTES_MAX: usize = 0xffff;

const VERSION: u8 = 1;
/// The number of a request as it is written, before [`renumber`] gives it that of its connection.
const REQUEST: u16 = 1;

/// What a record is, as far as it is written or read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecordKind {
    BeginRequest = 1,
    EndRequest = 3,
    Params = 4,
    Stdin = 5,
    Stdout = 6,
    Stderr = 7,
}

/// The head of a record that an application sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) kind: RecordKind,
    pub(super) content_bytes: u16,
    pub(super) padding_bytes: u8,
}

impl RecordHead {
    /// Reads a head; `None` if no application may send it in answer to the request of this number.
    pub(super) fn read(head: [u8; HEAD_BYTES], request: u16) -> Option<Self> {
        let [VERSION, kind, request_high, request_low, content_high, content_low, padding_bytes, _] = head
        else {
            return None;
        };
        let kind = match kind {
            3 => RecordKind::EndRequest,
            6 => RecordKind::Stdout,
            7 => RecordKind::Stderr,
            _ => return None,
        };
        let content_bytes = u16::from_be_bytes([content_high, content_low]);
        let is_ours = u16::from_be_bytes([request_high, request_low]) == request;
        let has_form = kind != RecordKind::EndRequest || usize::from(content_bytes) == HEAD_BYTES;
        (is_ours && has_form).then_some(Self { kind, content_bytes, padding_bytes })
    }
}

/// Gives whole records, as they are written here, the number of another request.
pub fn renumber(mut records: &mut [u8], request: u16) {
    while let Some((head, rest)) = records.split_first_chunk_mut::<HEAD_BYTES>() {
        let [_, _, request_high, request_low, content_high, content_low, padding_bytes, _] = head;
        [*request_high, *request_low] = request.to_be_bytes();
        let content_bytes = usize::from(u16::from_be_bytes([*content_high, *content_low]));
        let record_bytes = content_bytes + usize::from(*padding_bytes);
        records = rest.get_mut(record_bytes..).unwrap_or_default();
    }
}

/// Appends a content in as many records as it takes; an empty one in none.
pub(super) fn push_content(kind: RecordKind, content: &[u8], out: &mut Vec<u8>) {
    for content in content.chunks(CONTENT_BYTES_MAX) {
        push_record(kind, content, out);
    }
}

/// Appends a record; its content may be empty.
pub(super) fn push_record(kind: RecordKind, content: &[u8], out: &mut Vec<u8>) {
    debug_assert!(content.len() <= CONTENT_BYTES_MAX);
    let [content_high, content_low] = (content.len() as u16).to_be_bytes();
    let [request_high, request_low] = REQUEST.to_be_bytes();
    out.extend_from_slice(&[VERSION, kind as u8, request_high, request_low, content_high, content_low, 0, 0]);
    out.extend_from_slice(content);
}
