//! What is written: dates, conditions, heads of answers, listings.

use proptest::prelude::*;

use crate::driver::{self, Driver};

/// The pieces in which these bytes are sent to be compared.
fn pieces<'a>(driver: &mut Driver, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let length = driver.must(b's', bytes).parse().expect("a number");
        let (piece, rest) = bytes.split_at(length);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

#[test]
fn a_piece_is_a_head_or_a_line() {
    let Some(mut driver) = driver::start() else { return };
    let head = &b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"[..];
    let answer = [head, b"one\n\r\n\nend", head].concat();
    assert_eq!(
        pieces(&mut driver, &answer),
        [head, b"one\n", b"\r\n", b"\n", b"endHTTP/1.1 200 OK\r\n", b"Content-Length: 9\r\n", b"\r\n"]
    );
    let whole = [head, b"one\n", head].concat();
    assert_eq!(pieces(&mut driver, &whole), [head, b"one\n", head]);
    for unfinished in [&b"HTTP/1.1 200 OK\r\nA: b\r\n"[..], b"HTTP/1.1", b"\0"] {
        assert_eq!(pieces(&mut driver, unfinished), [unfinished]);
    }
}

proptest! {
    /// Whatever is sent: no piece is empty, and together they are what was to be sent.
    #[test]
    fn pieces_are_the_whole(
        bytes in prop::collection::vec(prop::sample::select(&b"HTTP/1.1 \r\nx"[..]), 0..60),
    ) {
        let Some(mut driver) = driver::start() else { return Ok(()) };
        let pieces = pieces(&mut driver, &bytes);
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
        prop_assert_eq!(pieces.concat(), bytes);
    }
}

#[test]
fn dates_lead_back_to_themselves() {
    let Some(mut driver) = driver::start() else { return };
    for (text, seconds) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
        ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799)),
        ("Thu, 29 Feb 2024 00:00:00 GMT", Some(1_709_164_800)),
        ("Wed, 29 Feb 2023 00:00:00 GMT", None),
        ("Sun, 06 Nov 1994 24:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 32 Dec 1994 08:49:37 GMT", None),
        ("Sun, 06 Nor 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1969 08:49:37 GMT", None),
        ("784111777", None),
        ("", None),
    ] {
        let said = driver.must(b'd', text.as_bytes());
        let expected = seconds.map_or("none".to_owned(), |seconds: u64| {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            format!("{seconds} {}", httpdate::fmt_http_date(time))
        });
        assert_eq!(said, expected, "{text}");
    }
    let driver = std::cell::RefCell::new(&mut driver);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(4000));
    let outcome = runner.run(&(0..253_402_300_800_u64), |seconds| {
        let text = httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
        let said = driver.borrow_mut().must(b'd', text.as_bytes());
        prop_assert_eq!(said, format!("{seconds} {text}"));
        Ok(())
    });
    outcome.expect("the same date");
}

/// The content has the tag "a" and was modified on Sun, 06 Nov 1994 08:49:37 GMT.
#[test]
fn conditions_are_weighed_in_order() {
    let Some(mut driver) = driver::start() else { return };
    let (same, before) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:36 GMT");
    for (fields, expected) in [
        ("X: y\r\n".to_owned(), "0 0"),
        ("If-None-Match: \"a\"\r\n".to_owned(), "304 0"),
        ("If-None-Match: \"b\", W/\"a\"\r\n".to_owned(), "304 0"),
        ("If-None-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n".to_owned(), "304 0"),
        ("If-None-Match: *\r\n".to_owned(), "304 0"),
        ("If-None-Match: \"b\"\r\n".to_owned(), "0 0"),
        ("If-None-Match: \"b\" \"a\"\r\n".to_owned(), "0 0"),
        (format!("If-None-Match: \"b\"\r\nIf-Modified-Since: {same}\r\n"), "0 0"),
        (format!("If-Modified-Since: {same}\r\n"), "304 0"),
        (format!("If-Modified-Since: {before}\r\n"), "0 0"),
        (format!("If-Modified-Since: {same}\r\nIf-Modified-Since: {same}\r\n"), "0 0"),
        ("If-Modified-Since: tomorrow\r\n".to_owned(), "0 0"),
        ("If-Match: W/\"a\"\r\n".to_owned(), "412 0"),
        ("If-Match: \"a\"\r\n".to_owned(), "0 0"),
        ("If-Match: \"a\"\r\nIf-None-Match: \"a\"\r\n".to_owned(), "304 0"),
        (format!("If-Unmodified-Since: {before}\r\n"), "412 0"),
        (format!("If-Unmodified-Since: {same}\r\n"), "0 0"),
        (format!("If-Match: \"a\"\r\nIf-Unmodified-Since: {before}\r\n"), "0 0"),
        ("Range: bytes=0-1\r\n".to_owned(), "0 1"),
        ("Range: bytes=0-1\r\nRange: bytes=0-1\r\n".to_owned(), "0 0"),
        ("Range: bytes=0-1\r\nIf-Range: \"a\"\r\n".to_owned(), "0 1"),
        ("Range: bytes=0-1\r\nIf-Range: W/\"a\"\r\n".to_owned(), "0 0"),
        (format!("Range: bytes=0-1\r\nIf-Range: {same}\r\n"), "0 1"),
        (format!("Range: bytes=0-1\r\nIf-Range: {before}\r\n"), "0 0"),
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(driver.must(b'c', head.as_bytes()), expected, "{fields}");
    }
}

