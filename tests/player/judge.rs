//! Compares a response with what a conversation expects of it.
//!
//! It must never be content with less than the whole: every rule of the expectation is checked.

use std::io::{Read as _, Seek as _, SeekFrom};

use super::Failure;
use crate::conversation::{BodyRule, Coding, Expectation, FieldRule, Saved, escape, join};
use crate::request::Received;
use crate::response::{Fields, Response, find};
use crate::tree::Tree;

/// Checks all rules about a response.
///
/// # Errors
/// The first rule that does not hold.
pub(super) fn judge(
    line: usize,
    expectation: &Expectation,
    response: &Response,
    tree: &Tree,
    saved: &Saved,
) -> Result<(), Failure> {
    if !expectation.statuses.contains(&response.status) {
        let expected = format!("status {:?}", expectation.statuses);
        return Err(Failure { line, expected, came: show(response) });
    }
    judge_fields(expectation, &response.fields, saved).map_err(|(line, expected)| Failure {
        line,
        expected,
        came: show(response),
    })?;
    let mut parts = Vec::new();
    for (line, rule) in &expectation.bodies {
        if let BodyRule::Part { content_range, bytes } = rule {
            parts.push((content_range.as_str(), bytes));
            continue;
        }
        judge_body(rule, &response.body, tree, saved).map_err(|expected| Failure {
            line: *line,
            expected,
            came: format!("{} bytes: {}", response.body.len(), escape(&response.body)),
        })?;
    }
    if !parts.is_empty() {
        let wanted = parts
            .into_iter()
            .map(|(range, bytes)| Ok((range.to_owned(), join(bytes, saved)?)))
            .collect::<Result<Vec<_>, String>>();
        wanted.and_then(|wanted| judge_parts(response, &wanted)).map_err(|expected| Failure {
            line,
            expected,
            came: show(response),
        })?;
    }
    Ok(())
}

/// Checks all rules about a request at the application.
///
/// # Errors
/// The first rule that does not hold.
pub(super) fn judge_request(
    line: usize,
    expectation: &Expectation,
    request: &Received,
    tree: &Tree,
    saved: &Saved,
) -> Result<(), Failure> {
    let came = || show_parts(&request.line, &request.fields, &request.body);
    let failure = |(line, expected)| Failure { line, expected, came: came() };
    let Some(wanted) = &expectation.line else { return Ok(()) };
    if !wanted.matches(request.line.as_bytes(), saved).map_err(|expected| failure((line, expected)))? {
        return Err(failure((line, format!("the request {}", wanted.source()))));
    }
    judge_fields(expectation, &request.fields, saved).map_err(failure)?;
    let judged = |(line, rule): &(usize, BodyRule)| {
        judge_body(rule, &request.body, tree, saved).map_err(|expected| failure((*line, expected)))
    };
    expectation.bodies.iter().try_for_each(judged)
}

/// A response for people.
pub(super) fn show(response: &Response) -> String {
    show_parts(&response.status.to_string(), &response.fields, &response.body)
}

fn show_parts(start: &str, fields: &Fields, body: &[u8]) -> String {
    let mut shown = start.to_owned();
    for (name, value) in fields {
        shown.push_str(&format!("\n    {name}: {}", escape(value)));
    }
    shown.push_str(&format!("\n    body of {} bytes: {}", body.len(), escape(body)));
    shown
}

fn judge_fields(expectation: &Expectation, fields: &Fields, saved: &Saved) -> Result<(), (usize, String)> {
    let judged =
        |rule: &FieldRule| judge_field(rule, fields, saved).map_err(|expected| (rule.line, expected));
    expectation.fields.iter().try_for_each(judged)
}

fn judge_field(rule: &FieldRule, fields: &Fields, saved: &Saved) -> Result<(), String> {
    let mut matched = false;
    let of_name = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(&rule.name));
    for (_, value) in of_name {
        matched |= match &rule.pattern {
            Some(pattern) => pattern.matches(value, saved)?,
            None => true,
        };
    }
    let pattern = rule.pattern.as_ref().map_or("any value", |pattern| pattern.source());
    match (rule.forbidden, matched) {
        (false, false) => Err(format!("a field {}: {pattern}", rule.name)),
        (true, true) => Err(format!("no field {}: {pattern}", rule.name)),
        _ => Ok(()),
    }
}

