//! The request target: its four forms, and its path decoded once.
//!
//! It owns RFC 9112, section 3.2, and the path rules of RFC 3986. It must never look at a file system.

use super::host::{Authority, parse_authority};
use super::response::Refusal;
use crate::message::Method;
use crate::status::Status;

/// The parts of a request target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'a> {
    /// Begins with `/`, or is `*`.
    pub(super) path: &'a [u8],
    pub(super) query: Option<&'a [u8]>,
    /// Present in absolute-form and authority-form: it overrides Host.
    pub(super) authority: Option<Authority<'a>>,
}

/// Why a path names nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetError {
    /// Not a path by the rules: a broken `%`, a NUL, dot segments beyond the root. 400.
    Malformed,
    /// A path by the rules, but of nothing a folder can hold: an empty segment (`//`), or an encoded slash
    /// inside a name. 404.
    Nowhere,
}

impl TargetError {
    /// The status to answer with.
    pub fn status(self) -> Status {
        match self {
            Self::Malformed => Status::BAD_REQUEST,
            Self::Nowhere => Status::NOT_FOUND,
        }
    }
}

/// Decodes a path once, for use beneath a root folder.
///
/// The result begins with `/` and holds no NUL and no segment that is `.` or `..`, nor an empty one except
/// behind a slash at the end. So no two results name the same file, and none leads out of the root. Dot
/// segments are removed after decoding (RFC 3986, sections 5.2.4 and 6.2.2: `%2e` is a dot). Borrows `raw`
/// when nothing needs a change, else `scratch`, whose former content is lost.
pub fn decode_path<'a>(raw: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], TargetError> {
    if is_plain_path(raw) {
        return Ok(raw);
    }
    let Some((b'/', relative)) = raw.split_first() else { return Err(TargetError::Malformed) };
    scratch.clear();
    scratch.push(b'/');
    let mut segments = relative.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        push_segment(segment, segments.peek().is_none(), scratch)?;
    }
    Ok(scratch)
}

/// What of a path may need a second look, as bits: alone, or right behind a slash.
static SECOND_LOOK: [u8; 256] = {
    let mut table = [0; 256];
    table[b'%' as usize] = ALONE | BEHIND_SLASH;
    table[0] = ALONE | BEHIND_SLASH;
    table[b'/' as usize] = BEHIND_SLASH;
    table[b'.' as usize] = BEHIND_SLASH;
    table
};
const ALONE: u8 = 1;
const BEHIND_SLASH: u8 = 2;

/// Whether a path is its own decoded form for sure, so that [`decode_path`] would give it back. (A hidden
/// name, `/.a`, goes the long way.)
#[inline]
pub fn is_plain_path(raw: &[u8]) -> bool {
    let Some((b'/', names)) = raw.split_first() else { return false };
    let Some(last) = raw.last_chunk() else { return is_plain_short(names) };
    // Pieces overlap by a byte, so that every two neighbours stand in one.
    let mut rest = raw;
    while rest.len() > size_of::<u64>()
        && let Some(piece) = rest.first_chunk()
    {
        if needs_second_look(*piece) {
            return false;
        }
        rest = &rest[size_of::<u64>() - 1..];
    }
    !needs_second_look(*last)
}

fn is_plain_short(names: &[u8]) -> bool {
    let mut place = BEHIND_SLASH;
    for byte in names {
        if SECOND_LOOK[usize::from(*byte)] & place != 0 {
            return false;
        }
        place = if *byte == b'/' { BEHIND_SLASH } else { ALONE };
    }
    true
}

/// Judges eight bytes at once as `SECOND_LOOK` does one: whether one is NUL or `%`, or one behind a slash is
/// a slash or a dot; also whether one has only bits of `%`, as the rare `!` and `$`. The highest bit of a
/// byte is its outcome (Hacker's Delight, section 6-1).
#[inline]
fn needs_second_look(piece: [u8; 8]) -> bool {
    const LOWEST: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    let all = |byte: u8| u64::from(byte) * LOWEST;
    // Whether a byte is 0: right for each; and right for the word as a whole, which is quicker.
    let zeros = |word: u64| !(((word & !HIGHEST) + !HIGHEST) | word | !HIGHEST);
    let some_zero = |word: u64| word.wrapping_sub(LOWEST) & !word;
    let word = u64::from_le_bytes(piece);
    let slashes = zeros(word ^ all(b'/'));
    // The two differ in the lowest bit.
    let slashes_and_dots = zeros((word | LOWEST) ^ all(b'/'));
    let alone = some_zero(word & all(!b'%')) & HIGHEST;
    alone | ((slashes << 8) & slashes_and_dots) != 0
}

