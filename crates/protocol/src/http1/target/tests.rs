//! Tables of targets and paths, and what holds for every decoded path.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

type PathCase = (&'static [u8], Result<&'static [u8], TargetError>);

#[test]
fn paths() {
    let cases: &[PathCase] = &[
        (b"/", Ok(b"/")),
        (b"/a", Ok(b"/a")),
        (b"/a/", Ok(b"/a/")),
        (b"/a/b.html", Ok(b"/a/b.html")),
        (b"/.hidden", Ok(b"/.hidden")),
        (b"/..a", Ok(b"/..a")),
        (b"/a..", Ok(b"/a..")),
        (b"/...", Ok(b"/...")),
        (b"/a%20b", Ok(b"/a b")),
        (b"/%61", Ok(b"/a")),
        (b"/%C3%a4", Ok(b"/\xc3\xa4")),
        (b"/%ff", Ok(b"/\xff")),
        (b"/\xff", Ok(b"/\xff")),
        (b"/%2561", Ok(b"/%61")),
        (b"/%25%36%31", Ok(b"/%61")),
        (b"/a+b", Ok(b"/a+b")),
        (b"/a%3fb", Ok(b"/a?b")),
        (b"/a%0ab", Ok(b"/a\nb")),
        (b"/a%5cb", Ok(b"/a\\b")),
        (b"/.", Ok(b"/")),
        (b"/./", Ok(b"/")),
        (b"/./a", Ok(b"/a")),
        (b"/a/.", Ok(b"/a/")),
        (b"/a/./b", Ok(b"/a/b")),
        (b"/a/..", Ok(b"/")),
        (b"/a/../", Ok(b"/")),
        (b"/a/../b", Ok(b"/b")),
        (b"/a/b/..", Ok(b"/a/")),
        (b"/a/b/../../c", Ok(b"/c")),
        (b"/a/%2e%2E/b", Ok(b"/b")),
        (b"/a/.%2e", Ok(b"/")),
        (b"/%2e", Ok(b"/")),
        (b"/..", Err(TargetError::Malformed)),
        (b"/../", Err(TargetError::Malformed)),
        (b"/../a", Err(TargetError::Malformed)),
        (b"/a/../..", Err(TargetError::Malformed)),
        (b"/%2e%2e/a", Err(TargetError::Malformed)),
        (b"/%00", Err(TargetError::Malformed)),
        (b"/a\0", Err(TargetError::Malformed)),
        (b"/%", Err(TargetError::Malformed)),
        (b"/%4", Err(TargetError::Malformed)),
        (b"/%4/", Err(TargetError::Malformed)),
        (b"/%g1", Err(TargetError::Malformed)),
        (b"/%+1", Err(TargetError::Malformed)),
        (b"", Err(TargetError::Malformed)),
        (b"*", Err(TargetError::Malformed)),
        (b"a", Err(TargetError::Malformed)),
        (b"%2fa", Err(TargetError::Malformed)),
        (b"//", Err(TargetError::Nowhere)),
        (b"//a", Err(TargetError::Nowhere)),
        (b"/a//b", Err(TargetError::Nowhere)),
        (b"/a//", Err(TargetError::Nowhere)),
        (b"/a//..", Err(TargetError::Nowhere)),
        (b"/a%2fb", Err(TargetError::Nowhere)),
        (b"/%2F", Err(TargetError::Nowhere)),
        (b"/..%2f..%2fetc", Err(TargetError::Nowhere)),
    ];
    for (raw, expected) in cases {
        let mut scratch = b"left over".to_vec();
        assert_eq!(decode_path(raw, &mut scratch), *expected, "{:?}", raw.escape_ascii().to_string());
    }
}

#[test]
fn a_plain_path_is_borrowed() {
    let raw = b"/assets/site.css";
    let mut scratch = Vec::new();
    let decoded = decode_path(raw, &mut scratch).expect("plain");
    assert!(std::ptr::eq(decoded, raw));
}

