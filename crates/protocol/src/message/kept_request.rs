//! A request that outlives the bytes it came in.
//!
//! It owns a copy of the head, so that nothing is parsed again. It must never be made on the path of a
//! request that is answered at once.

use super::request::{Kept, Request, Span};
use super::{BodyIn, Method, Version};

/// A request with its own head.
#[derive(Debug)]
pub struct KeptRequest {
    /// The head, and behind it whatever part of the request does not stand in it.
    bytes: Box<[u8]>,
    head_bytes: u16,
    path: Span,
    query: Option<Span>,
    host: Span,
    method: Method,
    version: Version,
    content: BodyIn,
    repeated: u16,
    kept: Kept,
}

impl KeptRequest {
    /// A copy.
    pub fn of(request: &Request<'_>) -> Self {
        let mut bytes = request.head.to_vec();
        let mut place = |part: &[u8]| {
            Span::of(part, request.head).unwrap_or_else(|| {
                let start = bytes.len();
                bytes.extend_from_slice(part);
                Span::new(start, bytes.len())
            })
        };
        let (path, host) = (place(request.path), place(request.host));
        let query = request.query.map(&mut place);
        Self {
            bytes: bytes.into(),
            head_bytes: request.head.len() as u16,
            path,
            query,
            host,
            method: request.method,
            version: request.version,
            content: request.content,
            repeated: request.repeated,
            kept: request.kept,
        }
    }

    /// The request.
    pub fn get(&self) -> Request<'_> {
        let head = self.bytes.get(..usize::from(self.head_bytes)).unwrap_or_default();
        Request {
            method: self.method,
            path: self.path.slice(&self.bytes),
            query: self.query.map(|query| query.slice(&self.bytes)),
            host: self.host.slice(&self.bytes),
            version: self.version,
            content: self.content,
            repeated: self.repeated,
            head,
            kept: self.kept,
        }
    }

    /// Memory it takes beside itself, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len()
    }
}
