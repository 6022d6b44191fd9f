//! Histograms as text: V2 deflate in base64, as they stand in an HdrHistogram log.
//!
//! It must never change a count: what is written can be read again by any HdrHistogram library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::fault::Fault;
use crate::histogram::Histogram;

/// The histogram as the library has it.
pub(crate) type Library = hdrhistogram::Histogram<u64>;

/// As text; empty when nothing was recorded.
pub(crate) fn encode(histogram: &Histogram) -> String {
    if histogram.count() == 0 {
        return String::new();
    }
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram.buckets(), &mut bytes);
    written.expect("memory takes every byte");
    STANDARD.encode(bytes)
}

/// From text. `None` for the empty text.
///
/// # Errors
/// The text is not base64, or what it holds is no histogram. `place` says which one.
pub(crate) fn decode(place: &str, text: &str) -> Result<Option<Library>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let bytes =
        STANDARD.decode(text).map_err(|e| Fault::new(format!("histogram `{place}` is not base64: {e}")))?;
    let library = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| Fault::new(format!("histogram `{place}` cannot be read: {e}")))?;
    Ok(Some(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut histogram = Histogram::default();
        for ns in [1_000, 5_000_000, 5_000_000, 77_000_000_000] {
            histogram.record(ns);
        }
        let library = decode("complete", &encode(&histogram)).unwrap().unwrap();
        assert_eq!(library.len(), 4);
        assert_eq!(library.count_at(5_000_000), 2);
        assert_eq!(decode("complete", &encode(&Histogram::default())).unwrap(), None);
    }

    #[test]
    fn what_is_no_histogram_is_said_so() {
        let words = |text| decode("connect", text).unwrap_err().to_string();
        assert!(words("?").starts_with("histogram `connect` is not base64: "), "{}", words("?"));
        assert!(words("AAAA").starts_with("histogram `connect` cannot be read: "), "{}", words("AAAA"));
    }
}
