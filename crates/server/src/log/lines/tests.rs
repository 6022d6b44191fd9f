//! Lines as they should be, letter by letter.

use proptest::prelude::*;
use staunch_engine::Standing;

use super::super::record::ShownCertificate;
use super::*;

fn record() -> Record<'static> {
    Record {
        unix_ms: 1_795_168_514_042,
        client: Some("192.0.2.7".parse().unwrap()),
        status: 200,
        body_bytes: 5000,
        waited_ms: 12,
        request_line: b"GET /a?b=c HTTP/1.1",
        is_http2: false,
        host: b"example.org",
        referer: b"http://example.org/",
        user_agent: b"curl/8",
        forwarded_for: b"",
        credentials: b"Basic YW5uYTpzZWNyZXQ=",
        certificate: None,
        passed: b"",
    }
}

fn line(format: Format, record: &Record<'_>) -> String {
    let mut out = Vec::new();
    Lines::new(format).write(record, 3, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text:?}");
    text.trim_end().to_owned()
}

fn all() -> Format {
    Format::Json(Field::ALL.to_vec())
}

#[test]
fn the_version_is_the_one_that_was_spoken() {
    let record = Record { is_http2: true, ..record() };
    assert!(line(Format::Combined, &record).contains("\"GET /a?b=c HTTP/2.0\" 200"));
    let json: serde_json::Value = serde_json::from_str(&line(all(), &record)).unwrap();
    assert_eq!((&json["target"], &json["version"]), (&"/a?b=c".into(), &"HTTP/2.0".into()));
    let none = Record { request_line: b"", ..record };
    assert!(line(Format::Combined, &none).contains("\"-\" 200"));
}

#[test]
fn who_showed_a_certificate_is_told() {
    let words = "$ssl_client_verify $ssl_client_fingerprint_sha256 \"$ssl_client_s_dn\"";
    let of_text = || Format::of_text(words).unwrap();
    assert_eq!(line(of_text(), &record()), "NONE - \"-\"");
    let certificate = ShownCertificate { subject: b"CN=an\"na,O=H", fingerprint: &[0xa7; 32] };
    let shown = Record { certificate: Some(certificate), ..record() };
    let digits = "a7".repeat(32);
    assert_eq!(line(of_text(), &shown), format!("SUCCESS {digits} \"CN=an\\x22na,O=H\""));
    let json: serde_json::Value = serde_json::from_str(&line(all(), &shown)).unwrap();
    assert_eq!(json["client_verify"], "SUCCESS");
    assert_eq!(
        (&json["client_subject"], &json["client_fingerprint"]),
        (&"CN=an\"na,O=H".into(), &digits.into())
    );
    let json: serde_json::Value = serde_json::from_str(&line(all(), &record())).unwrap();
    assert_eq!(json["client_verify"], "NONE");
    assert!(json["client_subject"].is_null() && json["client_fingerprint"].is_null());
}

#[test]
fn the_way_of_a_request_that_was_passed_on_is_told() {
    let words = "$upstream_addr $upstream_tries $upstream_queue_time $upstream_header_time \
                 $upstream_response_time";
    let of_text = || Format::of_text(words).unwrap();
    assert_eq!(line(of_text(), &record()), "- - - - -");
    let standing = Standing { is_known: true, ..Standing::default() };
    let passed = Passed {
        server: b"10.0.0.5:80",
        tries: 2,
        standing,
        line_ms: 7,
        header_ms: Some(1034),
        response_ms: None,
    };
    let bytes = passed.encode();
    let told = Record { passed: &bytes, ..record() };
    assert_eq!(line(of_text(), &told), "10.0.0.5:80 2 0.007 1.034 -");
    assert!(line(all(), &told).ends_with(
        "\"upstream\":\"10.0.0.5:80\",\"upstream_tries\":2,\"upstream_class\":\"normal-known\",\
         \"upstream_line_ms\":7,\
         \"upstream_header_ms\":1034,\"upstream_response_ms\":null}"
    ));
    assert_eq!(line(Format::Combined, &told), line(Format::Combined, &record()));
}

#[test]
fn a_combined_line() {
    assert_eq!(
        line(Format::Combined, &record()),
        "192.0.2.7 - anna [20/Nov/2026:09:55:14 +0000] \"GET /a?b=c HTTP/1.1\" 200 5000 \
         \"http://example.org/\" \"curl/8\""
    );
    let nothing = Record { status: 400, ..Record::default() };
    assert_eq!(
        line(Format::Combined, &nothing),
        "- - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\""
    );
}

#[test]
fn a_line_of_ones_own() {
    let own = |text: &str| Format::of_text(text).unwrap();
    for (text, expected) in [
        ("$remote_addr $status", "192.0.2.7 200"),
        ("$request_method|$request_uri|$server_protocol", "GET|/a?b=c|HTTP/1.1"),
        ("a$host,$http_x_forwarded_for.", "aexample.org,-."),
        ("$time_iso8601 $request_time", "2026-11-20T09:55:14+00:00 0.012"),
    ] {
        assert_eq!(line(own(text), &record()), expected, "{text}");
    }
    let combined = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                    \"$http_referer\" \"$http_user_agent\"";
    for record in [record(), Record { user_agent: b"\"\x1b\n", referer: b"", ..record() }] {
        assert_eq!(line(own(combined), &record), line(Format::Combined, &record));
    }
    for wrong in ["$", "$$", "$bytes", "a $statuses", "$Status"] {
        assert_eq!(Format::of_text(wrong), None, "{wrong}");
    }
}

