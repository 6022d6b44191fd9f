//! How a line of the access log looks: a known form, or a text with words for what it says.

use crate::node::Node;
use crate::syntax::{Scalar, variables};

/// Words of a line of one's own, called as in nginx.
pub const LOG_WORDS: [&str; 24] = [
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
    "upstream_class",
    "upstream_queue_time",
    "upstream_header_time",
    "upstream_response_time",
    "ssl_client_verify",
    "ssl_client_s_dn",
    "ssl_client_fingerprint_sha256",
];

/// A comparison of an answer's status, from `from` to `to`, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusTest {
    /// The smallest status meant.
    pub from: u16,
    /// The largest status meant.
    pub to: u16,
    /// Whether the condition holds for statuses outside of the range, not within.
    pub is_negated: bool,
    /// The condition as it was written.
    pub text: String,
}

/// `status >= 400`, and with `<`, `=` and `!=`.
#[derive(Debug)]
pub struct StatusCondition;

impl Scalar for StatusCondition {
    type Value = StatusTest;
    const WORD: &'static str = "CONDITION";
    const IS_TEXT: bool = true;

    fn parse(text: &str) -> Result<StatusTest, String> {
        let form = || "write a comparison such as `status >= 400`, with >=, <, = or !=".to_owned();
        let rest = text.trim().strip_prefix("status").ok_or_else(form)?.trim_start();
        let signs = [">=", "!=", "<", "="];
        let found = signs.into_iter().find_map(|sign| Some((sign, rest.strip_prefix(sign)?)));
        let (sign, number) = found.ok_or_else(form)?;
        let status = number.trim().parse().ok().filter(|status| (100..=599).contains(status));
        let status: u16 = status.ok_or_else(|| "write a status from 100 to 599".to_owned())?;
        let (from, to) = match sign {
            ">=" => (status, u16::MAX),
            "<" => (0, status - 1),
            _ => (status, status),
        };
        Ok(StatusTest { from, to, is_negated: sign == "!=", text: format!("status {sign} {status}") })
    }

    fn write(test: &StatusTest) -> Node {
        Node::text(test.text.as_str())
    }
}

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
