//! Random heads: one pass, two passes and another parser agree.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// Heads of likely and unlikely pieces, some with a byte changed.
fn heads() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "GET / HTTP/1\\.1",
        1 => "GET /a\\?b HTTP/1\\.0",
        1 => "POST http://a/ HTTP/1\\.1",
        1 => "[A-Z]{1,4} /[ -~]{0,8} HTTP/1\\.[0-9]",
    ];
    let field = prop_oneof![
        Just("Host: a".to_owned()),
        Just("Content-Length: 5".to_owned()),
        Just("Connection: close".to_owned()),
        "[!-~]{0,3}[: \t]{1,3}[ -~]{0,8}",
        "[ -~\t]{1,12}",
    ];
    let change = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
    (line, prop::collection::vec(field, 0..5), change).prop_map(|(line, fields, change)| {
        let mut head = line.into_bytes();
        for field in &fields {
            head.extend_from_slice(b"\r\n");
            head.extend_from_slice(field.as_bytes());
        }
        if let Some((at, byte)) = change {
            let at = at.index(head.len());
            head[at] = byte;
        }
        head.extend_from_slice(b"\r\n\r\n");
        head
    })
}

/// What httparse refuses and we accept, and why.
fn is_known_laxity(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let later_minor = matches!(line, [.., b'1', b'.', b'2'..=b'9']);
    later_minor || std::str::from_utf8(line).is_err()
}

/// Refusals that are about meaning, which httparse does not judge, or about line ends, where it is lax.
const BEYOND_SYNTAX: &[&str] = &[
    "bare LF in the head",
    "no Host in HTTP/1.1",
    "Host is not valid",
    "more than one Host",
    "a fragment in the target",
    "the target is neither a path nor an http URI",
    "the host in the target is not valid",
    "the target * is for OPTIONS only",
    "the target of CONNECT is not a host and a port",
    "Content-Length is not a number of bytes",
    "two different values of Content-Length",
    "the request line is empty",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        rng_seed: RngSeed::Fixed(0x51),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_httparse(bytes in heads()) {
        let mut search = HeadSearch::default();
        let Ok(Some(end)) = search.find_end(&bytes) else { return Ok(()) };
        let mut slots = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut theirs = httparse::Request::new(&mut slots);
        let their_verdict = theirs.parse(&bytes[..end]);
        match parse_head(&bytes[..end]) {
            Ok(head) if their_verdict.is_ok() => {
                let ours: Vec<_> = head.request.fields().collect();
                let theirs = theirs.headers.iter().map(|one| (one.name.as_bytes(), one.value));
                prop_assert_eq!(ours, theirs.collect::<Vec<_>>());
            }
            Ok(_) => prop_assert!(is_known_laxity(&bytes), "they refuse: {:?}", their_verdict),
            Err(refusal) => prop_assert!(
                their_verdict.is_err() || BEYOND_SYNTAX.contains(&refusal.reason),
                "we refuse: {}", refusal.reason
            ),
        }
    }

    #[test]
    fn one_pass_and_two_agree(
        bytes in heads(),
        rest in "[ -~\r\n]{0,20}",
        cut in any::<prop::sample::Index>(),
    ) {
        let input = [&bytes[..], rest.as_bytes()].concat();
        let slowly = HeadSearch::default().find_end(&input).ok().flatten().map(|end| &input[..end]);
        let slowly = slowly.and_then(|head| parse_head(head).ok());
        prop_assert_eq!(format!("{:?}", parse_at_once(&input)), format!("{slowly:?}"));
        if let Some(head) = slowly {
            let missing = cut.index(head.request.head.len());
            prop_assert!(parse_at_once(&input[..missing]).is_none());
        }
    }
}
