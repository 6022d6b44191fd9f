//! Reads what a server sent: status, framing, body, one answer after another.

/// Every answer as `STATUS FRAMING BODY`, and what is left that is no whole answer.
pub(crate) fn answers(mut bytes: &[u8], heads_only: bool) -> (Vec<String>, &[u8]) {
    let mut answers = Vec::new();
    while let Some((answer, rest)) = answer(bytes, heads_only) {
        answers.push(answer);
        bytes = rest;
    }
    (answers, bytes)
}

fn answer(bytes: &[u8], is_head: bool) -> Option<(String, &[u8])> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let (head, rest) = bytes.split_at(end);
    let head = std::str::from_utf8(head).expect("heads are text");
    let status = &head[9..12];
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let closes = if value("Connection: ") == Some("close") { " close" } else { "" };
    if status == "101" {
        return Some((format!("101 {}", text(rest)), b""));
    }
    if status.starts_with('1') || status == "204" {
        return Some((format!("{status}{closes}"), rest));
    }
    if let Some(length) = value("Content-Length: ") {
        let length: usize = length.parse().expect("a number");
        let carried = if is_head { 0 } else { length };
        let (body, rest) = rest.split_at_checked(carried)?;
        return Some((format!("{status}{closes} length {}", text(body)), rest));
    }
    if value("Transfer-Encoding: ") == Some("chunked") {
        let none = (Vec::new(), String::new(), rest);
        let (body, trailers, rest) = if is_head { none } else { chunks(rest)? };
        let behind = if trailers.is_empty() { String::new() } else { format!(" [{trailers}]") };
        return Some((format!("{status}{closes} chunked {}{behind}", text(&body)), rest));
    }
    Some((format!("{status}{closes} until-close {}", text(rest)), b""))
}

/// The body, the trailer section, and what follows.
fn chunks(mut bytes: &[u8]) -> Option<(Vec<u8>, String, &[u8])> {
    let mut body = Vec::new();
    loop {
        let line = bytes.windows(2).position(|window| window == b"\r\n")?;
        let digits = std::str::from_utf8(&bytes[..line]).expect("digits");
        let length = usize::from_str_radix(digits, 16).expect("a chunk's size");
        if length == 0 {
            return trailers(&bytes[line..]).map(|(trailers, rest)| (body, trailers, rest));
        }
        let (data, rest) = bytes[line + 2..].split_at_checked(length)?;
        body.extend_from_slice(data);
        bytes = rest.strip_prefix(b"\r\n")?;
    }
}

/// The fields behind the line end of a last chunk, and what follows.
fn trailers(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let fields = bytes[..end].strip_prefix(b"\r\n").unwrap_or_default();
    Some((String::from_utf8_lossy(fields).replace("\r\n", ", "), &bytes[end + 4..]))
}

/// A short body as it is, a long one by its length and a sum.
fn text(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) if body.len() <= 100 => text.to_owned(),
        _ => format!("{} bytes, sum {}", body.len(), sum(body)),
    }
}

/// Differs whenever a byte is lost, changed or moved.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |sum: u64, byte| sum.wrapping_mul(1_000_003).wrapping_add(u64::from(*byte)))
}