#[test]
fn statuses() {
    assert_eq!(TargetError::Malformed.status(), Status::BAD_REQUEST);
    assert_eq!(TargetError::Nowhere.status(), Status::NOT_FOUND);
}

/// Path, query and host as text, or the reason of the refusal.
fn split(method: Method, target: &str) -> String {
    let mark = target.find(['?', '#']);
    match parse_target(method, target.as_bytes(), mark) {
        Err(refusal) => format!("{} {}", refusal.status.code(), refusal.reason),
        Ok(target) => {
            let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
            let query = target.query.map_or("-".to_owned(), text);
            format!(
                "{} {query} {}",
                text(target.path),
                target.authority.map_or("-".to_owned(), |it| text(it.host))
            )
        }
    }
}

#[test]
fn forms() {
    let cases: &[(&str, &str)] = &[
        ("/", "/ - -"),
        ("/a?", "/a  -"),
        ("/a?b=c?d", "/a b=c?d -"),
        ("/?/../", "/ /../ -"),
        ("//a/b", "//a/b - -"),
        ("http://a", "/ - a"),
        ("HTTP://a:80/", "/ - a"),
        ("https://a/b?c", "/b c a"),
        ("http://a?b", "/ b a"),
        ("http://[::1]:8080/a", "/a - [::1]"),
        ("*", "400 the target * is for OPTIONS only"),
        ("/a#b", "400 a fragment in the target"),
        ("/a?b#c", "400 a fragment in the target"),
        ("a", "400 the target is neither a path nor an http URI"),
        ("a:80", "400 the target is neither a path nor an http URI"),
        ("http:/a", "400 the target is neither a path nor an http URI"),
        ("ftp://a/", "400 the target is neither a path nor an http URI"),
        ("?a", "400 the target is neither a path nor an http URI"),
        ("http://", "400 the host in the target is not valid"),
        ("http:///a", "400 the host in the target is not valid"),
        ("http://u@a/", "400 the host in the target is not valid"),
        ("http://a:b/", "400 the host in the target is not valid"),
    ];
    for (target, expected) in cases {
        assert_eq!(split(Method::Get, target), *expected, "{target}");
    }
}

#[test]
fn forms_of_some_methods_only() {
    const NO_PORT: &str = "400 the target of CONNECT is not a host and a port";
    assert_eq!(split(Method::Options, "*"), "* - -");
    assert_eq!(split(Method::Options, "http://a"), "* - a");
    assert_eq!(split(Method::Options, "http://a/"), "/ - a");
    assert_eq!(split(Method::Connect, "a:443"), "* - a");
    for target in ["a", "a:", "a:0", ":443", "/", "*", "http://a:1/"] {
        assert_eq!(split(Method::Connect, target), NO_PORT, "{target}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        rng_seed: RngSeed::Fixed(0x52),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_decoded_path_stays_beneath_the_root(
        raw in "/?([a-c]|/|\\.|\\.\\.|%2e|%2E|%2f|%5c|%00|%25|%|[%0-9a-f]{3}|\u{e4}){0,12}",
    ) {
        let mut scratch = Vec::new();
        let Ok(decoded) = decode_path(raw.as_bytes(), &mut scratch) else { return Ok(()) };
        let relative = decoded.strip_prefix(b"/").expect("begins with a slash");
        prop_assert!(!decoded.contains(&0));
        let segments: Vec<_> = relative.split(|byte| *byte == b'/').collect();
        for (index, segment) in segments.iter().enumerate() {
            prop_assert!(*segment != b"." && *segment != b"..");
            prop_assert!(!segment.is_empty() || index + 1 == segments.len());
        }
        prop_assert!(decoded.len() <= raw.len());
    }

    /// Eight bytes at once find what one after another does.
    #[test]
    fn pieces_of_a_path_are_judged_as_its_bytes(names in "[/.%\0ab-]{0,40}") {
        let raw = format!("/{names}");
        prop_assert_eq!(is_plain_path(raw.as_bytes()), is_plain_short(names.as_bytes()), "{}", raw);
    }
}
