//! Differences: a body in Zstandard, with a former one as its prefix (`dcz`; RFC 9842, section 5).
//!
//! This module owns the format and its bounds. It must never run on a worker: a difference takes time by the
//! length of both texts.

use zstd::zstd_safe::{CCtx, CParameter, DCtx, DParameter, ResetDirective};

use crate::Hash;

/// Longest dictionary and longest body of a difference. Every client must take a window of 8 MB, and a
/// decoder holds the dictionary as long as no more than a window came behind it: so every difference within
/// this bound can be decoded by everybody.
pub const INPUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A difference is kept only if it saves at least so many bytes of the body: about the cost of its own
/// fields.
pub const GAIN_BYTES_MIN: usize = 64;
/// Length of the header before the frame: the magic number and the hash of the dictionary.
pub const HEADER_BYTES: usize = MAGIC.len() + Hash::BYTES;

/// A skippable frame of 32 bytes, little-endian: decoders of plain Zstandard pass over it.
const MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];
/// Windows as powers of two: from the smallest there is to 8 MB.
const WINDOW_LOG_MIN: u32 = 10;
const WINDOW_LOG_MAX: u32 = 23;

/// The body as difference to the dictionary: magic number, hash, frame. `hash` is that of the dictionary,
/// computed by the caller once for all differences to it. `None` where one of both is empty or longer than
/// [`INPUT_BYTES_MAX`], or where less than [`GAIN_BYTES_MIN`] would be saved against the body as it is;
/// whether the difference is shorter than the body in another coding is the caller's to compare.
pub fn make(dictionary: &[u8], hash: &Hash, body: &[u8], level: i32) -> Option<Vec<u8>> {
    let is_bounded = |text: &[u8]| (1..=INPUT_BYTES_MAX).contains(&text.len());
    if !is_bounded(dictionary) || !is_bounded(body) {
        return None;
    }
    let room = body.len().checked_sub(GAIN_BYTES_MIN + HEADER_BYTES)?;
    // The encoder forgets of a prefix what stands in the same memory as the body.
    let own_copy = overlaps(dictionary, body).then(|| body.to_vec());
    let body = own_copy.as_deref().unwrap_or(body);
    let mut frame = Vec::with_capacity(room);
    let mut coder = CCtx::try_create()?;
    coder.set_parameter(CParameter::CompressionLevel(level)).ok()?;
    coder.set_parameter(CParameter::WindowLog(window_log(dictionary.len() + body.len()))).ok()?;
    coder.ref_prefix(dictionary).ok()?;
    coder.compress2(&mut frame, body).ok()?;
    // A vector may have more room than it was asked for.
    if frame.len() > room {
        return None;
    }
    Some([&MAGIC, &hash.as_bytes()[..], &frame].concat())
}

/// The level of Zstandard that makes a difference of a body of this length within a moment: what is asked
/// for again and again in short texts is worth the best ratio, a bundle of a megabyte is not.
pub fn level_for(body_bytes: usize) -> i32 {
    match body_bytes {
        0..=32_768 => 12,
        32_769..=262_144 => 9,
        _ => 3,
    }
}

/// The body of a difference: what a client does with it. `None` where it is none to this dictionary, or is
/// longer than `bytes_max` decoded.
pub fn apply(dictionary: &[u8], difference: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let named = difference.strip_prefix(&MAGIC)?;
    let frame = named.strip_prefix(Hash::of(dictionary).as_bytes())?;
    let mut body = Vec::with_capacity(bytes_max);
    let mut decoder = DCtx::try_create()?;
    decoder.reset(ResetDirective::SessionOnly).ok()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).ok()?;
    decoder.ref_prefix(dictionary).ok()?;
    decoder.decompress(&mut body, frame).ok()?;
    Some(body)
}

/// True where two texts share memory.
fn overlaps(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (one.as_ptr_range(), other.as_ptr_range());
    one.start < other.end && other.start < one.end
}

