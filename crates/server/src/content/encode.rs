//! Encodes bodies, at the best ratio or quickly, and knows which deserve it.

use super::mime::MediaType;
use super::negotiate::Encoding;
use crate::limits::{BROTLI_WINDOW_LOG_MAX, ENCODED_BYTES_MIN, ENCODING_GAIN_BYTES_MIN};

/// How hard a coder tries.
#[derive(Debug, Clone, Copy)]
struct Effort {
    brotli: i32,
    zstd: i32,
    gzip: i32,
}

/// Level 19 of Zstandard is the last whose window every decoder takes (RFC 9659, section 3).
const BEST: Effort = Effort { brotli: 11, zstd: 19, gzip: 12 };
/// Some seconds for ten megabytes, all coders together; a twentieth larger than at best.
const THOROUGH: Effort = Effort { brotli: 9, zstd: 12, gzip: 9 };
/// Tens of milliseconds for a megabyte, all coders together.
const QUICK: Effort = Effort { brotli: 4, zstd: 3, gzip: 6 };

/// Whether a body of this type and length is worth the work.
pub(crate) fn is_worthwhile(media: &MediaType, length_bytes: usize) -> bool {
    media.encodable && length_bytes >= ENCODED_BYTES_MIN
}

/// The encoded body, or `None` if it is not smaller by more than the fields that come with it.
pub(crate) fn encode(encoding: Encoding, body: &[u8]) -> Option<Vec<u8>> {
    encode_with(BEST, encoding, body)
}

/// Encodes a large body: at the best ratio that would take minutes.
pub(crate) fn encode_large(encoding: Encoding, body: &[u8]) -> Option<Vec<u8>> {
    encode_with(THOROUGH, encoding, body)
}

/// Encodes faster and less densely, for a body that is asked for once or twice before it changes.
pub(crate) fn encode_quickly(encoding: Encoding, body: &[u8]) -> Option<Vec<u8>> {
    encode_with(QUICK, encoding, body)
}

fn encode_with(effort: Effort, encoding: Encoding, body: &[u8]) -> Option<Vec<u8>> {
    let encoded = match encoding {
        Encoding::Brotli => brotli(effort.brotli, body),
        Encoding::Zstd => zstd::bulk::compress(body, effort.zstd).ok(),
        Encoding::Gzip => gzip(effort.gzip, body),
    }?;
    (encoded.len() + ENCODING_GAIN_BYTES_MIN <= body.len()).then_some(encoded)
}

fn brotli(quality: i32, body: &[u8]) -> Option<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality,
        lgwin: BROTLI_WINDOW_LOG_MAX,
        size_hint: body.len(),
        ..Default::default()
    };
    let mut out = Vec::with_capacity(body.len() / 4);
    brotli::BrotliCompress(&mut &*body, &mut out, &parameters).ok()?;
    Some(out)
}

fn gzip(level: i32, body: &[u8]) -> Option<Vec<u8>> {
    let level = libdeflater::CompressionLvl::new(level).ok()?;
    let mut compressor = libdeflater::Compressor::new(level);
    let mut out = vec![0; compressor.gzip_compress_bound(body.len())];
    let length = compressor.gzip_compress(body, &mut out).ok()?;
    out.truncate(length);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(encoding: Encoding, encoded: &[u8], length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        match encoding {
            Encoding::Brotli => {
                out.clear();
                brotli::BrotliDecompress(&mut &*encoded, &mut out).unwrap();
            }
            Encoding::Zstd => out = zstd::bulk::decompress(encoded, length).unwrap(),
            Encoding::Gzip => {
                let written = libdeflater::Decompressor::new().gzip_decompress(encoded, &mut out).unwrap();
                assert_eq!(written, length);
            }
        }
        out
    }

    #[test]
    fn encodings_decode_to_the_same() {
        let body: Vec<u8> =
            (0..4000_u32).flat_map(|number| format!("line {}\n", number % 97).into_bytes()).collect();
        for encoding in Encoding::ALL {
            for encode in [encode, encode_large, encode_quickly] {
                let encoded = encode(encoding, &body).unwrap();
                assert!(encoded.len() < body.len() / 4, "{encoding:?}");
                assert_eq!(decode(encoding, &encoded, body.len()), body, "{encoding:?}");
            }
        }
    }

    #[test]
    fn what_does_not_shrink_is_not_kept() {
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(2000)
        .collect();
        for encoding in Encoding::ALL {
            assert_eq!(encode(encoding, &noise), None, "{encoding:?}");
        }
    }
}
