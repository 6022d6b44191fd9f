//! The fields of a prepared response, written once, and where their parts stand.
//!
//! The order is chosen so that every other response is cut from the same bytes: a 304 is the tail alone, a
//! 206 replaces what stands in front.
//! ```text
//! Use-As-Dictionary                             of a whole answer alone
//! Content-Length: 5000                          replaced by a part's own
//! Content-Type: text/html; charset=utf-8        replaced when several parts are sent
//! Content-Encoding, Last-Modified, Accept-Ranges, X-Content-Type-Options     rest: what a 206 keeps
//! Vary, Cache-Control, those of rules, ETag                                  tail: what a 304 keeps
//! ```

use super::negotiate::Encoding;
use crate::rules::Ruling;

/// What ends a field line, and a blank one.
pub(crate) const LINE_END: &[u8] = b"\r\n";

/// Offsets into the fields, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Where Content-Type begins, behind Content-Length.
    pub(crate) content_type: u16,
    /// Where what follows Content-Type begins.
    pub(crate) rest: u16,
    /// Where the value of Last-Modified begins (29 bytes); 0 if there is none.
    pub(crate) modified: u16,
    /// Where the part begins that a 304 has too.
    pub(crate) tail: u16,
    /// Where the ETag's value begins. It ends before the line end that closes the fields.
    pub(crate) etag: u16,
    /// Length of all fields.
    pub(crate) end: u16,
}

/// What the fields say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Description<'a> {
    /// Length of the body in bytes.
    pub(crate) length_bytes: u64,
    /// Value of Content-Type.
    pub(crate) media: &'a str,
    /// Name of the content coding, if one was applied.
    pub(crate) coding: Option<&'static str>,
    /// Time of modification in seconds since 1970, if it may be told.
    pub(crate) modified_unix_s: Option<i64>,
    /// The entity tag with its quotes.
    pub(crate) etag: &'a [u8],
    /// Value of Vary, if the answer depends on fields of the request. It stands in every representation, also
    /// where only the identity exists so far (RFC 9110, section 12.5.5).
    pub(crate) vary: Option<&'a str>,
    /// Value of Use-As-Dictionary, if the answer is one.
    pub(crate) offer: Option<&'a str>,
    /// What rules add.
    pub(crate) ruling: Option<&'a Ruling>,
}

/// Caches may keep a response but must ask before each use. Nothing here knows when content will change, and
/// with a strong ETag the question costs one small 304; a guess at a lifetime would show old pages.
const CACHE_CONTROL: &str = "no-cache";

/// Appends the fields.
pub(crate) fn write(out: &mut Vec<u8>, description: &Description<'_>) -> Layout {
    let start = out.len();
    let here = |out: &Vec<u8>| (out.len() - start) as u16;
    if let Some(offer) = description.offer {
        field(out, "Use-As-Dictionary", offer.as_bytes());
    }
    field(out, "Content-Length", itoa::Buffer::new().format(description.length_bytes).as_bytes());
    let content_type = here(out);
    field(out, "Content-Type", description.media.as_bytes());
    let rest = here(out);
    if let Some(coding) = description.coding {
        field(out, "Content-Encoding", coding.as_bytes());
    }
    let mut modified = 0;
    if let Some(date) = description.modified_unix_s.and_then(date) {
        modified = here(out) + "Last-Modified: ".len() as u16;
        field(out, "Last-Modified", date.as_bytes());
    }
    out.extend_from_slice(b"Accept-Ranges: bytes\r\nX-Content-Type-Options: nosniff\r\n");
    let tail = here(out);
    if let Some(vary) = description.vary {
        field(out, "Vary", vary.as_bytes());
    }
    let ruled = description.ruling.and_then(|ruling| ruling.cache_control.as_deref());
    field(out, "Cache-Control", ruled.unwrap_or(CACHE_CONTROL).as_bytes());
    if let Some(ruling) = description.ruling {
        out.extend_from_slice(ruling.lines.as_bytes());
    }
    let etag = here(out) + "ETag: ".len() as u16;
    field(out, "ETag", description.etag);
    Layout { content_type, rest, modified, tail, etag, end: here(out) }
}

/// Appends one field line.
pub(crate) fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// A date as in RFC 9110, section 5.6.7, or `None` before 1970 and after 9999, which that form cannot name.
pub(crate) fn date(unix_s: i64) -> Option<String> {
    const YEAR_10000_UNIX_S: u64 = 253_402_300_800;
    let seconds = u64::try_from(unix_s).ok().filter(|&seconds| seconds < YEAR_10000_UNIX_S)?;
    Some(httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)))
}

/// The Last-Modified of a file: its time of modification, unless that lies in the future (RFC 9110, section
/// 8.8.2.1) or is the first second of all, which is what archives without times leave behind.
pub(crate) fn last_modified(modified_ns: i128, now_unix_s: i64) -> Option<i64> {
    let seconds = i64::try_from(modified_ns.div_euclid(1_000_000_000)).ok()?;
    (seconds > 1 && seconds <= now_unix_s).then_some(seconds)
}

/// A strong entity tag from a hash; the encoding stands in it for the eye, the hash is of the encoded bytes.
pub(crate) fn etag(hash: u128, encoding: Option<Encoding>) -> Vec<u8> {
    let suffix = encoding.map_or(String::new(), |encoding| format!("-{}", encoding.name()));
    format!("\"{hash:032x}{suffix}\"").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut out = b"before".to_vec();
        let etag = etag(0x1f, Some(Encoding::Brotli));
        let description = Description {
            length_bytes: 12,
            media: "text/css",
            coding: Some("br"),
            modified_unix_s: Some(784_111_777),
            etag: &etag,
            vary: Some("Accept-Encoding"),
            offer: Some("match=\"/a\""),
            ruling: None,
        };
        let layout = write(&mut out, &description);
        let fields = &out[6..];
        let at = |offset: u16| std::str::from_utf8(&fields[usize::from(offset)..]).unwrap();
        assert_eq!(fields.len(), usize::from(layout.end));
        assert!(at(0).starts_with("Use-As-Dictionary: match=\"/a\"\r\nContent-Length: 12\r\nContent-Type: "));
        assert!(at(layout.content_type).starts_with("Content-Type: text/css\r\n"));
        assert!(at(layout.rest).starts_with("Content-Encoding: br\r\nLast-Modified: "));
        assert!(at(layout.modified).starts_with("Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
        let tail = "Vary: Accept-Encoding\r\nCache-Control: no-cache\r\nETag: ";
        let tag = "\"0000000000000000000000000000001f-br\"\r\n";
        assert_eq!(at(layout.tail), format!("{tail}{tag}"));
        assert_eq!(at(layout.etag), tag);
    }

    #[test]
    fn modification() {
        assert_eq!(last_modified(5_900_000_000, 10), Some(5));
        assert_eq!(last_modified(10_900_000_000, 10), Some(10));
        assert_eq!(last_modified(11_000_000_000, 10), None);
        assert_eq!(last_modified(1_999_999_999, 10), None);
        assert_eq!(last_modified(-5, 10), None);
        assert_eq!(date(-1), None);
        assert_eq!(date(i64::MAX), None);
    }
}
