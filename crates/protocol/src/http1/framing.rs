//! How long a request's body is, from Content-Length and Transfer-Encoding.
//!
//! It owns RFC 9112, section 6, where a mistake lets one request hide inside another: whatever is not plain
//! is refused. It must never touch the body itself.

use super::field::{list_members, trim};
use super::response::Refusal;
use crate::message::BodyIn;
use crate::status::Status;

/// What the fields seen so far say about the body.
#[derive(Debug, Default)]
pub(super) struct FramingFields {
    length_bytes: Option<u64>,
    coded: bool,
    chunked_last: bool,
    coding_unknown: bool,
}

impl FramingFields {
    /// Takes a Content-Length line. A list of equal numbers counts as one number (RFC 9110, section 8.6).
    pub(super) fn add_content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.length_bytes = merge_content_length(self.length_bytes, value).map_err(Refusal::bad)?;
        Ok(())
    }

    /// Takes a Transfer-Encoding line. Several lines are one list (RFC 9110, section 5.3).
    pub(super) fn add_transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.coded = true;
        for coding in list_members(value) {
            if self.chunked_last {
                // RFC 9112, section 6.1: chunked is applied once, and last.
                return Err(Refusal::bad("chunked is not the only last transfer coding"));
            }
            self.chunked_last = coding.eq_ignore_ascii_case(b"chunked");
            self.coding_unknown |= !self.chunked_last;
        }
        Ok(())
    }

    /// The verdict when all fields were seen.
    #[inline]
    pub(super) fn finish(&self, http10: bool) -> Result<BodyIn, Refusal> {
        if self.coded {
            return self.finish_coded(http10);
        }
        Ok(match self.length_bytes {
            None | Some(0) => BodyIn::None,
            Some(length_bytes) => BodyIn::Length(length_bytes),
        })
    }

    #[cold]
    fn finish_coded(&self, http10: bool) -> Result<BodyIn, Refusal> {
        if self.length_bytes.is_some() {
            // RFC 9112, section 6.1: a server may reject it; whoever sends both may be smuggling.
            return Err(Refusal::bad("both Content-Length and Transfer-Encoding"));
        }
        if http10 {
            // RFC 9112, section 6.1: framing is faulty even if it looks right.
            return Err(Refusal::bad("Transfer-Encoding in HTTP/1.0"));
        }
        if !self.chunked_last {
            // RFC 9112, section 6.3, rule 4: 400 is a MUST here, before the 501 of section 6.1.
            return Err(Refusal::bad("the last transfer coding is not chunked"));
        }
        if self.coding_unknown {
            return Err(Refusal::new(Status::NOT_IMPLEMENTED, "the only transfer coding known is chunked"));
        }
        Ok(BodyIn::Open)
    }
}

/// What a Content-Length line says together with those before it, or what is wrong with it, as the end of a
/// sentence.
pub(super) fn merge_content_length(
    mut before: Option<u64>,
    value: &[u8],
) -> Result<Option<u64>, &'static str> {
    for member in value.split(|byte| *byte == b',') {
        let length_bytes = parse_decimal(trim(member)).ok_or("Content-Length is not a number of bytes")?;
        if before.is_some_and(|before| before != length_bytes) {
            return Err("two different values of Content-Length");
        }
        before = Some(length_bytes);
    }
    Ok(before)
}

/// Digits only: no sign, no space, no overflow.
fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(lengths: &[&str], codings: &[&str], http10: bool) -> Result<BodyIn, u16> {
        let mut fields = FramingFields::default();
        let added: Result<(), Refusal> = (|| {
            lengths.iter().try_for_each(|value| fields.add_content_length(value.as_bytes()))?;
            codings.iter().try_for_each(|value| fields.add_transfer_encoding(value.as_bytes()))
        })();
        added.and_then(|()| fields.finish(http10)).map_err(|refusal| refusal.status.code())
    }

    #[test]
    fn content_length() {
        let cases: &[(&[&str], Result<BodyIn, u16>)] = &[
            (&[], Ok(BodyIn::None)),
            (&["0"], Ok(BodyIn::None)),
            (&["5"], Ok(BodyIn::Length(5))),
            (&["005"], Ok(BodyIn::Length(5))),
            (&["5, 5"], Ok(BodyIn::Length(5))),
            (&["5", "5"], Ok(BodyIn::Length(5))),
            (&["5,5", "5"], Ok(BodyIn::Length(5))),
            (&["18446744073709551615"], Ok(BodyIn::Length(u64::MAX))),
            (&["18446744073709551616"], Err(400)),
            (&["5, 6"], Err(400)),
            (&["5", "6"], Err(400)),
            (&["0", "5"], Err(400)),
            (&[""], Err(400)),
            (&["5,"], Err(400)),
            (&[",5"], Err(400)),
            (&["+5"], Err(400)),
            (&["-5"], Err(400)),
            (&["5 5"], Err(400)),
            (&["0x5"], Err(400)),
            (&["5a"], Err(400)),
            (&["\u{665}"], Err(400)),
        ];
        for (lengths, expected) in cases {
            assert_eq!(framing(lengths, &[], false), *expected, "{lengths:?}");
        }
    }

    #[test]
    fn transfer_encoding() {
        let cases: &[(&[&str], Result<BodyIn, u16>)] = &[
            (&["chunked"], Ok(BodyIn::Open)),
            (&["CHUNKED"], Ok(BodyIn::Open)),
            (&[" , chunked ,"], Ok(BodyIn::Open)),
            (&["gzip, chunked"], Err(501)),
            (&["gzip", "chunked"], Err(501)),
            (&["identity, chunked"], Err(501)),
            (&["chunked, chunked"], Err(400)),
            (&["chunked", "chunked"], Err(400)),
            (&["chunked, gzip"], Err(400)),
            (&["chunked", "identity"], Err(400)),
            (&["gzip"], Err(400)),
            (&["identity"], Err(400)),
            (&["xchunked"], Err(400)),
            (&["chunked;q=1"], Err(400)),
            (&["\"chunked\""], Err(400)),
            (&[""], Err(400)),
        ];
        for (codings, expected) in cases {
            assert_eq!(framing(&[], codings, false), *expected, "{codings:?}");
        }
    }

    #[test]
    fn what_smugglers_send() {
        assert_eq!(framing(&["5"], &["chunked"], false), Err(400));
        assert_eq!(framing(&["0"], &["chunked"], false), Err(400));
        assert_eq!(framing(&["0"], &["gzip, chunked"], false), Err(400));
        assert_eq!(framing(&[], &["chunked"], true), Err(400));
    }
}
