//! However bytes are split, and whichever answers come late, a session hears and says the same.

mod driver;

use driver::{Manner, Transcript, run, run_with};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use staunch_protocol::http1::RequestMemory;

/// Cuts bytes at places given as 1/65536 of their length.
fn cut<'b>(bytes: &'b [u8], places: &[u16]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|it| (usize::from(*it) * bytes.len()) >> 16).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut start = 0;
    let mut pieces = Vec::new();
    for place in places {
        pieces.push(&bytes[start..place]);
        start = place;
    }
    pieces
}

/// Several requests behind one another, most of them valid, some with bytes changed, added or lost.
fn conversations() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3u8);
    let changes = prop_oneof![4 => Just(vec![]), 1 => prop::collection::vec(change, 1..3)];
    (prop::collection::vec(requests(), 1..5), changes).prop_map(|(requests, changes)| {
        let mut bytes = requests.concat().into_bytes();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => _ = bytes.remove(at),
            }
        }
        bytes
    })
}

fn requests() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "(GET|HEAD|POST|OPTIONS) /[a-c]{0,3}(\\?[a-c]{0,3})? HTTP/1\\.1\r\nHost: a\r\n",
        1 => "GET http://b/[a-c]{0,3} HTTP/1\\.1\r\nHost: a\r\n",
        1 => "GET / HTTP/1\\.0\r\n(Connection: keep-alive\r\n)?",
    ];
    let fields = "(\
        Connection: (keep-alive|close)\r\n|Accept-Encoding: (br|gzip, br)\r\n|Range: bytes=0-[0-9]\r\n|\
        [A-C]{1,3}:[ \t]?[a-c ]{0,9}\r\n){0,3}";
    let body = prop_oneof![
        4 => "\r\n",
        1 => "\r\n\r\n",
        1 => "(Expect: 100-continue\r\n)?Content-Length: 3\r\n\r\n[a-c]{3}",
        1 => "Transfer-Encoding: chunked\r\n\r\n\
            (2(;x(=\"[a;\\\\]\")?)?\r\n[a-c]{2}\r\n){0,3}0\r\n([A-C]: b\r\n)?\r\n",
    ];
    (line, fields, body).prop_map(|(line, fields, body)| line + &fields + &body)
}

fn config(seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases: 2000,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(0x61))]

    #[test]
    fn splitting_changes_nothing(
        bytes in conversations(),
        places in prop::collection::vec(any::<u16>(), 0..8),
        waits in any::<u32>(),
    ) {
        let whole = run([&bytes[..]], Manner::default());
        let check = |split: Transcript| {
            prop_assert!(split.agrees_with(&whole), "{:?}\n{:?}", split, whole);
            Ok(())
        };
        check(run(cut(&bytes, &places), Manner::default()))?;
        check(run(cut(&bytes, &places), Manner { waits, forgets: false }))?;
        check(run(bytes.chunks(1), Manner { waits, forgets: false }))?;
        let mut heads = RequestMemory::new();
        for time in 1..=3 {
            let heard = run_with(&mut heads, cut(&bytes, &places), Manner { waits, forgets: false });
            prop_assert!(heard.agrees_with(&whole), "time {}\n{:?}\n{:?}", time, heard, whole);
        }
    }
}

proptest! {
    #![proptest_config(config(0x63))]

    #[test]
    fn what_was_heard_before_changes_nothing(
        crowd in prop::collection::vec(conversations(), 1..40),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..150),
    ) {
        let mut heads = RequestMemory::new();
        for bytes in order.iter().map(|place| place.get(&crowd)) {
            prop_assert_eq!(
                run_with(&mut heads, [&bytes[..]], Manner::default()),
                run([&bytes[..]], Manner::default())
            );
        }
    }
}

proptest! {
    #![proptest_config(config(0x62))]

    #[test]
    fn random_bytes_are_refused_at_worst(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let whole = run([&bytes[..]], Manner::default());
        prop_assert_eq!(run(bytes.chunks(1), Manner::default()), whole);
    }
}

#[test]
fn conversations_are_not_all_refused() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::new(config(0x61));
    let mut transcripts = (0..500).map(|_| {
        let bytes = conversations().new_tree(&mut runner).expect("a conversation").current();
        run([&bytes[..]], Manner::default())
    });
    let (refused, heard) = transcripts.by_ref().fold((0, 0), |(refused, heard), transcript| {
        let says_bad = transcript.output.windows(13).any(|bytes| bytes == b"HTTP/1.1 400 ");
        (refused + usize::from(says_bad), heard + transcript.requests.len())
    });
    assert!((20..250).contains(&refused), "{refused} of 500 conversations refused");
    assert!(heard > 700, "{heard} requests in 500 conversations");
}

/// The one thing a split changes, and what must not pass for it.
#[test]
fn a_broken_body_is_refused_or_ends_the_connection() {
    let head = |method| format!("{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for method in ["POST", "HEAD"] {
        let bytes = format!("GET /a HTTP/1.1\r\nHost: a\r\n\r\n{}x", head(method));
        let (answered, whole) =
            (run(bytes.as_bytes().chunks(1), Manner::default()), run([bytes.as_bytes()], Manner::default()));
        assert_eq!((answered.requests.len(), whole.requests.len()), (2, 1));
        assert!(answered.agrees_with(&whole) && !whole.agrees_with(&answered));
        let other = run([&bytes.as_bytes()[1..]], Manner::default());
        assert!(!answered.agrees_with(&other) && !other.agrees_with(&whole));
    }
}

/// The canary: a session that loses what it keeps is caught by the very comparison above.
#[test]
fn a_forgetful_session_is_caught() {
    let bytes = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    let whole = run([&bytes[..]], Manner::default());
    assert_eq!(whole.requests.len(), 2);
    let pieces = cut(bytes, &[10_000]);
    assert_eq!(run(pieces.clone(), Manner::default()), whole);
    assert_ne!(run(pieces, Manner { waits: 0, forgets: true }), whole);
}
