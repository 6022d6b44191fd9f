//! How a line of the access log looks: a known form, or a text with words for what it says.

use crate::node::Node;
use crate::syntax::{Scalar, variables};

/// Words of a line of one's own, called as in nginx.
pub const LOG_WORDS: [&str; 23] = [
    "remote_addr",
    "remote_user",
    "time_local",
    "time_iso8601",
    "request",
    "request_method",
    "request_uri",
    "server_protocol",
    "host",
    "status",
    "body_bytes_sent",
    "http_referer",
    "http_user_agent",
    "http_x_forwarded_for",
    "request_time",
    "upstream_addr",
    "upstream_tries",
    "upstream_queue_time",
    "upstream_header_time",
    "upstream_response_time",
    "ssl_client_verify",
    "ssl_client_s_dn",
    "ssl_client_fingerprint_sha256",
];

/// A form of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    /// As Apache and nginx write it.
    Combined,
    /// Each line is a JSON object.
    Json,
    /// This text, with what its words stand for.
    Text(String),
}

/// `combined`, `json`, or a text with words such as `$status`.
#[derive(Debug)]
pub struct LogForm;

impl Scalar for LogForm {
    type Value = LogLine;
    const WORD: &'static str = "combined|json|TEXT";
    const IS_TEXT: bool = true;

    fn parse(text: &str) -> Result<LogLine, String> {
        match text {
            "combined" => return Ok(LogLine::Combined),
            "json" => return Ok(LogLine::Json),
            _ => {}
        }
        if !text.contains('$') || text.chars().any(|one| one.is_control() && one != '\t') {
            return Err("write combined, json, or a line with words such as $remote_addr".into());
        }
        let is_of_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        for rest in text.split('$').skip(1) {
            let word = &rest[..rest.bytes().position(|byte| !is_of_word(byte)).unwrap_or(rest.len())];
            if rest.starts_with('{') {
                return Err("write words without braces, such as $status".into());
            }
            if !LOG_WORDS.contains(&word) {
                return Err(variables::unknown_in_log(word, &LOG_WORDS));
            }
        }
        Ok(LogLine::Text(text.into()))
    }

    fn write(line: &LogLine) -> Node {
        Node::text(match line {
            LogLine::Combined => "combined",
            LogLine::Json => "json",
            LogLine::Text(text) => text,
        })
    }
}
