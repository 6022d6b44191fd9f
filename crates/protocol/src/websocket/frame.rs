//! Frames of a WebSocket (RFC 6455, section 5.2).
//!
//! It owns their heads and masks. It must never know what a frame is part of, nor keep a byte of it.

use crate::limits::CONTROL_BYTES_MAX;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// A further part of a message.
    Continuation,
    /// A message of text, or its first part.
    Text,
    /// A message of bytes, or its first part.
    Binary,
    /// The peer ends.
    Close,
    /// The peer asks for a sign of life.
    Ping,
    /// The sign of life.
    Pong,
}

impl Opcode {
    fn of_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    /// Whether it is a control frame (section 5.5): short, whole, and allowed between parts of a message.
    pub fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// The last part of its message.
    pub last: bool,
    /// The first reserved bit: the message is compressed (RFC 7692, section 6).
    pub compressed: bool,
    /// What the frame is.
    pub opcode: Opcode,
    /// The mask of its payload, on frames of clients.
    pub mask: Option<[u8; 4]>,
    /// Bytes of payload.
    pub length: u64,
}

/// The longest head: two bytes, eight of length, four of mask.
pub(super) const HEAD_BYTES_MAX: usize = 14;

impl FrameHead {
    /// Reads a head: how many bytes it takes, and what it says; `None` while it is not complete. A head that
    /// is faulty is refused as soon as the fault is there.
    ///
    /// # Errors
    /// The sentence for the close frame; its code is 1002.
    pub fn read(bytes: &[u8]) -> Result<Option<(usize, Self)>, &'static str> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        if first & 0x30 != 0 {
            return Err("a reserved bit is set");
        }
        let opcode = Opcode::of_number(first & 0x0f).ok_or("an opcode that is not defined")?;
        let last = first & 0x80 != 0;
        let compressed = first & 0x40 != 0;
        if opcode.is_control() && !last {
            return Err("a control frame in parts");
        }
        if compressed && (opcode.is_control() || opcode == Opcode::Continuation) {
            return Err("a reserved bit is set on a frame that begins no message");
        }
        let Some(&second) = bytes.get(1) else { return Ok(None) };
        if opcode.is_control() && usize::from(second & 0x7f) > CONTROL_BYTES_MAX {
            return Err("a control frame longer than 125 bytes");
        }
        let Some((behind, length)) = read_length(second & 0x7f, bytes)? else { return Ok(None) };
        if second & 0x80 == 0 {
            return Ok(Some((behind, Self { last, compressed, opcode, mask: None, length })));
        }
        let Some(mask) = bytes.get(behind..behind + 4).and_then(|mask| mask.try_into().ok()) else {
            return Ok(None);
        };
        Ok(Some((behind + 4, Self { last, compressed, opcode, mask: Some(mask), length })))
    }
}

/// Where the length ends, and the length; it has to be written as short as can be (section 5.2).
fn read_length(short: u8, bytes: &[u8]) -> Result<Option<(usize, u64)>, &'static str> {
    let long = |width: usize| {
        let digits = bytes.get(2..2 + width)?;
        Some(digits.iter().fold(0u64, |length, &digit| length << 8 | u64::from(digit)))
    };
    let (width, least) = match short {
        126 => (2, 126),
        127 => (8, 1 << 16),
        _ => return Ok(Some((2, u64::from(short)))),
    };
    match long(width) {
        None => Ok(None),
        Some(length) if length < least => Err("a length that is written longer than needed"),
        Some(length) if length >> 63 != 0 => Err("a length above 2^63"),
        Some(length) => Ok(Some((2 + width, length))),
    }
}

/// Appends the head of a frame.
pub fn append_frame_head(head: FrameHead, output: &mut Vec<u8>) {
    let first = u8::from(head.last) << 7 | u8::from(head.compressed) << 6 | head.opcode.number();
    let masked = u8::from(head.mask.is_some()) << 7;
    output.push(first);
    match head.length {
        0..=125 => output.push(masked | head.length as u8),
        126..=0xffff => {
            output.push(masked | 126);
            output.extend_from_slice(&(head.length as u16).to_be_bytes());
        }
        _ => {
            output.push(masked | 127);
            output.extend_from_slice(&head.length.to_be_bytes());
        }
    }
    output.extend_from_slice(head.mask.as_ref().map_or(&[], |mask| &mask[..]));
}

/// Appends a whole frame, its payload masked if there is a mask.
pub fn append_frame(
    opcode: Opcode,
    compressed: bool,
    mask: Option<[u8; 4]>,
    payload: &[u8],
    output: &mut Vec<u8>,
) {
    let length = payload.len() as u64;
    append_frame_head(FrameHead { last: true, compressed, opcode, mask, length }, output);
    let start = output.len();
    output.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(mask, 0, &mut output[start..]);
    }
}

