//! Forms: the ways in which the same update is sent.
//!
//! It owns their numbering and what surrounds bytes that were not compressed. It must never compress: that is
//! the encoder's, and only the hub has one.

use std::num::NonZeroU8;

use staunch_protocol::event_stream::{Framing, append_comment, append_framed};
use staunch_protocol::websocket::{Opcode, append_frame};

use crate::centrifugo::Language;
use crate::update::Bytes;

/// What of an update is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The value alone.
    Bare,
    /// The value with its topic.
    Enveloped,
    /// As enveloped; where the reader has the value before, only what changed.
    Patch,
}

/// How it is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Server-sent events in chunks, for HTTP/1.1.
    Chunked,
    /// Server-sent events as they are, for HTTP/1.0 and HTTP/2.
    Plain,
    /// A message of a WebSocket: a bare value, or JSON.
    Socket,
    /// A message of a WebSocket with Centrifugo's Protobuf, which has no bare values.
    Protobuf,
}

impl Transport {
    /// That of messages in this language.
    pub fn of_language(language: Language) -> Self {
        match language {
            Language::Json => Self::Socket,
            Language::Protobuf => Self::Protobuf,
        }
    }

    /// The language of messages; `None` where there are none.
    pub fn language(self) -> Option<Language> {
        match self {
            Self::Chunked | Self::Plain => None,
            Self::Socket => Some(Language::Json),
            Self::Protobuf => Some(Language::Protobuf),
        }
    }
}

/// How it is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Not.
    Identity,
    /// `Content-Encoding: gzip`.
    Gzip,
    /// `Content-Encoding: deflate`, or permessage-deflate.
    Deflate,
    /// `Content-Encoding: zstd`. WebSockets have none; they are not compressed then.
    Zstd,
}

impl Coding {
    /// What a body begins with. All that follows is the same for every reader: with gzip (RFC 1952, section
    /// 2.3) and zlib (RFC 1950, section 2.2) blocks of raw deflate, with zstd one frame per piece.
    pub fn stream_head(self) -> &'static [u8] {
        match self {
            Self::Gzip => &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
            Self::Deflate => &[0x78, 0x9c],
            Self::Identity | Self::Zstd => &[],
        }
    }
}

/// A shape, a transport and a coding. Gzip and deflate are one form: their blocks are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Form(NonZeroU8);

/// What is done to the bytes of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Blocks,
    Frames,
}

const TRANSPORTS: [(Transport, Compression); 10] = [
    (Transport::Chunked, Compression::None),
    (Transport::Chunked, Compression::Blocks),
    (Transport::Chunked, Compression::Frames),
    (Transport::Plain, Compression::None),
    (Transport::Plain, Compression::Blocks),
    (Transport::Plain, Compression::Frames),
    (Transport::Socket, Compression::None),
    (Transport::Socket, Compression::Blocks),
    (Transport::Protobuf, Compression::None),
    (Transport::Protobuf, Compression::Blocks),
];
const SHAPES: [Shape; 3] = [Shape::Bare, Shape::Enveloped, Shape::Patch];

impl Form {
    /// How many there are.
    pub const COUNT: usize = SHAPES.len() * TRANSPORTS.len();

    /// The form of these.
    pub fn new(shape: Shape, transport: Transport, coding: Coding) -> Self {
        let compression = match (coding, transport) {
            (Coding::Identity, _) | (Coding::Zstd, Transport::Socket | Transport::Protobuf) => {
                Compression::None
            }
            (Coding::Gzip | Coding::Deflate, _) => Compression::Blocks,
            (Coding::Zstd, _) => Compression::Frames,
        };
        let place = TRANSPORTS.iter().position(|&entry| entry == (transport, compression)).unwrap_or(0);
        Self::numbered(shape as usize * TRANSPORTS.len() + place)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self::numbered)
    }

    /// What is told.
    pub fn shape(self) -> Shape {
        SHAPES[self.index() / TRANSPORTS.len()]
    }

    /// How it is carried.
    pub fn transport(self) -> Transport {
        TRANSPORTS[self.index() % TRANSPORTS.len()].0
    }

    pub(crate) fn compression(self) -> Compression {
        TRANSPORTS[self.index() % TRANSPORTS.len()].1
    }

    /// Its number, below [`COUNT`](Self::COUNT).
    pub fn index(self) -> usize {
        usize::from(self.0.get()) - 1
    }

    /// The form with this number.
    pub fn of_index(index: u8) -> Option<Self> {
        (usize::from(index) < Self::COUNT).then(|| Self::numbered(index.into()))
    }

    /// The number stands one higher, so that a reader leaves room for what is no reader.
    fn numbered(index: usize) -> Self {
        Self(NonZeroU8::MIN.saturating_add(index as u8))
    }

    /// The form without differences: what a reader gets that has no value yet.
    pub(crate) fn whole(self) -> Self {
        match self.shape() {
            Shape::Patch => Self::numbered(self.index() - TRANSPORTS.len()),
            _ => self,
        }
    }

    /// Bytes for one reader alone, in this form without being compressed: an event of a stream, or a message
    /// of a WebSocket. For heads, marks and signs of life, which are short.
    pub fn frame(self, payload: &[u8]) -> Bytes {
        let mut coded = Vec::with_capacity(payload.len() + 32);
        match (self.transport(), self.compression()) {
            (Transport::Socket | Transport::Protobuf, _) | (_, Compression::None) => {
                coded.extend_from_slice(payload)
            }
            (_, Compression::Blocks) => append_stored_blocks(payload, &mut coded),
            (_, Compression::Frames) => append_raw_frame(payload, &mut coded),
        }
        self.surround(&coded, false, true)
    }

    /// A sign of life: a comment, or the empty command that Centrifugo's clients answer.
    pub fn heartbeat(self) -> Bytes {
        if let Some(language) = self.transport().language() {
            return self.frame(language.sign_of_life());
        }
        let mut comment = Vec::new();
        append_comment("", &mut comment);
        self.frame(&comment)
    }

    /// The frame of the transport around bytes that are coded already.
    pub(crate) fn surround(self, coded: &[u8], compressed: bool, is_text: bool) -> Bytes {
        let mut output = Vec::with_capacity(coded.len() + 16);
        match self.transport() {
            Transport::Chunked => append_framed(Framing::Chunked, coded, &mut output),
            Transport::Plain => append_framed(Framing::Plain, coded, &mut output),
            Transport::Socket => {
                let opcode = if is_text { Opcode::Text } else { Opcode::Binary };
                append_frame(opcode, compressed, None, coded, &mut output);
            }
            Transport::Protobuf => append_frame(Opcode::Binary, compressed, None, coded, &mut output),
        }
        output.into()
    }
}

