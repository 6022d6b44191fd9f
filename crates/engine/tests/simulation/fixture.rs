//! The application under simulation: answers whose every byte can be foretold from the request's path.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use staunch_engine::{Address, Answer, Answered, Departure, Handler, Outbox, Owner, Piece, Post, Slice};
use staunch_netio::simulated::Random;
use staunch_protocol::Status;
use staunch_protocol::{Method, Request};

/// Requests that wait for their answer.
pub(crate) type Waiting = Rc<RefCell<Vec<Address>>>;

/// Sends mail to some of those that wait, one at least, in any order.
pub(crate) fn answer_some(waiting: &Waiting, post: &Post<()>, random: &mut Random) {
    let mut waiting = waiting.borrow_mut();
    for _ in 0..random.below(waiting.len() + 1).max(waiting.len().min(1)) {
        let place = random.below(waiting.len());
        post.send(waiting.swap_remove(place), ());
    }
}

/// Answers `/KIND/SIZE` with SIZE foretellable bytes. KIND is how: `own`, `shared`, `block` or `later`.
pub(crate) struct Fixture {
    pub(crate) waiting: Waiting,
    /// How many requests it was given.
    pub(crate) asked: Rc<Cell<u64>>,
    /// How many of those that waited went away.
    pub(crate) gone: Rc<Cell<u64>>,
    /// A canary: one byte of every answer longer than this is wrong.
    pub(crate) spoil_above: usize,
    /// Takes the time an answer takes.
    pub(crate) work: Box<dyn Fn()>,
    /// Prepared blocks by path, with the length of their fields.
    pub(crate) blocks: HashMap<Vec<u8>, (Arc<[u8]>, usize)>,
}

/// The body of a path.
pub(crate) fn body(path: &[u8], size: usize) -> Vec<u8> {
    (0..size).map(|place| path[place % path.len()] ^ (place >> 8) as u8).collect()
}

/// Kind and size of a path, or nothing if it is not one of ours.
pub(crate) fn parse(path: &[u8]) -> Option<(&str, usize)> {
    let (kind, size) = std::str::from_utf8(path).ok()?.strip_prefix('/')?.split_once('/')?;
    Some((kind, size.parse().ok()?))
}

impl Handler for Fixture {
    type Mail = ();

    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.asked.set(self.asked.get() + 1);
        match parse(request.path) {
            Some(("later", _)) if matches!(request.method, Method::Get | Method::Head) => {
                self.waiting.borrow_mut().push(answer.address());
                answer.later()
            }
            _ => self.answer(request, answer),
        }
    }

    fn gives_way(&self, request: &Request<'_>) -> bool {
        request.path.starts_with(b"/own")
    }

    fn resume(&mut self, (): (), request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.answer(request, answer)
    }

    fn left(&mut self, _: Owner, _: Address, departure: Departure, _: &Outbox) {
        self.gone.set(self.gone.get() + u64::from(departure == Departure::Gone));
    }
}

impl Fixture {
    pub(crate) fn new(waiting: &Waiting, spoil_above: usize) -> Self {
        Self {
            waiting: waiting.clone(),
            asked: Rc::default(),
            gone: Rc::default(),
            spoil_above,
            work: Box::new(|| ()),
            blocks: HashMap::new(),
        }
    }

    fn answer(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        (self.work)();
        if !matches!(request.method, Method::Get | Method::Head) {
            return answer.bytes(Status::METHOD_NOT_ALLOWED, b"Content-Length: 3\r\n", b"no\n");
        }
        let Some((kind, size)) = parse(request.path) else {
            return answer.bytes(Status::NOT_FOUND, b"Content-Length: 0\r\n", b"");
        };
        let mut bytes = body(request.path, size);
        if size > self.spoil_above {
            bytes[size / 2] ^= 1;
        }
        let fields = format!("Content-Length: {size}\r\n");
        if kind == "block" {
            let fresh = || ([fields.as_bytes(), b"\r\n", &bytes].concat().into(), fields.len());
            let (block, fields_bytes) = self.blocks.entry(request.path.to_vec()).or_insert_with(fresh);
            return answer.block(Status::OK, block, *fields_bytes);
        }
        if kind == "own" {
            return answer.bytes(Status::OK, fields.as_bytes(), &bytes);
        }
        let bytes: Arc<[u8]> = bytes.into();
        let cut = size / 3;
        let first = Slice { bytes: Arc::clone(&bytes), start: 0, end: cut };
        let middle = bytes[cut..size / 2].to_vec();
        let last = Slice { start: size / 2, end: size, bytes };
        let pieces = [Piece::Shared(first), Piece::Bytes(middle), Piece::Shared(last)];
        answer.pieces(Status::OK, fields.as_bytes(), pieces)
    }
}