fn judge_body(rule: &BodyRule, body: &[u8], tree: &Tree, saved: &Saved) -> Result<(), String> {
    let demand = |holds: bool, expected: String| if holds { Ok(()) } else { Err(expected) };
    match rule {
        BodyRule::None | BodyRule::Part { .. } => Ok(()),
        BodyRule::Exact(fragments) => {
            let wanted = join(fragments, saved)?;
            demand(wanted == body, format!("the body {}", escape(&wanted)))
        }
        BodyRule::Like(pattern) => {
            demand(pattern.matches(body, saved)?, format!("a body like {}", pattern.source()))
        }
        BodyRule::Length(length) => demand(body.len() as u64 == *length, format!("a body of {length} bytes")),
        BodyRule::Json => {
            demand(serde_json::from_slice::<serde_json::Value>(body).is_ok(), "a body of JSON".to_owned())
        }
        BodyRule::File { coding, path, range } => {
            let wanted =
                read_part(tree, path, *range).map_err(|error| format!("{path} can be read: {error}"))?;
            let plain = match coding {
                Some(coding) => decode(*coding, body)?,
                None => body.to_vec(),
            };
            demand(wanted == plain, format!("the bytes of {path}, which begin with {}", escape(&wanted)))
        }
    }
}

fn read_part(tree: &Tree, path: &str, range: Option<(u64, u64)>) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(tree.root().join(path))?;
    let mut bytes = Vec::new();
    match range {
        None => file.read_to_end(&mut bytes)?,
        Some((first, last)) => {
            file.seek(SeekFrom::Start(first))?;
            file.take(last - first + 1).read_to_end(&mut bytes)?
        }
    };
    Ok(bytes)
}

fn decode(coding: Coding, body: &[u8]) -> Result<Vec<u8>, String> {
    const PLAIN_BYTES_MAX: usize = 16 * 1024 * 1024;
    let mut plain = Vec::new();
    match coding {
        Coding::Gzip => {
            plain.resize(PLAIN_BYTES_MAX, 0);
            let length = libdeflater::Decompressor::new().gzip_decompress(body, &mut plain);
            plain.truncate(length.map_err(|error| format!("a gzip body: {error}"))?);
        }
        Coding::Brotli => {
            let mut decoder = brotli::Decompressor::new(body, 64 * 1024);
            decoder.read_to_end(&mut plain).map_err(|error| format!("a br body: {error}"))?;
        }
        Coding::Zstd => {
            plain = zstd::stream::decode_all(body).map_err(|error| format!("a zstd body: {error}"))?;
        }
    }
    Ok(plain)
}

/// Checks a multipart/byteranges body (RFC 9110, section 14.6) part by part.
fn judge_parts(response: &Response, wanted: &[(String, Vec<u8>)]) -> Result<(), String> {
    let content_type = response.value("Content-Type").unwrap_or_default();
    let boundary =
        content_type.strip_prefix("multipart/byteranges; boundary=").ok_or("multipart/byteranges")?;
    let boundary = boundary.trim_matches('"');
    let mut rest = &response.body[..];
    for (content_range, bytes) in wanted {
        let opening = format!("--{boundary}\r\n");
        let at = find(rest, opening.as_bytes()).filter(|&at| rest[..at].iter().all(|b| b"\r\n".contains(b)));
        rest = &rest[at.ok_or_else(|| format!("a part that begins with {opening:?}"))? + opening.len()..];
        let end = find(rest, b"\r\n\r\n").ok_or("a blank line behind the fields of a part")?;
        let fields = String::from_utf8_lossy(&rest[..end]).into_owned();
        let line = format!("content-range: bytes {content_range}");
        if !fields.split("\r\n").any(|field| field.eq_ignore_ascii_case(&line)) {
            return Err(format!("the field {line} in a part, not {fields:?}"));
        }
        rest = rest[end + 4..]
            .strip_prefix(&bytes[..])
            .ok_or_else(|| format!("the bytes {} in the part {content_range}", escape(bytes)))?;
    }
    let closing = format!("\r\n--{boundary}--");
    let tail = rest.strip_prefix(closing.as_bytes()).ok_or("a closing boundary behind the last part")?;
    if tail.is_empty() || tail == b"\r\n" {
        Ok(())
    } else {
        Err("nothing behind the closing boundary".to_owned())
    }
}
