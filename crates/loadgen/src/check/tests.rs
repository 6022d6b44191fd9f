//! Tables of expectations, and bodies in any pieces.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

#[test]
fn sets_of_status() {
    let cases: &[(&str, &[u16], &[u16])] = &[
        ("200", &[200], &[199, 201]),
        ("2xx", &[200, 299], &[199, 300]),
        ("200-399,404", &[200, 399, 404], &[403, 405]),
        (" 101 , 5XX,301 - 302", &[101, 500, 599, 301, 302], &[200, 300, 303, 600]),
        ("100-999", &[100, 999], &[99, 1000]),
    ];
    for (text, inside, outside) in cases {
        let set: StatusSet = text.parse().expect(text);
        assert!(inside.iter().all(|status| set.contains(*status)), "{text}");
        assert!(!outside.iter().any(|status| set.contains(*status)), "{text}");
    }
    assert_eq!("200-399".parse(), Ok(StatusSet::default()));
    for text in ["", "20", "2000", "0xx", "abc", "200-", "-200", "2x", "200,", "+20", "099"] {
        let fault = text.parse::<StatusSet>().expect_err(text).to_string();
        assert!(fault.ends_with("is not a status: write 200, 2xx or 200-399"), "{text}: {fault}");
    }
    let fault = "399-200".parse::<StatusSet>().expect_err("backwards");
    assert_eq!(fault.to_string(), "`399-200`: the lowest status stands first");
}

#[test]
fn checks_of_bodies_as_they_are_written() {
    assert_eq!("length:500".parse(), Ok(BodyCheck::Length(500)));
    assert_eq!("contains: a:b".parse(), Needle::new(b" a:b").map(BodyCheck::Contains));
    let path = std::env::temp_dir().join(format!("staunch-check-{}", std::process::id()));
    fs::write(&path, b"abc").expect("the file can be written");
    assert_eq!(format!("file:{}", path.display()).parse(), Ok(BodyCheck::Equals(Arc::from(*b"abc"))));
    fs::remove_file(&path).expect("the file can be removed");
    let faults = [
        ("500", "`500` is not a check of a body: known are length:BYTES, contains:TEXT and file:PATH"),
        ("size:5", "`size:5` is not a check of a body: known are length:BYTES, contains:TEXT and file:PATH"),
        ("length:5k", "`5k` in `length:5k` is not a number of bytes, written without a unit"),
        ("contains:", "the text a body has to contain is empty"),
        ("file:/nowhere/at all", "/nowhere/at all: No such file or directory (os error 2)"),
    ];
    for (text, sentence) in faults {
        assert_eq!(text.parse::<BodyCheck>().expect_err(text).to_string(), sentence);
    }
}

fn is_right<'p>(body: &BodyCheck, pieces: impl IntoIterator<Item = &'p [u8]>) -> bool {
    let check = Check { body: body.clone(), ..Check::default() };
    let mut state = CheckState::new();
    pieces.into_iter().for_each(|piece| state.feed(&check, piece));
    assert!(!state.verdict(&check, 404), "the status is wrong");
    state.verdict(&check, 200)
}

#[test]
fn bodies() {
    let contains = |text: &str| BodyCheck::Contains(Needle::new(text.as_bytes()).expect(text));
    let equals = |text: &str| BodyCheck::Equals(text.as_bytes().into());
    let cases: &[(BodyCheck, &str, bool)] = &[
        (BodyCheck::None, "", true),
        (BodyCheck::None, "a", true),
        (BodyCheck::Length(0), "", true),
        (BodyCheck::Length(2), "ab", true),
        (BodyCheck::Length(2), "abc", false),
        (BodyCheck::Length(2), "a", false),
        (contains("aab"), "aaaab", true),
        (contains("aab"), "aaba", true),
        (contains("abab"), "aababab", true),
        (contains("abcabd"), "abcabcabd", true),
        (contains("ab"), "a", false),
        (contains("ab"), "a b", false),
        (contains("a"), "", false),
        (equals(""), "", true),
        (equals(""), "a", false),
        (equals("abc"), "abc", true),
        (equals("abc"), "ab", false),
        (equals("abc"), "abcd", false),
        (equals("abc"), "abd", false),
        (equals("abc"), "abdabc", false),
    ];
    for (check, body, right) in cases {
        let bytes = body.as_bytes();
        assert_eq!(is_right(check, [bytes]), *right, "{check:?} of {body}");
        assert_eq!(is_right(check, bytes.chunks(1)), *right, "{check:?} of {body}, byte by byte");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(0x81),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_searched_for_is_found_across_pieces(
        needle in "[ab]{1,6}",
        body in "[abc]{0,40}",
        piece_bytes in 1..9usize,
    ) {
        let check = BodyCheck::Contains(Needle::new(needle.as_bytes()).expect("not empty"));
        prop_assert_eq!(is_right(&check, body.as_bytes().chunks(piece_bytes)), body.contains(&needle));
    }

    #[test]
    fn a_body_equals_only_itself(body in "[ab]{0,12}", other in "[ab]{0,12}", piece_bytes in 1..5usize) {
        let check = BodyCheck::Equals(body.as_bytes().into());
        prop_assert_eq!(is_right(&check, other.as_bytes().chunks(piece_bytes)), body == other);
        prop_assert!(is_right(&check, body.as_bytes().chunks(piece_bytes)));
    }
}
