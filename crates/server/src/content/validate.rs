//! Conditional requests (RFC 9110, section 13): pure decisions from fields and validators.
//!
//! It must never look at the method beyond what its caller says, nor at the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the preconditions say (RFC 9110, section 13.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answer as if there were none.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// The fields of a request that make it conditional. Lists stand with all their lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions<'a> {
    /// All values of If-Match.
    pub(crate) if_match: Vec<&'a [u8]>,
    /// All values of If-None-Match.
    pub(crate) if_none_match: Vec<&'a [u8]>,
    /// If-Modified-Since, if it came exactly once.
    pub(crate) if_modified_since: Option<&'a [u8]>,
    /// If-Unmodified-Since, if it came exactly once.
    pub(crate) if_unmodified_since: Option<&'a [u8]>,
}

/// Decides in the order of RFC 9110, section 13.2.2, for GET and HEAD. `etag` stands with its quotes and is
/// strong; `modified_unix_s` is the Last-Modified that is sent, if one is.
pub(crate) fn evaluate(conditions: &Conditions<'_>, etag: &[u8], modified_unix_s: Option<i64>) -> Verdict {
    if !conditions.if_match.is_empty() {
        if !any_matches(&conditions.if_match, |tag, weak| !weak && tag == etag) {
            return Verdict::Failed;
        }
    } else if let Some(true) = is_later(modified_unix_s, conditions.if_unmodified_since) {
        return Verdict::Failed;
    }
    if !conditions.if_none_match.is_empty() {
        if any_matches(&conditions.if_none_match, |tag, _| tag == etag) {
            return Verdict::NotModified;
        }
    } else if let Some(false) = is_later(modified_unix_s, conditions.if_modified_since) {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// Whether If-Range holds, so that Range is obeyed (RFC 9110, section 13.1.5): the same strong tag, or the
/// very date of Last-Modified, which is given only if it lies in a second that is over.
pub(crate) fn if_range_holds(field: &[u8], etag: &[u8], modified: Option<&[u8]>) -> bool {
    match field {
        [b'"', ..] => field == etag,
        [b'W', b'/', ..] => false,
        _ => modified.is_some_and(|modified| modified == field),
    }
}

/// Whether the content was modified after the field's date; `None` if either is missing or no date.
fn is_later(modified_unix_s: Option<i64>, field: Option<&[u8]>) -> Option<bool> {
    let modified = UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(modified_unix_s?).ok()?))?;
    let since: SystemTime = httpdate::parse_http_date(std::str::from_utf8(field?).ok()?).ok()?;
    Some(modified > since)
}

/// The first entity tag of a list, weak or not, for which `matches(tag)` is true.
pub(crate) fn find_tag<'a>(values: &[&'a [u8]], matches: impl Fn(&[u8]) -> bool) -> Option<&'a [u8]> {
    values.iter().find_map(|value| {
        let mut rest = *value;
        while let Some((tag, _, after)) = next_tag(rest) {
            if matches(tag) {
                return Some(tag);
            }
            rest = after;
        }
        None
    })
}

/// Whether a list of entity tags is `*` or has one for which `matches(tag, weak)` is true. Reading stops at
/// what is no entity tag (RFC 9110, section 8.8.3).
fn any_matches(values: &[&[u8]], matches: impl Fn(&[u8], bool) -> bool) -> bool {
    values.iter().any(|value| {
        let mut rest = value.trim_ascii();
        if rest == b"*" {
            return true;
        }
        while let Some((tag, weak, after)) = next_tag(rest) {
            if matches(tag, weak) {
                return true;
            }
            rest = after;
        }
        false
    })
}

/// The first entity tag of a list with its quotes, whether it is weak, and what follows.
fn next_tag(list: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let start = list.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
    let list = list.get(start..)?;
    let (weak, quoted) = match list {
        [b'W', b'/', rest @ ..] => (true, rest),
        _ => (false, list),
    };
    let [b'"', inner @ ..] = quoted else { return None };
    let end = inner.iter().position(|&byte| byte == b'"')? + 2;
    let (tag, after) = quoted.split_at_checked(end)?;
    let separated = matches!(after.trim_ascii_start(), [] | [b',', ..]);
    separated.then_some((tag, weak, after))
}

#[cfg(test)]
#[path = "validate/tests.rs"]
mod tests;
