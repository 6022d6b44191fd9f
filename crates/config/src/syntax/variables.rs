//! Variables of other servers' settings, as they are written into values here: which word is right instead.
//!
//! This file knows their names alone. It must never judge a `$` that begins no such name.

/// Likeness from which on a word is meant as a known one.
const LIKENESS_MIN: f64 = 0.7;

/// Words of a line of nginx's log and what says the same here, or why nothing does.
const OF_LOGS: [(&[&str], &str); 10] = [
    (&["bytes_sent"], "$body_bytes_sent is the length of the body"),
    (&["http_host", "server_name", "hostname"], "$host is the name that was asked for"),
    (&["uri", "document_uri", "args", "query_string", "is_args"], "$request_uri is path and query"),
    (&["msec", "time"], "write $time_iso8601 or $time_local; `json` has milliseconds"),
    (&["binary_remote_addr", "realip_remote_addr"], "$remote_addr is the client's address"),
    (&["server_protocol_version", "http2", "http3"], "$server_protocol is HTTP/1.1 or HTTP/2.0"),
    (&["upstream_status"], "$status is that of the application, or says that it gave none"),
    (&["upstream_connect_time"], "$upstream_header_time begins before the connection is made"),
    (&["upstream_cache_status"], "answers of applications are not kept"),
    (&["request_length", "request_id", "connection", "connection_requests", "pid"], "no line tells this"),
];

/// Names of the host that was asked for.
const HOSTS: [&str; 5] = ["host", "http_host", "server_name", "hostname", "HTTP_HOST"];
/// Names of what was asked for.
const TARGETS: [&str; 8] =
    ["uri", "request_uri", "document_uri", "path", "args", "query_string", "is_args", "REQUEST_URI"];
/// Further variables of nginx.
const OTHERS: [&str; 11] = [
    "scheme",
    "https",
    "remote_addr",
    "remote_user",
    "remote_port",
    "server_addr",
    "server_port",
    "request_id",
    "request_method",
    "status",
    "time_iso8601",
];
/// How whole families of them begin.
const FAMILIES: [&str; 6] = ["http_", "sent_http_", "arg_", "cookie_", "upstream_", "ssl_"];

/// A fault: a word of a log's line that is none of the known ones, with the right one.
pub(crate) fn unknown_in_log(word: &str, known: &[&str]) -> String {
    if let Some((_, hint)) = OF_LOGS.iter().find(|(words, _)| words.contains(&word)) {
        return format!("${word} is not known: {hint}");
    }
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(word, known);
    let nearest = known.iter().map(|known| (likeness(known), *known));
    let nearest =
        nearest.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    match nearest {
        Some((_, known)) => format!("${word} is not known (did you mean ${known}?)"),
        None => format!("${word} is not one of ${}", known.join(", $")),
    }
}

/// A fault: the target of a redirect has a variable; with what is right.
pub(crate) fn in_target(text: &str) -> Option<String> {
    let name = first(text)?;
    let instead = if HOSTS.contains(&name) {
        "a path such as /new/$1 keeps the host, `canonical_host` leads to one host, `https_redirect` to HTTPS"
    } else if TARGETS.contains(&name) {
        "write from = \"/old/*\" and $1 for what the star stood for; a query is kept"
    } else {
        "only $1 to $9 stand for something, for what the stars of `from` stood for"
    };
    Some(format!("there is no variable ${name}: {instead}"))
}

/// A warning: a value with a variable is sent as it stands.
pub(crate) fn in_value(text: &str) -> Option<String> {
    first(text).map(|name| format!("${name} is no variable here: the value is sent as it stands"))
}

/// The name of the first variable of another server in a text: `$name`, `${name}`, or Caddy's `{name}`.
fn first(text: &str) -> Option<&str> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'$' | b'{'));
    starts.map(|(place, _)| &text[place + 1..]).find_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let name = &rest[..rest.bytes().position(|byte| !is_of_name(byte)).unwrap_or(rest.len())];
        let is_of_family = |family: &&str| name.strip_prefix(*family).is_some_and(|rest| !rest.is_empty());
        let is_known = HOSTS.contains(&name) || TARGETS.contains(&name) || OTHERS.contains(&name);
        (is_known || FAMILIES.iter().any(is_of_family)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_word_is_named() {
        let known = ["remote_addr", "remote_user", "request_method", "status"];
        for (word, expected) in [
            ("bytes_sent", "$body_bytes_sent"),
            ("http_host", "$host"),
            ("request_metod", "$request_method"),
            ("args", "$request_uri"),
            ("frobnicate", "$remote_addr, $remote_user"),
        ] {
            let told = unknown_in_log(word, &known);
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn variables_are_found_and_signs_are_not() {
        for (text, name) in [
            ("https://$host$request_uri", Some("host")),
            ("https://a.example${uri}", Some("uri")),
            ("https://a.example{uri}", Some("uri")),
            ("%{REQUEST_URI}", Some("REQUEST_URI")),
            ("/new/$1?a=$arg_q", Some("arg_q")),
            ("/price$", None),
            ("/$1", None),
            ("a {color: red}", None),
            ("$hosting", None),
            ("$http_", None),
        ] {
            assert_eq!(first(text), name, "{text}");
        }
    }
}