fn answer(driver: &mut Driver, kind: u8, status: u16, bits: u8, text: &[u8]) -> String {
    let [low, high] = status.to_le_bytes();
    driver.must(b'a', &[&[kind, low, high, bits][..], text].concat())
}

const KEEPS: u8 = 2;
const HEAD: u8 = 4;
const QUERY: u8 = 8;
const CODED: u8 = 16;

#[test]
fn answers_have_the_length_they_say() {
    let Some(mut driver) = driver::start() else { return };
    for status in [301, 400, 403, 404, 405, 408, 412, 414, 416, 417, 431, 500, 501, 503, 505] {
        for kind in [1, 2] {
            let whole = answer(&mut driver, kind, status, KEEPS, b"");
            let (head, body) = whole.split_once("\r\n\r\n").expect("a blank line");
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{whole}");
            let alone = answer(&mut driver, kind, status, KEEPS | HEAD, b"");
            assert_eq!(alone, format!("{head}\r\n\r\n"));
        }
    }
    assert!(answer(&mut driver, 1, 416, KEEPS, b"").contains("\r\nContent-Range: bytes */13\r\n"));
    assert!(answer(&mut driver, 1, 503, KEEPS, b"").contains("\r\nRetry-After: 1\r\n"));
    assert!(answer(&mut driver, 1, 405, KEEPS, b"").contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"));
}

#[test]
fn heads_of_files() {
    let Some(mut driver) = driver::start() else { return };
    let whole = answer(&mut driver, 0, 206, KEEPS, b"");
    assert_eq!(
        whole,
        "HTTP/1.1 206 Partial Content\r\nServer: staunch\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Content-Length: 5\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Ranges: bytes\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Range: bytes 2-6/13\r\nCache-Control: no-cache\r\n\
         ETag: \"a\"\r\n\r\n"
    );
    let unchanged = answer(&mut driver, 0, 304, 0, b"");
    assert_eq!(
        unchanged,
        "HTTP/1.1 304 Not Modified\r\nServer: staunch\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Connection: close\r\nCache-Control: no-cache\r\nETag: \"a\"\r\n\r\n"
    );
    assert!(answer(&mut driver, 0, 200, KEEPS | 1, b"").contains("\r\nConnection: keep-alive\r\n"));
    let coded = answer(&mut driver, 0, 200, KEEPS | CODED, b"");
    assert!(coded.contains("\r\nContent-Encoding: gzip\r\n"), "{coded}");
    let unchanged = answer(&mut driver, 0, 304, KEEPS | CODED, b"");
    assert!(unchanged.contains("\r\nVary: Accept-Encoding\r\n"), "{unchanged}");
    assert!(!unchanged.contains("Content-Encoding"), "{unchanged}");
}

/// The server's own rules (`negotiate.rs`), for one encoding.
#[test]
fn gzip_is_preferred_by_its_weight() {
    let Some(mut driver) = driver::start() else { return };
    for (fields, prefers) in [
        ("", false),
        ("Accept-Encoding:\r\n", false),
        ("Accept-Encoding: gzip\r\n", true),
        ("Accept-Encoding: GZIP\r\n", true),
        ("Accept-Encoding: x-gzip\r\n", true),
        ("Accept-Encoding: gzip, deflate, br, zstd\r\n", true),
        ("Accept-Encoding: deflate, br\r\n", false),
        ("Accept-Encoding: gzip;q=0\r\n", false),
        ("Accept-Encoding: gzip;Q=0\r\n", false),
        ("Accept-Encoding: gzip ; q=0.001\r\n", true),
        ("Accept-Encoding: gzip;q=0.0000\r\n", false),
        ("Accept-Encoding: gzip;q=1.001\r\n", false),
        ("Accept-Encoding: gzip;q=2\r\n", false),
        ("Accept-Encoding: gzip;level=9\r\n", false),
        ("Accept-Encoding: gzip;q=0.5;x=y\r\n", true),
        ("Accept-Encoding: gzip;q=0.5, identity\r\n", false),
        ("Accept-Encoding: gzip, identity\r\n", true),
        ("Accept-Encoding: gzip, identity;q=0\r\n", true),
        ("Accept-Encoding: *\r\n", true),
        ("Accept-Encoding: *;q=0\r\n", false),
        ("Accept-Encoding: gzip;q=0.5, *;q=0\r\n", true),
        ("Accept-Encoding: gzip;q=0, *\r\n", false),
        ("Accept-Encoding: identity;q=0.1\r\nAccept-Encoding: gzip\r\n", true),
        ("Accept-Encoding: gzip\r\nX: gzip\r\nAccept-Encoding: gzip;q=0\r\n", false),
        ("Accept-Encoding: ,, gzip ,\r\n", true),
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let said = driver.must(b'g', head.as_bytes());
        assert_eq!(said, if prefers { "gzip" } else { "plain" }, "{fields}");
    }
}

#[test]
fn no_path_ends_a_field_or_names_another_host() {
    let Some(mut driver) = driver::start() else { return };
    for (path, location) in [
        ("/a/", "/a/?/a/"),
        ("/a b/\u{fc}", "/a%20b/%C3%BC?/a%20b/%C3%BC"),
        ("/a\r\nSet-Cookie: x", "/a%0D%0ASet-Cookie%3A%20x?/a%0D%0ASet-Cookie:%20x"),
    ] {
        let said = answer(&mut driver, 4, 301, KEEPS | QUERY, path.as_bytes());
        assert!(said.contains(&format!("\r\nLocation: {location}\r\n")), "{said}");
    }
}

#[test]
fn listings_escape_every_name() {
    let Some(mut driver) = driver::start() else { return };
    let row = |name: &[u8]| [&[0][..], &784_111_777_u64.to_le_bytes(), name].concat();
    assert_eq!(
        driver.must(b'e', &row(b"<a>&\"'.txt")),
        "<tr><td><a href=\"%3Ca%3E%26%22%27.txt\"><bdi>&lt;a&gt;&amp;&quot;&#39;.txt</bdi></a></td>\
         <td>12</td><td>1994-11-06 08:49</td></tr>\n"
    );
    assert!(
        driver.must(b'e', &row("a\u{202e}b".as_bytes())).contains("a<i>\\xe2</i><i>\\x80</i><i>\\xae</i>b")
    );
    assert!(driver.must(b'e', &row(b"javascript:x")).contains("href=\"javascript%3Ax\""));
    let cut = "</table>\n<p>This folder has more entries than are listed here.</p>\n</body>\n</html>\n";
    assert!(driver.must(b'l', b"\x01/").ends_with(cut));
    let driver = std::cell::RefCell::new(&mut driver);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(2000));
    let names = prop::collection::vec(
        any::<u8>().prop_filter("no slash", |byte| *byte != b'/' && *byte != 0),
        1..255,
    );
    let outcome = runner.run(&names, |name| {
        let said = driver.borrow_mut().must(b'e', &row(&name));
        prop_assert!(!said.starts_with("full"));
        let (link, rest) = said.strip_prefix("<tr><td><a href=\"").unwrap().split_once("\"><bdi>").unwrap();
        prop_assert!(link.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        let (text, _) = rest.split_once("</bdi></a></td><td>12</td>").unwrap();
        let plain = text.replace("<i>", "").replace("</i>", "");
        prop_assert!(!plain.contains(['<', '>', '"', '\'']), "{}", plain);
        let page = driver.borrow_mut().must(b'l', &[b"\0/", &name[..]].concat());
        prop_assert!(page.ends_with("</table>\n</body>\n</html>\n") && !page.starts_with("full"));
        Ok(())
    });
    outcome.expect("no name that escapes");
}