#[test]
fn a_json_line() {
    assert_eq!(
        line(all(), &record()),
        "{\"time\":\"2026-11-20T09:55:14.042Z\",\"client\":\"192.0.2.7\",\"user\":\"anna\",\
         \"method\":\"GET\",\"target\":\"/a?b=c\",\"version\":\"HTTP/1.1\",\"host\":\"example.org\",\
         \"status\":200,\"bytes\":5000,\"referer\":\"http://example.org/\",\"user_agent\":\"curl/8\",\
         \"forwarded_for\":null,\"duration_us\":12000,\"worker\":3,\"client_verify\":\"NONE\",\
         \"client_subject\":null,\"client_fingerprint\":null,\"upstream\":null,\"upstream_tries\":null,\
         \"upstream_class\":null,\"upstream_line_ms\":null,\"upstream_header_ms\":null,\
         \"upstream_response_ms\":null}"
    );
    let few = Format::Json(vec![Field::Status, Field::Client]);
    assert_eq!(line(few, &Record { client: None, ..record() }), "{\"status\":200,\"client\":null}");
    assert_eq!(line(Format::Json(Vec::new()), &record()), "{}");
}

#[test]
fn what_could_end_a_string_is_escaped() {
    let hostile = Record {
        user_agent: b"a\"b\\c\nd\x1b[2J\x7f\xff\xc3\xbc",
        client: Some("::ffff:192.0.2.1".parse().unwrap()),
        referer: b"\xc2\x9b",
        ..record()
    };
    let text = line(Format::Combined, &hostile);
    assert!(text.starts_with("192.0.2.1 - "), "{text}");
    assert!(text.ends_with(r#""\xC2\x9B" "a\x22b\x5Cc\x0Ad\x1B[2J\x7F\xFF\xC3\xBC""#), "{text}");
    let text = line(all(), &hostile);
    assert!(text.contains("\"user_agent\":\"a\\\"b\\\\c\\u000Ad\\u001B[2J\\u007F\u{fffd}ü\""), "{text}");
    assert!(text.contains(r#""referer":"\u009B""#), "{text}");
}

#[test]
fn names_of_users() {
    assert_eq!(user(b"basic YW5uYTo="), Some(b"anna".to_vec()));
    for none in [&b"Basic YW5uYQ=="[..], b"Basic !", b"Bearer YW5uYTo=", b"Basic", b""] {
        assert_eq!(user(none), None, "{}", String::from_utf8_lossy(none));
    }
}

#[test]
fn times_of_syslog() {
    assert_eq!(rfc3164(1_795_168_514), "Nov 20 09:55:14");
    assert_eq!(rfc3164(1_793_872_514), "Nov  5 09:55:14");
}

#[test]
fn a_name_of_a_user_is_one_word() {
    let credentials = format!("Basic {}", BASE64_STANDARD.encode("a b [24/Nov/2026]\t\"\\\u{e4}:c"));
    let text = line(Format::Combined, &Record { credentials: credentials.as_bytes(), ..record() });
    let start = r"192.0.2.7 - a\x20b\x20\x5B24/Nov/2026\x5D\x09\x22\x5C\xC3\xA4 [20/Nov/2026:";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_second_is_formatted_once_and_changes() {
    let mut lines = Lines::new(Format::Combined);
    let mut out = Vec::new();
    for unix_ms in [951_782_399_999, 951_782_400_000, u64::MAX] {
        lines.write(&Record { unix_ms, ..record() }, 0, &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    let times: Vec<&str> = text.lines().map(|line| &line[17..45]).collect();
    let expected =
        ["[28/Feb/2000:23:59:59 +0000]", "[29/Feb/2000:00:00:00 +0000]", "[31/Dec/9999:23:59:59 +0000]"];
    assert_eq!(times, expected);
}

proptest! {
    /// Whatever peers send, a line is one line: of printable ASCII, or a JSON object with the same content.
    #[test]
    fn no_bytes_break_a_line(agent in proptest::collection::vec(any::<u8>(), 0..80), text in "\\PC{0,40}") {
        let record = Record { user_agent: &agent, referer: text.as_bytes(), ..record() };
        let combined = line(Format::Combined, &record);
        prop_assert!(combined.bytes().all(|byte| (b' '..0x7f).contains(&byte)));
        prop_assert_eq!(combined.matches('"').count(), 6);
        let json: serde_json::Value = serde_json::from_str(&line(all(), &record)).unwrap();
        let agent = (!agent.is_empty()).then(|| String::from_utf8_lossy(&agent).into_owned());
        prop_assert_eq!(json["user_agent"].as_str(), agent.as_deref());
        prop_assert_eq!(json["referer"].as_str().unwrap_or_default(), text);
    }
}