/// Appends one decoded segment to `path`, which ends with a slash before and, unless it is the last, after.
fn push_segment(segment: &[u8], is_last: bool, path: &mut Vec<u8>) -> Result<(), TargetError> {
    let start = path.len();
    decode_segment(segment, path)?;
    match path.get(start..).unwrap_or_default() {
        b"" if !is_last => return Err(TargetError::Nowhere),
        b"." => path.truncate(start),
        b".." => {
            path.truncate(start);
            remove_last_segment(path)?;
        }
        b"" => {}
        _ if !is_last => path.push(b'/'),
        _ => {}
    }
    Ok(())
}

fn decode_segment(mut segment: &[u8], path: &mut Vec<u8>) -> Result<(), TargetError> {
    while let Some((&first, rest)) = segment.split_first() {
        let byte;
        (byte, segment) = match (first, rest) {
            (b'%', [high, low, rest @ ..]) => (hex_pair(*high, *low).ok_or(TargetError::Malformed)?, rest),
            (b'%', _) => return Err(TargetError::Malformed),
            _ => (first, rest),
        };
        match byte {
            0 => return Err(TargetError::Malformed),
            b'/' => return Err(TargetError::Nowhere),
            _ => path.push(byte),
        }
    }
    Ok(())
}

/// `/a/b/` becomes `/a/`.
fn remove_last_segment(path: &mut Vec<u8>) -> Result<(), TargetError> {
    let inner = path.strip_suffix(b"/").unwrap_or(path);
    let slash = memchr::memrchr(b'/', inner).ok_or(TargetError::Malformed)?;
    path.truncate(slash + 1);
    Ok(())
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let high = char::from(high).to_digit(16)?;
    let low = char::from(low).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

/// Bytes that end the path of a target, or the target itself.
static ENDS_PATH: [bool; 256] = {
    let mut table = [false; 256];
    table[b' ' as usize] = true;
    table[b'\t' as usize] = true;
    table[b'?' as usize] = true;
    table[b'#' as usize] = true;
    table
};

/// How many bytes stand before the first space, tab, `?` or `#`.
#[inline]
pub(super) fn path_bytes(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| ENDS_PATH[usize::from(*byte)]).unwrap_or(bytes.len())
}

/// Splits a target that holds no white space and no control character. `mark` is where the first `?` or `#`
/// stands. Bytes that RFC 3986 does not allow (raw `"`, `<`, non-ASCII) are let through, as browsers of all
/// ages send them; `#` never is.
#[inline]
pub(super) fn parse_target<'a>(
    method: Method,
    target: &'a [u8],
    mark: Option<usize>,
) -> Result<Target<'a>, Refusal> {
    if mark.is_some_and(|mark| memchr::memchr(b'#', &target[mark..]).is_some()) {
        return Err(Refusal::bad("a fragment in the target"));
    }
    if target.first() == Some(&b'/') && method != Method::Connect {
        return Ok(split_query(target, mark, None));
    }
    parse_rare_target(method, target)
}

#[cold]
fn parse_rare_target<'a>(method: Method, target: &'a [u8]) -> Result<Target<'a>, Refusal> {
    const ASTERISK: &[u8] = b"*";
    if method == Method::Connect {
        // RFC 9112, section 3.2.3; RFC 9110, section 9.3.6: an empty or invalid port is an error.
        let authority = parse_authority(target)
            .filter(|authority| authority.port.is_some_and(|port| port > 0) && !authority.host.is_empty())
            .ok_or(Refusal::bad("the target of CONNECT is not a host and a port"))?;
        return Ok(Target { path: ASTERISK, query: None, authority: Some(authority) });
    }
    if target == ASTERISK {
        // RFC 9112, section 3.2.4.
        return match method {
            Method::Options => Ok(Target { path: ASTERISK, query: None, authority: None }),
            _ => Err(Refusal::bad("the target * is for OPTIONS only")),
        };
    }
    let (authority, path_and_query) =
        split_absolute(target).ok_or(Refusal::bad("the target is neither a path nor an http URI"))?;
    // RFC 9110, section 4.2.1: an http URI with an empty host is invalid.
    let authority = parse_authority(authority)
        .filter(|authority| !authority.host.is_empty())
        .ok_or(Refusal::bad("the host in the target is not valid"))?;
    if path_and_query.is_empty() && method == Method::Options {
        return Ok(Target { path: ASTERISK, query: None, authority: Some(authority) });
    }
    Ok(split_query(path_and_query, memchr::memchr(b'?', path_and_query), Some(authority)))
}

/// The authority of an http URI, and what stands behind it.
pub(super) fn split_absolute(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = strip_scheme(target)?;
    let authority_end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    Some(rest.split_at(authority_end))
}

/// The rest behind `http://` or `https://` in any case (RFC 9112, section 3.2.2).
fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://"].iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// Splits at the first `?`. An empty path of an absolute URI is `/` (RFC 9110, section 4.2.3).
#[inline]
fn split_query<'a>(target: &'a [u8], mark: Option<usize>, authority: Option<Authority<'a>>) -> Target<'a> {
    let (path, query) = match mark {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    };
    Target { path: if path.is_empty() { b"/" } else { path }, query, authority }
}

#[cfg(test)]
mod tests;
