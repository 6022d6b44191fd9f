//! Heads that came before, on whatever connection, with what was read of them.
//!
//! It owns nothing but speed: a crowd asks for the same with the same words, those of some browsers, and to
//! compare costs a tenth of what reading does. It must never give anything but what reading would.

use super::{Head, parse_at_once};
use crate::message::{BodyIn, Kept, Method, Request, Span, Version};

/// Longer heads are not remembered.
const BYTES_MAX: usize = 2048;
/// So many heads are remembered, for the browsers of a crowd.
const HEADS_MAX: usize = 8;
/// When all places are taken, so many unlike heads make the last of them a remembered one. To remember each
/// would cost those more who all ask for something else.
const UNLIKE_COUNT: u32 = 64;

/// Remembers some heads. One a thread serves all its connections.
#[derive(Debug, Default)]
pub struct RequestMemory {
    heads: Vec<Remembered>,
    /// Heads since the last was remembered that were like none.
    unlike: u32,
    /// The place that is looked at next when one is to be given away.
    hand: usize,
}

#[derive(Debug)]
struct Remembered {
    bytes: Vec<u8>,
    read: Read,
    /// Whether it came since the hand was here.
    came: bool,
}

/// What a head says, with places instead of slices.
#[derive(Debug, Clone, Copy)]
struct Read {
    method: Method,
    path: Span,
    query: Option<Span>,
    host: Span,
    version: Version,
    content: BodyIn,
    repeated: u16,
    kept: Kept,
    keep_alive: bool,
    expects_continue: bool,
    wants_tunnel: bool,
}

const _: () = assert!(BYTES_MAX <= u16::MAX as usize);

impl RequestMemory {
    /// Remembers nothing yet.
    pub const fn new() -> Self {
        Self { heads: Vec::new(), unlike: 0, hand: 0 }
    }

    /// Gives what [`parse_at_once`] gives, from memory where the same head came before.
    #[inline]
    pub(in crate::http1) fn parse_at_once<'a>(&mut self, input: &'a [u8]) -> Option<Head<'a>> {
        for remembered in &mut self.heads {
            if let Some(head) = remembered.at_start_of(input) {
                remembered.came = true;
                return Some(remembered.read.of(head));
            }
        }
        let head = parse_at_once(input)?;
        self.unlike += 1;
        if self.heads.len() < HEADS_MAX || self.unlike >= UNLIKE_COUNT {
            self.remember(&head);
        }
        Some(head)
    }

    /// Gives the head a place: a free one, or that of one that did not come since the hand was there last
    /// (the clock algorithm).
    #[cold]
    fn remember(&mut self, head: &Head<'_>) {
        self.unlike = 0;
        let bytes = head.request.head;
        let Some(read) = Read::new(head).filter(|_| bytes.len() <= BYTES_MAX) else { return };
        if self.heads.len() < HEADS_MAX {
            self.heads.push(Remembered { bytes: bytes.to_vec(), read, came: false });
            return;
        }
        while std::mem::take(&mut self.heads[self.hand].came) {
            self.hand = (self.hand + 1) % HEADS_MAX;
        }
        let given = &mut self.heads[self.hand];
        given.read = read;
        given.bytes.clear();
        given.bytes.extend_from_slice(bytes);
        self.hand = (self.hand + 1) % HEADS_MAX;
    }
}

impl Remembered {
    /// A whole head ends with its blank line, so what begins with the same bytes has the same head. The last
    /// of them are compared first: they tell heads of other lengths apart.
    #[inline]
    fn at_start_of<'a>(&self, input: &'a [u8]) -> Option<&'a [u8]> {
        let head = input.get(..self.bytes.len())?;
        (head.last_chunk::<4>() == self.bytes.last_chunk() && head == self.bytes).then_some(head)
    }
}

impl Read {
    /// `None` if a part does not stand in the head, but for it.
    fn new(head: &Head<'_>) -> Option<Self> {
        let request = &head.request;
        let place = |part: &[u8]| Span::of(part, request.head);
        Some(Self {
            method: request.method,
            path: place(request.path)?,
            query: match request.query {
                Some(query) => Some(place(query)?),
                None => None,
            },
            host: place(request.host)?,
            version: request.version,
            content: request.content,
            repeated: request.repeated,
            kept: request.kept,
            keep_alive: head.keep_alive,
            expects_continue: head.expects_continue,
            wants_tunnel: head.wants_tunnel,
        })
    }

    #[inline]
    fn of<'a>(&self, head: &'a [u8]) -> Head<'a> {
        Head {
            request: Request {
                method: self.method,
                path: self.path.slice(head),
                query: self.query.map(|query| query.slice(head)),
                host: self.host.slice(head),
                version: self.version,
                content: self.content,
                repeated: self.repeated,
                head,
                kept: self.kept,
            },
            keep_alive: self.keep_alive,
            expects_continue: self.expects_continue,
            wants_tunnel: self.wants_tunnel,
        }
    }
}
