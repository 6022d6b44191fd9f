//! The wall of one secured connection: what stands between its bytes and its session.
//!
//! It owns keys, the beginning of a record that was cut, and what is sealed and not yet sent. It must never
//! keep a byte of content: records are opened where they were received, and answers stand in their container
//! until they are drawn.

use std::ops::Range;

use staunch_netio::{Outgoing, WarmedPart};
use staunch_tls::{Agreed, Asleep, Awake, Fault, Handshake, HandshakeProgress};

use super::drawing::{Drawing, Drawn, FileInput};

/// What stands between a connection and its bytes.
#[derive(Default)]
pub(crate) enum Wall {
    /// Nothing: it is a plain connection, or nobody's.
    #[default]
    None,
    /// The first bytes of a handshake are awaited until then.
    Awaited { until_ms: u64 },
    /// A handshake at work, or keys in use.
    Active(Box<ActiveWall>),
    /// What is kept while nothing happens.
    /// With the name, and whether the session was resumed.
    Asleep(Box<Asleep>, NameMark, bool),
}

/// Tells the name that a client asked for from others, without being it; 0 if it asked for none.
pub(crate) type NameMark = u32;

// A slot of a worker's table of walls.
const _: () = assert!(size_of::<Wall>() <= 16);

/// A wall that is at work.
pub(crate) struct ActiveWall {
    pub(crate) keys: WallKeys,
    /// The name that the client asked for.
    pub(crate) name: NameMark,
    /// Whether a ticket of ours began it, which the client can have from an earlier connection alone.
    pub(crate) is_resumed: bool,
    /// The beginning of a record whose rest has not come.
    kept: Vec<u8>,
    /// Sealed already, and to be sent before all else: handshake messages, tickets, key updates, alerts.
    pub(crate) owed: Vec<u8>,
    /// The answer that is sent piece by piece.
    drawing: Option<Drawing>,
    /// Bytes of the piece in flight that the kernel has not reported as taken.
    pub(crate) in_flight_bytes: u64,
    /// The next bytes of the answer are read ahead by another thread, and nothing is in flight.
    pub(crate) waits_for_disk: bool,
    /// The connection ends behind what stands to be sent.
    pub(crate) is_last: bool,
    /// The peer was told that nothing follows.
    pub(crate) is_closed: bool,
    /// When bytes came or went last.
    pub(crate) used_ms: u64,
}

/// The state of a wall at work.
#[expect(clippy::large_enum_variant, reason = "keys in use are the usual case, and stand in a box already")]
pub(crate) enum WallKeys {
    /// A handshake is at work.
    Shaking(Box<Shaking>),
    /// Records are opened and sealed.
    Awake(Awake),
    /// A fault has ended it.
    Gone,
}

/// A handshake at work.
pub(crate) struct Shaking {
    pub(crate) handshake: Handshake,
    pub(crate) until_ms: u64,
    /// Tells it from others that had the same slot.
    pub(crate) number: u32,
}

/// What was opened of the bytes that came.
pub(crate) struct OpenedInput {
    pub(crate) content: OpenedContent,
    /// The peer will send no more.
    pub(crate) is_end: bool,
    /// Empty records, warnings and key updates.
    pub(crate) oddities: u32,
}

/// Where opened bytes stand.
pub(crate) enum OpenedContent {
    /// In the buffer they came in.
    Input(Range<usize>),
    /// In a buffer of their own, because a record came in pieces.
    Joined(Vec<u8>, Range<usize>),
}

impl ActiveWall {
    pub(crate) fn new(keys: WallKeys, name: NameMark, now_ms: u64) -> Self {
        Self {
            keys,
            name,
            is_resumed: false,
            kept: Vec::new(),
            owed: Vec::new(),
            drawing: None,
            in_flight_bytes: 0,
            waits_for_disk: false,
            is_last: false,
            is_closed: false,
            used_ms: now_ms,
        }
    }

    /// Takes bytes of a handshake; what it agreed upon, once it is over.
    pub(crate) fn shake(&mut self, bytes: &[u8]) -> Result<Option<Agreed>, Fault> {
        let WallKeys::Shaking(shaking) = &mut self.keys else { return Ok(None) };
        let (taken, result) = shaking.handshake.feed(bytes, &mut self.owed);
        if result == Ok(HandshakeProgress::Pending) {
            return Ok(None);
        }
        let WallKeys::Shaking(shaking) = std::mem::replace(&mut self.keys, WallKeys::Gone) else {
            return Ok(None);
        };
        result?;
        let Shaking { handshake, .. } = *shaking;
        let (awake, agreed) = handshake.finish()?;
        self.keys = WallKeys::Awake(awake);
        self.kept.extend_from_slice(&bytes[taken..]);
        Ok(Some(agreed))
    }

