//! `/live.js`: a client for pages, made once in each coding.
//!
//! It must never depend on what is published.

use std::sync::Arc;

use staunch_engine::{Answer, Answered, Piece, Slice};
use staunch_live::Coding;
use staunch_protocol::{Request, Status};
use xxhash_rust::xxh3::xxh3_64;

use super::events::coding;
use crate::content::encode::encode_quickly;
use crate::content::negotiate::Encoding;

const TEXT: &[u8] = include_bytes!("../../../../packages/live/live.js");

/// The client for pages, in each coding.
pub(crate) struct Script {
    plain: Coded,
    gzip: Coded,
    zstd: Coded,
}

/// The client for pages in one coding: its fields and its body.
struct Coded {
    fields: Vec<u8>,
    tag: String,
    body: Arc<[u8]>,
}

impl Script {
    pub(crate) fn new() -> Self {
        let [gzip, zstd] = [Encoding::Gzip, Encoding::Zstd].map(|encoding| {
            let body = encode_quickly(encoding, TEXT);
            body.map_or_else(|| Coded::new(None, TEXT), |body| Coded::new(Some(encoding.name()), &body))
        });
        Self { plain: Coded::new(None, TEXT), gzip, zstd }
    }

    /// Answers a request for it.
    pub(crate) fn answer(&self, lines: &[u8], request: &Request<'_>, answer: Answer<'_>) -> Answered {
        let coded = match coding(request) {
            Coding::Gzip => &self.gzip,
            Coding::Zstd => &self.zstd,
            Coding::Deflate | Coding::Identity => &self.plain,
        };
        let mut tags = request.values(b"if-none-match").flat_map(|value| value.split(|byte| *byte == b','));
        if tags.any(|tag| tag.trim_ascii() == coded.tag.as_bytes()) {
            let fields = format!("ETag: {}\r\nVary: Accept-Encoding\r\n", coded.tag);
            return answer.bytes(Status::NOT_MODIFIED, &[lines, fields.as_bytes()].concat(), b"");
        }
        let slice = Slice { start: 0, end: coded.body.len(), bytes: Arc::clone(&coded.body) };
        answer.pieces(Status::OK, &[lines, &coded.fields[..]].concat(), [Piece::Shared(slice)])
    }
}

impl Coded {
    fn new(encoding: Option<&str>, body: &[u8]) -> Self {
        let tag = format!("\"{:x}\"", xxh3_64(body));
        let encoding = encoding.map_or(String::new(), |name| format!("Content-Encoding: {name}\r\n"));
        let fields = format!(
            "Content-Type: text/javascript; charset=utf-8\r\nContent-Length: {}\r\nETag: {tag}\r\n{encoding}\
             Cache-Control: no-cache\r\nVary: Accept-Encoding\r\nX-Content-Type-Options: nosniff\r\n",
            body.len()
        );
        Self { fields: fields.into_bytes(), tag, body: body.into() }
    }
}