/// Masks or unmasks bytes, which stand `place` bytes behind the start of their payload (section 5.3).
pub fn apply_mask(mask: [u8; 4], place: u64, bytes: &mut [u8]) {
    let turned: [u8; 4] = std::array::from_fn(|index| mask[(place as usize + index) % 4]);
    let word = u64::from_ne_bytes(std::array::from_fn(|index| turned[index % 4]));
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for eight in words {
        *eight = (u64::from_ne_bytes(*eight) ^ word).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(turned.iter().cycle()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: FrameHead =
        FrameHead { last: true, compressed: false, opcode: Opcode::Text, mask: None, length: 0 };

    #[test]
    fn heads_of_the_standard() {
        let mask = Some([0x37, 0xfa, 0x21, 0x3d]);
        let table: &[(&[u8], FrameHead)] = &[
            (&[0x81, 0x05], FrameHead { length: 5, ..TEXT }),
            (&[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d], FrameHead { length: 5, mask, ..TEXT }),
            (&[0x01, 0x03], FrameHead { length: 3, last: false, ..TEXT }),
            (&[0x80, 0x02], FrameHead { length: 2, opcode: Opcode::Continuation, ..TEXT }),
            (&[0x89, 0x05], FrameHead { length: 5, opcode: Opcode::Ping, ..TEXT }),
            (&[0x82, 0x7e, 0x01, 0x00], FrameHead { length: 256, opcode: Opcode::Binary, ..TEXT }),
            (
                &[0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0],
                FrameHead { length: 65536, opcode: Opcode::Binary, ..TEXT },
            ),
            (&[0xc1, 0x07], FrameHead { length: 7, compressed: true, ..TEXT }),
        ];
        for (bytes, head) in table {
            assert_eq!(FrameHead::read(bytes), Ok(Some((bytes.len(), *head))), "{bytes:x?}");
            for cut in 0..bytes.len() {
                assert_eq!(FrameHead::read(&bytes[..cut]), Ok(None), "{bytes:x?} cut at {cut}");
            }
            let mut written = Vec::new();
            append_frame_head(*head, &mut written);
            assert_eq!(&written, bytes);
        }
    }

    #[test]
    fn faulty_heads_are_refused_at_the_fault() {
        let table: &[(&[u8], &str)] = &[
            (&[0x91], "a reserved bit is set"),
            (&[0xa1], "a reserved bit is set"),
            (&[0x83], "an opcode that is not defined"),
            (&[0x8b], "an opcode that is not defined"),
            (&[0x09], "a control frame in parts"),
            (&[0xc9], "a reserved bit is set on a frame that begins no message"),
            (&[0xc0], "a reserved bit is set on a frame that begins no message"),
            (&[0x88, 0xfe], "a control frame longer than 125 bytes"),
            (&[0x81, 0x7e, 0, 125], "a length that is written longer than needed"),
            (&[0x81, 0x7f, 0, 0, 0, 0, 0, 0, 255, 255], "a length that is written longer than needed"),
            (&[0x81, 0x7f, 0x80, 0, 0, 0, 0, 0, 0, 0], "a length above 2^63"),
        ];
        for (bytes, fault) in table {
            assert_eq!(FrameHead::read(bytes), Err(*fault), "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn a_head_reads_as_it_was_written(
            last: bool, number in 0u8..11, compressed: bool, mask: Option<[u8; 4]>,
            length in 0u64..1 << 40, short: bool,
        ) {
            let Some(opcode) = Opcode::of_number(number) else { return Ok(()) };
            let control = opcode.is_control();
            let compressed = compressed && !control && opcode != Opcode::Continuation;
            let length = if control || short { length % 126 } else { length };
            let head = FrameHead { last: last || control, compressed, opcode, mask, length };
            let mut bytes = Vec::new();
            append_frame_head(head, &mut bytes);
            prop_assert!(bytes.len() <= HEAD_BYTES_MAX);
            prop_assert_eq!(FrameHead::read(&bytes), Ok(Some((bytes.len(), head))));
        }

        #[test]
        fn a_mask_is_applied_alike_in_any_pieces(mask: [u8; 4], bytes: Vec<u8>, cut: prop::sample::Index) {
            let expected: Vec<u8> = bytes.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect();
            let cut = cut.index(bytes.len() + 1);
            let mut pieces = bytes;
            let (before, behind) = pieces.split_at_mut(cut);
            apply_mask(mask, 0, before);
            apply_mask(mask, cut as u64, behind);
            prop_assert_eq!(pieces, expected);
        }
    }
}