    /// Opens the records that are whole with these bytes, which may be none; `None` without keys.
    pub(crate) fn open(&mut self, input: &mut [u8]) -> Result<Option<OpenedInput>, Fault> {
        let WallKeys::Awake(awake) = &mut self.keys else { return Ok(None) };
        let result = if self.kept.is_empty() {
            awake.open(input, &mut self.owed).map(|opened| {
                self.kept.extend_from_slice(&input[opened.taken..]);
                let content = OpenedContent::Input(opened.plain);
                OpenedInput { content, is_end: opened.is_end, oddities: opened.oddities }
            })
        } else {
            self.kept.extend_from_slice(input);
            let mut joined = std::mem::take(&mut self.kept);
            awake.open(&mut joined, &mut self.owed).map(|opened| {
                self.kept.extend_from_slice(&joined[opened.taken..]);
                let content = OpenedContent::Joined(joined, opened.plain);
                OpenedInput { content, is_end: opened.is_end, oddities: opened.oddities }
            })
        };
        if result.is_err() {
            self.give_up();
        }
        result.map(Some)
    }

    /// Nothing more is opened or sealed; what is owed may still be sent.
    fn give_up(&mut self) {
        self.keys = WallKeys::Gone;
        self.kept = Vec::new();
    }

    /// Takes the answer that is not drawn to its end.
    pub(crate) fn take_drawing(&mut self) -> Option<Box<Outgoing>> {
        self.drawing.take().map(Drawing::into_outgoing)
    }

    /// The next answer; the one before was drawn to its end.
    pub(crate) fn begin_drawing(&mut self, outgoing: Box<Outgoing>) {
        self.drawing = Some(Drawing::new(outgoing));
    }

    /// Whether an answer is not drawn to its end.
    pub(crate) fn is_drawing(&self) -> bool {
        self.drawing.is_some()
    }

    /// Whether a handshake is at work.
    pub(crate) fn is_shaking(&self) -> bool {
        matches!(self.keys, WallKeys::Shaking(_))
    }

    /// Whether something stands to be sent.
    pub(crate) fn has_something(&self) -> bool {
        !self.owed.is_empty() || self.is_drawing()
    }

    /// Puts what is owed into `output`, and so much of the answer. An answer drawn to its end stays until
    /// [`Self::take_drawing`].
    pub(crate) fn fill(
        &mut self,
        file_input: &mut FileInput,
        bytes_max: usize,
        output: &mut Vec<u8>,
    ) -> Drawn {
        output.append(&mut std::mem::take(&mut self.owed));
        match (&mut self.drawing, &mut self.keys) {
            (Some(drawing), WallKeys::Awake(awake)) => drawing.draw(awake, file_input, bytes_max, output),
            (Some(_), _) => Drawn::Failed,
            (None, _) => Drawn::All,
        }
    }

    /// See [`Drawing::warm`].
    pub(crate) fn warm(&mut self, file_input: &FileInput, token: u64) -> bool {
        self.waits_for_disk = true;
        self.drawing.as_ref().is_some_and(|drawing| drawing.warm(file_input, token))
    }

    /// See [`Drawing::note_warmed`].
    pub(crate) fn note_warmed(&mut self, warmed: WarmedPart) {
        if self.waits_for_disk
            && let Some(drawing) = &mut self.drawing
        {
            drawing.note_warmed(warmed);
        }
    }

    /// Tells the peer that nothing follows, once.
    pub(crate) fn close(&mut self, output: &mut Vec<u8>) {
        if let WallKeys::Awake(awake) = &mut self.keys
            && !self.is_closed
        {
            awake.close(output);
        }
        self.is_closed = true;
    }

    /// What is kept of it if nothing is under way.
    pub(crate) fn sleep(&self) -> Option<Asleep> {
        let is_busy = self.has_something() || self.in_flight_bytes > 0 || self.is_last || self.is_closed;
        match &self.keys {
            WallKeys::Awake(awake) if !is_busy && self.kept.is_empty() => awake.sleep(),
            _ => None,
        }
    }

    /// Memory that it takes, in bytes. What is in flight is its connection's.
    pub(crate) fn held_bytes(&self) -> usize {
        let handshake = match &self.keys {
            WallKeys::Shaking(shaking) => shaking.handshake.held_bytes(),
            WallKeys::Awake(_) | WallKeys::Gone => 0,
        };
        let drawing = self.drawing.as_ref().map_or(0, Drawing::held_bytes);
        size_of::<Self>() + handshake + self.kept.capacity() + self.owed.capacity() + drawing
    }
}
