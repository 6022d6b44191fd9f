//! The opening handshake of a WebSocket (RFC 6455, section 4.2; RFC 7692, section 7.1), also on a stream of
//! HTTP/2 (RFC 8441).
//!
//! It owns what a request must say, and the fields of the answer. It must never decide who may connect: the
//! Origin is for who asks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::limits::EXTENSIONS_BYTES_MAX;

/// What stands behind the client's key before it is digested (section 1.3).
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What of a request the handshake reads. A field that stands several times is given joined by commas.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpgradeRequest<'a> {
    /// The method is GET.
    pub is_get: bool,
    /// The version is HTTP/1.1.
    pub is_http11: bool,
    /// `Upgrade`.
    pub upgrade: Option<&'a [u8]>,
    /// `Connection`.
    pub connection: Option<&'a [u8]>,
    /// `Sec-WebSocket-Version`.
    pub version: Option<&'a [u8]>,
    /// `Sec-WebSocket-Key`.
    pub key: Option<&'a [u8]>,
    /// `Sec-WebSocket-Extensions`.
    pub extensions: Option<&'a [u8]>,
}

/// A handshake that may be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The value of `Sec-WebSocket-Accept`; on a stream of HTTP/2 there is none.
    pub key: Option<String>,
    /// The value of `Sec-WebSocket-Extensions`, if messages may be compressed.
    pub extensions: Option<&'static str>,
}

/// Why a request is not upgraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 405, with `Allow: GET`.
    Method,
    /// 400: HTTP/1.0 cannot be upgraded, nor can a stream of HTTP/2 by GET.
    Http10,
    /// 426, with `Upgrade: websocket`: no `Upgrade` and `Connection` that ask for it.
    NoUpgrade,
    /// 426, with `Sec-WebSocket-Version: 13`.
    Version,
    /// 400: no key, or not 16 bytes in base64.
    Key,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Method => "a WebSocket is opened by GET",
            Self::Http10 => "a WebSocket is opened by HTTP/1.1, or by CONNECT of HTTP/2",
            Self::NoUpgrade => "`Upgrade: websocket` and `Connection: Upgrade` are needed here",
            Self::Version => "the version of WebSocket served here is 13",
            Self::Key => "`Sec-WebSocket-Key` must be 16 bytes in base64",
        })
    }
}

impl std::error::Error for Refusal {}

/// Answers an opening handshake.
///
/// # Errors
/// What the request lacks; the first fault by the order of [`Refusal`].
pub fn accept(request: &UpgradeRequest<'_>) -> Result<Accepted, Refusal> {
    if !request.is_get {
        return Err(Refusal::Method);
    }
    if !request.is_http11 {
        return Err(Refusal::Http10);
    }
    let names = |field: Option<&[u8]>, word| field.is_some_and(|value| has_word(value, word));
    if !names(request.upgrade, b"websocket") || !names(request.connection, b"upgrade") {
        return Err(Refusal::NoUpgrade);
    }
    if request.version.map(<[u8]>::trim_ascii) != Some(b"13") {
        return Err(Refusal::Version);
    }
    let key = accept_key(request.key.ok_or(Refusal::Key)?)?;
    Ok(Accepted { key: Some(key), extensions: request.extensions.and_then(negotiate) })
}

/// Answers a handshake on a stream of HTTP/2, of which version and extensions are all that is asked (RFC
/// 8441, section 5).
///
/// # Errors
/// [`Refusal::Version`].
pub fn accept_stream(version: Option<&[u8]>, extensions: Option<&[u8]>) -> Result<Accepted, Refusal> {
    if version.map(<[u8]>::trim_ascii) != Some(b"13") {
        return Err(Refusal::Version);
    }
    Ok(Accepted { key: None, extensions: extensions.and_then(negotiate) })
}

/// The key of a client, made of 16 random bytes.
pub fn client_key(nonce: [u8; 16]) -> String {
    STANDARD.encode(nonce)
}

/// The value of `Sec-WebSocket-Accept` for a client's key.
///
/// # Errors
/// The key is not 16 bytes in base64.
pub fn accept_key(key: &[u8]) -> Result<String, Refusal> {
    let key = key.trim_ascii();
    let nonce = STANDARD.decode(key).map_err(|_| Refusal::Key)?;
    if nonce.len() != 16 {
        return Err(Refusal::Key);
    }
    let mut digest = sha1_smol::Sha1::new();
    digest.update(key);
    digest.update(KEY_SUFFIX);
    Ok(STANDARD.encode(digest.digest().bytes()))
}

fn has_word(list: &[u8], word: &[u8]) -> bool {
    list.split(|&byte| byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(word))
}

/// Accepts the first offer of compression that can be kept. Frames are made once for all, from the largest
/// window, so an offer that asks for a smaller one is declined (section 7.1.2.1).
fn negotiate(offers: &[u8]) -> Option<&'static str> {
    if offers.len() > EXTENSIONS_BYTES_MAX {
        return None;
    }
    offers.split(|&byte| byte == b',').find_map(answer_offer)
}

