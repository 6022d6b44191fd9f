//! Compression of messages (permessage-deflate, RFC 7692), without a context on either side.
//!
//! It owns inflating within a limit, and deflating so that any reader can inflate it. It must never keep
//! anything of a message for the next one: what is deflated here is the same for every reader, and an
//! [`Inflater`] serves all connections of a worker in turn.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// What a sync flush ends with, and a message leaves out (section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// What a buffer grows by while a message is inflated: a page.
const STEP_BYTES: usize = 4096;

/// Why a message cannot be inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InflateFault {
    /// Longer than the limit.
    TooLong,
    /// Not deflated data.
    Broken,
}

/// Inflates messages, one after the other. It holds some 50 KB, and room for the last message.
#[derive(Debug)]
pub struct Inflater {
    stream: Decompress,
    output: Vec<u8>,
}

impl Default for Inflater {
    fn default() -> Self {
        Self { stream: Decompress::new(false), output: Vec::new() }
    }
}

impl Inflater {
    /// Inflates a message of at most `bytes_max` bytes.
    pub(super) fn inflate(&mut self, message: &[u8], bytes_max: usize) -> Result<&[u8], InflateFault> {
        self.stream.reset(false);
        self.output.clear();
        let ended = self.feed(message, bytes_max)?;
        if !ended {
            self.feed(&TAIL, bytes_max)?;
        }
        Ok(&self.output)
    }

    /// Gives back the room of a message that was unusually long.
    pub fn shrink(&mut self, bytes: usize) {
        self.output.clear();
        self.output.shrink_to(bytes);
    }

    /// Whether a block said that it is the last: then no tail is to be added (section 7.2.3.4).
    fn feed(&mut self, mut input: &[u8], bytes_max: usize) -> Result<bool, InflateFault> {
        loop {
            let room = STEP_BYTES.min(bytes_max + 1 - self.output.len());
            self.output.reserve(room);
            let (taken, given) = (self.stream.total_in(), self.stream.total_out());
            let status = self
                .stream
                .decompress_vec(input, &mut self.output, FlushDecompress::Sync)
                .map_err(|_| InflateFault::Broken)?;
            input = &input[(self.stream.total_in() - taken) as usize..];
            if self.output.len() > bytes_max {
                return Err(InflateFault::TooLong);
            }
            match status {
                Status::StreamEnd if input.is_empty() => return Ok(true),
                Status::StreamEnd => self.stream.reset(false),
                _ if self.output.len() < self.output.capacity() && input.is_empty() => return Ok(false),
                _ if taken == self.stream.total_in() && given == self.stream.total_out() => {
                    return if input.is_empty() { Ok(false) } else { Err(InflateFault::Broken) };
                }
                _ => {}
            }
        }
    }
}

/// Deflates messages, each from a fresh window. It holds some 250 KB.
#[derive(Debug)]
pub struct Deflater {
    stream: Compress,
}

impl Deflater {
    /// With a level from 1, the fastest, to 9, the smallest.
    pub fn new(level: u32) -> Self {
        Self { stream: Compress::new(Compression::new(level), false) }
    }

    /// Appends `payload` as raw deflate blocks from a fresh window, ended by a full flush. They can follow
    /// any others of this kind in one stream. The last four bytes are `00 00 ff ff`.
    pub fn append_blocks(&mut self, payload: &[u8], output: &mut Vec<u8>) {
        self.stream.reset();
        let start = output.len();
        let mut rest = payload;
        // Deflated data is at most this much longer than what it was made from (stored blocks).
        output.reserve(payload.len() + payload.len() / 1000 + 64);
        loop {
            let taken = self.stream.total_in();
            let status = self.stream.compress_vec(rest, output, FlushCompress::Full);
            rest = &rest[(self.stream.total_in() - taken) as usize..];
            debug_assert!(status.is_ok(), "deflating into memory cannot fail");
            if status.is_err() || (rest.is_empty() && output.len() < output.capacity()) {
                break;
            }
            output.reserve(STEP_BYTES);
        }
        debug_assert!(output[start..].ends_with(&TAIL));
    }
}

/// Appends `payload` as the payload of a compressed message (section 7.2.1).
pub fn deflate_message(deflater: &mut Deflater, payload: &[u8], output: &mut Vec<u8>) {
    deflater.append_blocks(payload, output);
    output.truncate(output.len() - TAIL.len());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of RFC 7692, section 7.2.3, that stand in one window.
    #[test]
    fn the_examples_of_the_standard_inflate() {
        let table: &[(&[u8], &[u8])] = &[
            (&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], b"Hello"),
            (&[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00], b"Hello"),
            (&[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00], b"Hello"),
            (&[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00], b"Hello"),
            (&[0x00], b""),
        ];
        let mut inflater = Inflater::default();
        for (message, expected) in table {
            assert_eq!(inflater.inflate(message, 5), Ok(*expected), "{message:x?}");
        }
        assert_eq!(inflater.inflate(table[0].0, 4), Err(InflateFault::TooLong));
    }

    #[test]
    fn what_is_no_deflated_data_is_broken() {
        let mut inflater = Inflater::default();
        for message in [&[0xff, 0xff][..], &[0x07], b"Hello", &[0x00, 0x05, 0x00, 0xff, 0xff, 0x48]] {
            assert_eq!(inflater.inflate(message, 100), Err(InflateFault::Broken), "{message:x?}");
        }
    }

    #[test]
    fn a_bomb_is_defused_at_the_limit() {
        let mut bomb = Vec::new();
        deflate_message(&mut Deflater::new(9), &vec![0; 32 << 20], &mut bomb);
        assert!(bomb.len() < 64 << 10);
        let mut inflater = Inflater::default();
        assert_eq!(inflater.inflate(&bomb, 64 << 10), Err(InflateFault::TooLong));
        assert!(inflater.output.capacity() <= 256 << 10, "{}", inflater.output.capacity());
        inflater.shrink(4096);
        assert!(inflater.output.capacity() <= 8192);
    }

    proptest! {
        #[test]
        fn what_is_deflated_inflates(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9000), 1..4),
        ) {
            let (mut deflater, mut inflater) = (Deflater::new(6), Inflater::default());
            let mut stream = Vec::new();
            for payload in &payloads {
                let mut message = Vec::new();
                deflate_message(&mut deflater, payload, &mut message);
                prop_assert_eq!(inflater.inflate(&message, payload.len()), Ok(&payload[..]));
                if let Some(less) = payload.len().checked_sub(1) {
                    prop_assert_eq!(inflater.inflate(&message, less), Err(InflateFault::TooLong));
                }
                deflater.append_blocks(payload, &mut stream);
            }
            // Blocks of several messages are one stream, wherever a reader joins it.
            prop_assert_eq!(inflater.inflate(&stream, 40_000), Ok(&payloads.concat()[..]));
        }
    }
}