/// The window that holds so many bytes, in powers of two, at most what every client takes.
fn window_log(bytes: usize) -> u32 {
    bytes.next_power_of_two().ilog2().clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(length)
        .collect()
    }

    fn check(dictionary: &[u8], body: &[u8], level: i32) -> Option<Vec<u8>> {
        let difference = make(dictionary, &Hash::of(dictionary), body, level)?;
        assert_eq!(apply(dictionary, &difference, body.len()).as_deref(), Some(body));
        assert!(difference.len() + GAIN_BYTES_MIN <= body.len());
        Some(difference)
    }

    #[test]
    fn one_changed_sentence_costs_a_hundred_bytes() {
        let dictionary = noise(1, 11_000);
        let mut body = dictionary.clone();
        body.splice(5000..5000, *b"A sentence that was not there before.");
        for level in [1, 3, 12, 19] {
            let difference = check(&dictionary, &body, level).unwrap();
            assert!(difference.len() < 150, "{} bytes at level {level}", difference.len());
            assert_eq!(difference[..8], [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0]);
            assert_eq!(difference[8..40], Hash::of(&dictionary).as_bytes()[..]);
        }
    }

    #[test]
    fn the_first_byte_of_the_longest_dictionary_is_reached_from_the_last_of_the_longest_body() {
        let shared = noise(1, 4096);
        let dictionary = [&shared[..], &noise(2, INPUT_BYTES_MAX - 4096)].concat();
        let body = [&vec![b' '; INPUT_BYTES_MAX - 4096][..], &shared].concat();
        check(&dictionary, &body, 1).unwrap();
        check(&dictionary, &body, level_for(body.len())).unwrap();
    }

    #[test]
    fn what_gains_nothing_is_not_made() {
        let dictionary = noise(1, 4000);
        assert_eq!(check(&dictionary, &noise(2, 4000), 19), None);
        assert_eq!(check(&dictionary, &dictionary[..100], 19), None);
        assert!(check(&dictionary, &dictionary[..1000], 19).is_some());
    }

    #[test]
    fn what_is_empty_or_too_long_is_not_made() {
        let text = noise(1, 4000);
        let long = vec![b' '; INPUT_BYTES_MAX + 1];
        assert_eq!(check(&[], &text, 3), None);
        assert_eq!(check(&text, &[], 3), None);
        assert_eq!(check(&text, &long, 3), None);
        assert_eq!(check(&long, &text, 3), None);
    }

    #[test]
    fn a_text_is_its_own_dictionary() {
        let text = noise(1, 4000);
        assert!(check(&text, &text, 3).unwrap().len() < 80);
        assert!(check(&text, &text[1000..3000], 12).unwrap().len() < 80);
    }

    #[test]
    fn another_dictionary_is_refused() {
        let text = noise(1, 4000);
        let difference = make(&text, &Hash::of(&text), &text, 3).unwrap();
        assert_eq!(apply(&text[1..], &difference, text.len()), None);
        assert_eq!(apply(&text, &difference[1..], text.len()), None);
        assert_eq!(apply(&text, &difference, text.len() - 1), None);
    }

    /// A text of a few words, and changes of it.
    fn texts() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let word =
            prop::sample::select(vec!["goal ", "corner ", "minute ", "12 ", "<p>", "</p>\n", "\u{e9} "]);
        let text = prop::collection::vec(word, 1..600).prop_map(|words| words.concat().into_bytes());
        (text, prop::collection::vec((any::<prop::sample::Index>(), any::<[u8; 8]>()), 0..6)).prop_map(
            |(dictionary, changes)| {
                let mut body = dictionary.clone();
                for (place, bytes) in changes {
                    let at = place.index(body.len());
                    body.splice(at..at, bytes);
                }
                (dictionary, body)
            },
        )
    }

    proptest! {
        #[test]
        fn differences_decode_to_the_body((dictionary, body) in texts(), level in 1..=19) {
            check(&dictionary, &body, level);
            check(&body, &dictionary, level);
        }

        #[test]
        fn any_two_texts_decode(
            dictionary in prop::collection::vec(any::<u8>(), 1..300),
            body in prop::collection::vec(0_u8..4, 1..600),
        ) {
            check(&dictionary, &body, 3);
        }

        #[test]
        fn any_bytes_are_no_difference(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let named = [&MAGIC, &Hash::of(b"text").as_bytes()[..], &bytes].concat();
            let _ = apply(b"text", &bytes, 1000);
            let _ = apply(b"text", &named, 1000);
        }
    }
}
