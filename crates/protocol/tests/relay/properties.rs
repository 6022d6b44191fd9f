//! What must hold of all requests and answers: no split changes a step, other readers understand the same.

use httparse::{EMPTY_HEADER, Response, Status};
use proptest::prelude::*;
use staunch_protocol::Fields;

use crate::relay_messages;
use crate::relay_reading::{Step, answers, read};
use crate::relay_writing::{pass_on_with_host, understand};

#[path = "../reading/mod.rs"]
#[allow(dead_code)]
mod reading;

fn split(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
    cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..cut]);
        from = cut;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]
    #[test]
    fn no_split_changes_what_is_read(
        bytes in relay_messages::answers(),
        cuts in prop::collection::vec(0usize..900, 0..8),
        heads in prop::collection::vec(any::<bool>(), 1..4),
    ) {
        let whole = read([&bytes[..]], &heads);
        prop_assert_eq!(&read(split(&bytes, cuts), &heads), &whole, "{}", bytes.escape_ascii());
        prop_assert_eq!(&read(bytes.chunks(1), &heads), &whole, "{}", bytes.escape_ascii());
    }

    /// A reader that takes more understands every answer that is passed on in the same way.
    #[test]
    fn a_kinder_reader_understands_the_same(
        bytes in relay_messages::answers(),
        heads in prop::collection::vec(any::<bool>(), 1..4),
    ) {
        let strict = answers(&read([&bytes[..]], &heads));
        let kind = reading::read([&bytes[..]], &heads).answers;
        prop_assert!(kind.len() >= strict.len(), "{}", bytes.escape_ascii());
        for (strict, kind) in strict.iter().zip(&kind) {
            prop_assert_eq!((strict.0, &strict.1), (kind.0, &kind.1), "{}", bytes.escape_ascii());
            prop_assert!(kind.2 || !strict.2, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn httparse_reads_the_same_fields(bytes in relay_messages::head()) {
        let strict = read([&bytes[..]], &[false]);
        let Some(Step::Head(head)) = strict.steps.first() else { return Ok(()) };
        let mut room = [EMPTY_HEADER; 16];
        let mut response = Response::new(&mut room);
        prop_assert!(matches!(response.parse(&bytes), Ok(Status::Complete(_))), "{}", bytes.escape_ascii());
        prop_assert_eq!(response.code, Some(head.code));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
        let theirs: Vec<_> =
            response.headers.iter().map(|header| (header.name.to_owned(), text(header.value))).collect();
        for (name, value) in Fields::new(&head.fields).iter() {
            let field = (text(name), text(value));
            prop_assert!(theirs.contains(&field), "{field:?} is not in {theirs:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]
    /// As many requests, the same targets, hosts and bodies.
    #[test]
    fn the_application_understands_what_was_understood(
        bytes in relay_messages::requests(),
        trusts in any::<bool>(),
    ) {
        let passed = pass_on_with_host(&bytes, |way| (way.trusts, way.upgrades) = (trusts, trusts));
        let understood = understand(&passed.stream);
        prop_assert_eq!(understood.as_ref(), Some(&passed.requests), "{}", bytes.escape_ascii());
        let mut rest = &passed.stream[..];
        for request in &passed.requests {
            let mut room = [EMPTY_HEADER; 32];
            let mut parsed = httparse::Request::new(&mut room);
            let Ok(Status::Complete(head_bytes)) = parsed.parse(rest) else {
                panic!("httparse does not read {}", rest.escape_ascii())
            };
            let query = request.query.as_ref().map(|query| [b"?", &query[..]].concat()).unwrap_or_default();
            let target = [&request.path[..], &query].concat();
            prop_assert_eq!(parsed.path.map(str::as_bytes), Some(&target[..]));
            prop_assert_eq!(parsed.version, Some(1));
            let chunked = parsed.headers.iter().any(|header| header.name == "Transfer-Encoding");
            let length = if chunked {
                rest[head_bytes..].windows(5).position(|end| end == b"0\r\n\r\n").map_or(0, |at| at + 5)
            } else {
                request.body.len()
            };
            rest = &rest[head_bytes + length..];
        }
        prop_assert_eq!(rest, b"");
    }
}
