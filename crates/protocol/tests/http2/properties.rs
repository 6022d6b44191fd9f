//! What holds whatever a peer sends, and however it is cut.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::driver::{Driver, Manner, block, frame, get, hello, request};

fn config(seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases: 600,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Frames of a client that keeps to the rules, but for what chance puts together.
fn good_frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let number = || (0..6u32).prop_map(|place| 2 * place + 1);
    let post = |stream: u32, length: Option<u16>| {
        let mut fields = request("POST", "/70");
        let length = length.map(|length| length.to_string());
        fields.extend(length.as_deref().map(|length| ("content-length", length)));
        frame(1, 4, stream, &block(&fields))
    };
    let one = prop_oneof![
        4 => (number(), 0..200_000u32).prop_map(|(stream, size)| get(stream, &format!("/{size}"))),
        2 => (number(), prop::option::of(0..300u16)).prop_map(move |(stream, length)| post(stream, length)),
        3 => (number(), 0..300usize, any::<bool>())
            .prop_map(|(stream, size, ends)| frame(0, u8::from(ends), stream, &vec![b'x'; size])),
        3 => (0..6u32, 1..90_000u32)
            .prop_map(|(place, size)| frame(8, 0, (2 * place).saturating_sub(1), &size.to_be_bytes())),
        1 => number().prop_map(|stream| frame(3, 0, stream, &8u32.to_be_bytes())),
        1 => (0..100_000u32).prop_map(|size| {
            let [a, b, c, d] = size.to_be_bytes();
            frame(4, 0, 0, &[0, 4, a, b, c, d])
        }),
        1 => (number(), 0..8u8).prop_map(|(stream, urgency)| {
            frame(16, 0, 0, &[&stream.to_be_bytes()[..], b"u=", &[b'0' + urgency], b", i"].concat())
        }),
        1 => Just(frame(6, 0, 0, &[7; 8])),
    ];
    // Streams are opened in order, so that most of what follows means something.
    prop::collection::vec(one, 1..40).prop_map(|mut frames| {
        let mut next = 1;
        for bytes in frames.iter_mut().filter(|bytes| bytes[3] == 1) {
            bytes[5..9].copy_from_slice(&u32::to_be_bytes(next));
            next += 2;
        }
        frames
    })
}

/// Bytes that begin as a good client's do and have some changed.
fn bad_bytes() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3u8);
    let changes = prop_oneof![2 => Just(vec![]), 3 => prop::collection::vec(change, 1..4)];
    (good_frames(), changes).prop_map(|(frames, changes)| {
        let mut bytes = [&hello()[..], &frames.concat()].concat();
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

fn cut<'b>(bytes: &'b [u8], places: &[u16]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|it| (usize::from(*it) * bytes.len()) >> 16).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut start = 0;
    places.into_iter().map(|place| &bytes[std::mem::replace(&mut start, place)..place]).collect()
}

/// Delivers the pieces, and what happened.
fn run(pieces: &[&[u8]], manner: Manner) -> Vec<String> {
    let mut driver = Driver::new(manner);
    for piece in pieces {
        if driver.deliver(piece) {
            break;
        }
    }
    driver.new_frames();
    driver.end();
    driver.told
}

proptest! {
    #![proptest_config(config(0x62))]

    #[test]
    fn every_cut_tells_the_same(
        bytes in bad_bytes(),
        places in prop::collection::vec(any::<u16>(), 0..8),
        waits in any::<u32>(),
    ) {
        // What goes on in between depends on when it is asked for, so here nothing does.
        let manner = Manner { waits, goes_on: false, reads: true };
        let whole = run(&[&bytes], manner);
        prop_assert_eq!(&run(&cut(&bytes, &places), manner), &whole);
        if bytes.len() < 4_000 {
            prop_assert_eq!(&run(&bytes.chunks(1).collect::<Vec<_>>(), manner), &whole);
        }
    }

    #[test]
    fn windows_are_never_passed(frames in good_frames(), waits in any::<u32>(), reads in any::<bool>()) {
        let mut driver = Driver::new(Manner { waits, goes_on: true, reads });
        driver.deliver(&hello());
        driver.check_windows();
        for (number, frame) in frames.iter().enumerate() {
            driver.allow(frame);
            if driver.deliver(frame) {
                break;
            }
            driver.check_windows();
            if number % 5 == 4 {
                driver.answer_all();
                driver.go_on();
                driver.check_windows();
            }
        }
        driver.end();
    }

    #[test]
    fn anything_behind_a_preface_ends_well(
        tail in prop::collection::vec(any::<u8>(), 0..300),
        kinds in prop::collection::vec(
            (0..17u8, any::<u8>(), 0..8u32, prop::collection::vec(any::<u8>(), 0..40)), 0..20
        ),
    ) {
        let mut bytes = hello();
        for (kind, flags, stream, payload) in &kinds {
            bytes.extend(frame(*kind, *flags, *stream, payload));
        }
        bytes.extend(tail);
        run(&[&bytes], Manner { waits: 0b1010, goes_on: true, reads: true });
    }
}