/// Appends raw deflate blocks that store bytes as they are (RFC 1951, section 3.2.4). They end at a byte.
pub(crate) fn append_stored_blocks(payload: &[u8], output: &mut Vec<u8>) {
    for piece in payload.chunks(usize::from(u16::MAX)) {
        let length = piece.len() as u16;
        output.push(0);
        output.extend_from_slice(&length.to_le_bytes());
        output.extend_from_slice(&(!length).to_le_bytes());
        output.extend_from_slice(piece);
    }
}

/// Most bytes of a block of zstd (RFC 8878, section 3.1.1.2.4).
const ZSTD_BLOCK_BYTES: usize = 128 * 1024;

/// Appends a frame of zstd that stores bytes as they are (RFC 8878, section 3.1.1), of a single segment; for
/// nothing, nothing.
pub(crate) fn append_raw_frame(payload: &[u8], output: &mut Vec<u8>) {
    if payload.is_empty() {
        return;
    }
    output.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd]);
    match payload.len() {
        length @ 0..=255 => output.extend_from_slice(&[0x20, length as u8]),
        length => {
            output.push(0xa0);
            output.extend_from_slice(&(length as u32).to_le_bytes());
        }
    }
    let blocks = payload.chunks(ZSTD_BLOCK_BYTES).count();
    for (place, piece) in payload.chunks(ZSTD_BLOCK_BYTES).enumerate() {
        let last = u32::from(place + 1 == blocks);
        output.extend_from_slice(&(last | (piece.len() as u32) << 3).to_le_bytes()[..3]);
        output.extend_from_slice(piece);
    }
}

/// A set of forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FormSet(u32);

const _: () = assert!(Form::COUNT <= u32::BITS as usize);

impl FormSet {
    /// Adds a form.
    pub fn insert(&mut self, form: Form) {
        self.0 |= 1 << form.index();
    }

    /// Takes a form away.
    pub fn remove(&mut self, form: Form) {
        self.0 &= !(1 << form.index());
    }

    /// Whether the form is one of them.
    pub fn contains(self, form: Form) -> bool {
        self.0 & (1 << form.index()) != 0
    }

    /// Those of both.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The forms.
    pub fn iter(self) -> impl Iterator<Item = Form> {
        Form::all().filter(move |form| self.contains(*form))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_numbered_without_a_hole() {
        for form in Form::all() {
            assert_eq!(Form::of_index(form.index() as u8), Some(form));
            let coding = match form.compression() {
                Compression::None => Coding::Identity,
                Compression::Blocks => Coding::Gzip,
                Compression::Frames => Coding::Zstd,
            };
            assert_eq!(Form::new(form.shape(), form.transport(), coding), form);
            assert_ne!(form.whole().shape(), Shape::Patch);
        }
        assert_eq!(Form::of_index(Form::COUNT as u8), None);
        let zstd = Form::new(Shape::Bare, Transport::Socket, Coding::Zstd);
        assert_eq!(zstd.compression(), Compression::None);
    }

    #[test]
    fn a_set_of_forms() {
        let (mut set, form) = (FormSet::default(), Form::numbered(23));
        set.insert(form);
        set.insert(Form::numbered(0));
        set.remove(Form::numbered(0));
        assert_eq!(set.iter().collect::<Vec<_>>(), [form]);
        assert!(!set.is_empty() && set.contains(form) && !set.contains(Form::numbered(0)));
    }

    #[test]
    fn raw_frames_of_zstd_are_read_by_zstd() {
        for length in [1, 255, 256, 70_000, 300_000] {
            let payload = vec![7; length];
            let mut frame = Vec::new();
            append_raw_frame(&payload, &mut frame);
            assert_eq!(zstd::stream::decode_all(&frame[..]).unwrap(), payload, "{length}");
        }
    }

    #[test]
    fn signs_of_life() {
        let heartbeat = |transport, coding| Form::new(Shape::Bare, transport, coding).heartbeat();
        assert_eq!(&heartbeat(Transport::Plain, Coding::Identity)[..], b":\n\n");
        assert_eq!(&heartbeat(Transport::Chunked, Coding::Identity)[..], b"3\r\n:\n\n\r\n");
        assert_eq!(&heartbeat(Transport::Plain, Coding::Gzip)[..], b"\0\x03\0\xfc\xff:\n\n");
        assert_eq!(&heartbeat(Transport::Socket, Coding::Deflate)[..], b"\x81\x02{}");
        assert_eq!(&heartbeat(Transport::Protobuf, Coding::Deflate)[..], b"\x82\x01\0");
    }
}