fn answer_offer(offer: &[u8]) -> Option<&'static str> {
    let mut parameters = offer.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    if !parameters.next()?.eq_ignore_ascii_case(b"permessage-deflate") {
        return None;
    }
    let mut seen: [Option<&[u8]>; 4] = [None; 4];
    for parameter in parameters {
        let mut halves = parameter.splitn(2, |&byte| byte == b'=').map(<[u8]>::trim_ascii);
        let (name, value) = (halves.next()?.to_ascii_lowercase(), halves.next());
        let (place, valid) = match &name[..] {
            b"server_no_context_takeover" => (0, value.is_none()),
            b"client_no_context_takeover" => (1, value.is_none()),
            b"server_max_window_bits" => (2, value.and_then(window_bits) == Some(15)),
            b"client_max_window_bits" => (3, value.is_none_or(|value| window_bits(value).is_some())),
            _ => return None,
        };
        if !valid || seen[place].replace(parameter).is_some() {
            return None;
        }
    }
    Some(match seen[2] {
        None => "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
        Some(_) => {
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
             server_max_window_bits=15"
        }
    })
}

/// A number from 8 to 15, without leading noughts, bare or quoted.
fn window_bits(value: &[u8]) -> Option<u8> {
    let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    match bare {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: UpgradeRequest<'static> = UpgradeRequest {
        is_get: true,
        is_http11: true,
        upgrade: Some(b"websocket"),
        connection: Some(b"keep-alive, Upgrade"),
        version: Some(b"13"),
        key: Some(b"dGhlIHNhbXBsZSBub25jZQ=="),
        extensions: None,
    };

    #[test]
    fn the_example_of_the_standard() {
        let accepted = accept(&REQUEST).unwrap();
        assert_eq!(accepted.key.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(accepted.extensions, None);
    }

    #[test]
    fn on_a_stream_there_is_no_key() {
        let offers = Some(&b"permessage-deflate"[..]);
        let accepted = accept_stream(Some(b" 13 "), offers).expect("all that is needed");
        assert_eq!((accepted.key, accepted.extensions.is_some()), (None, true));
        assert_eq!(accept_stream(None, None), Err(Refusal::Version));
        assert_eq!(accept_stream(Some(b"8"), None), Err(Refusal::Version));
        assert_eq!(
            accept_key(client_key(*b"the sample nonce").as_bytes()),
            accept(&REQUEST).map(|it| it.key.unwrap())
        );
    }

    #[test]
    fn what_a_request_lacks_is_told() {
        let table = [
            (UpgradeRequest { is_get: false, ..REQUEST }, Refusal::Method),
            (UpgradeRequest { is_http11: false, ..REQUEST }, Refusal::Http10),
            (UpgradeRequest { upgrade: None, ..REQUEST }, Refusal::NoUpgrade),
            (UpgradeRequest { upgrade: Some(b"h2c"), ..REQUEST }, Refusal::NoUpgrade),
            (UpgradeRequest { connection: Some(b"close"), ..REQUEST }, Refusal::NoUpgrade),
            (UpgradeRequest { version: Some(b"8"), ..REQUEST }, Refusal::Version),
            (UpgradeRequest { version: None, ..REQUEST }, Refusal::Version),
            (UpgradeRequest { key: None, ..REQUEST }, Refusal::Key),
            (UpgradeRequest { key: Some(b"c2hvcnQ="), ..REQUEST }, Refusal::Key),
            (UpgradeRequest { key: Some(b"not base64 at all, here!"), ..REQUEST }, Refusal::Key),
        ];
        for (request, refusal) in table {
            assert_eq!(accept(&request), Err(refusal), "{request:?}");
        }
    }

    #[test]
    fn offers_of_compression() {
        let plain = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        let bits = format!("{plain}; server_max_window_bits=15");
        let bits = &bits[..];
        let table = [
            ("permessage-deflate", Some(plain)),
            ("permessage-deflate; client_max_window_bits", Some(plain)),
            ("PerMessage-Deflate; client_max_window_bits=10", Some(plain)),
            ("permessage-deflate; client_max_window_bits=\"15\"", Some(plain)),
            ("permessage-deflate; server_max_window_bits=15", Some(bits)),
            ("permessage-deflate; server_max_window_bits=10, permessage-deflate", Some(plain)),
            ("x-webkit-deflate-frame, permessage-deflate; server_no_context_takeover", Some(plain)),
            ("permessage-deflate; server_max_window_bits=10", None),
            ("permessage-deflate; server_max_window_bits", None),
            ("permessage-deflate; client_max_window_bits=16", None),
            ("permessage-deflate; client_max_window_bits=08", None),
            ("permessage-deflate; server_no_context_takeover=1", None),
            ("permessage-deflate; server_no_context_takeover; server_no_context_takeover", None),
            ("permessage-deflate; unheard_of", None),
            ("permessage-deflate;", None),
            ("", None),
        ];
        for (offers, answer) in table {
            assert_eq!(negotiate(offers.as_bytes()), answer, "{offers}");
        }
        let long = format!("{}permessage-deflate", "x, ".repeat(EXTENSIONS_BYTES_MAX));
        assert_eq!(negotiate(long.as_bytes()), None);
    }
}
