//! Paths and ranges: the kernel's beside the server's.

use proptest::prelude::*;
use staunch_protocol::http1::decode_path;
use staunch_server::range::{RangeAnswer, parse};

use crate::driver::{self, Driver};

fn path_by_server(raw: &[u8]) -> String {
    let mut scratch = Vec::new();
    match decode_path(raw, &mut scratch) {
        Ok(path) => path.iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(error) => format!("error {}", error.status().code()),
    }
}

fn same_path(driver: &mut Driver, raw: &[u8]) {
    let said = driver.must(b'p', raw);
    let path = said.strip_prefix("path 0 ").or(said.strip_prefix("path 1 ")).unwrap_or(&said);
    assert_eq!(path, path_by_server(raw), "{:?}", String::from_utf8_lossy(raw));
}

#[test]
fn paths_decode_alike() {
    let Some(mut driver) = driver::start() else { return };
    let table = [
        "/", "/a/../b", "/..", "/a/../..", "/%2e%2E/", "/a%2fb", "/a//b", "/a/.", "/%", "/%0", "/%00", "",
        "a",
    ];
    for raw in table {
        same_path(&mut driver, raw.as_bytes());
    }
    let driver = std::cell::RefCell::new(&mut driver);
    let letters = proptest::sample::select(b"/////...%%22eEfF0aab\xc3\0".to_vec());
    let paths = prop::collection::vec(letters, 0..16);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(8000));
    let outcome = runner.run(&paths, |mut raw| {
        raw.insert(0, b'/');
        same_path(&mut driver.borrow_mut(), &raw);
        Ok(())
    });
    outcome.expect("the same paths of both");
}

/// The server's own redirect is to the same path.
#[test]
fn slashes_in_a_row_are_one() {
    let Some(mut driver) = driver::start() else { return };
    let same = |driver: &mut Driver, raw: &[u8]| {
        let mut single = raw.to_vec();
        single.dedup_by(|next, before| (*next, *before) == (b'/', b'/'));
        assert_eq!(driver.must(b'u', raw), path_by_server(&single), "{:?}", String::from_utf8_lossy(raw));
    };
    for raw in ["//", "//a", "/a//b///c//", "/sub///..//a%20b//", "//..//a", "//%5c//x", "/a%2f/b", "/%//"] {
        same(&mut driver, raw.as_bytes());
    }
    let driver = std::cell::RefCell::new(&mut driver);
    let letters = proptest::sample::select(b"///////..%%22eEfF0a\xc3".to_vec());
    let paths = prop::collection::vec(letters, 0..16);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(4000));
    let outcome = runner.run(&paths, |mut raw| {
        raw.insert(0, b'/');
        same(&mut driver.borrow_mut(), &raw);
        Ok(())
    });
    outcome.expect("the same paths of both");
}

/// What need not be decoded is told from what does; `paths_decode_alike` compares the bytes.
#[test]
fn plain_paths_are_known() {
    let Some(mut driver) = driver::start() else { return };
    for (path, said) in [
        ("/", "plain"),
        ("/a", "plain"),
        ("/a/b.txt", "plain"),
        ("/a/", "plain"),
        ("/a..b", "plain"),
        ("", "other"),
        ("a", "other"),
        ("/%61", "other"),
        ("/a/../b", "other"),
        ("/./a", "other"),
        ("//a", "other"),
        ("/a//", "other"),
    ] {
        assert_eq!(driver.must(b'P', path.as_bytes()), said, "{path}");
    }
}

#[test]
fn hidden_names_are_not_looked_up() {
    let Some(mut driver) = driver::start() else { return };
    for (path, servable) in [
        ("/a", true),
        ("/", true),
        ("/.a", false),
        ("/a/.b", false),
        ("/a.b/c.", true),
        ("/.well-known", true),
        ("/.well-known/x", true),
        ("/.well-knownx", false),
        ("/a/.well-known/x", false),
    ] {
        let said = driver.must(b'p', path.as_bytes());
        assert!(said.starts_with(if servable { "path 1 " } else { "path 0 " }), "{path}: {said}");
    }
    let long = format!("/{}", "x".repeat(4095));
    assert!(driver.must(b'p', long.as_bytes()).starts_with("path 0 "));
}

fn range_by_server(field: &[u8], length: u64) -> String {
    match parse(field, length) {
        RangeAnswer::One(range) => format!("one {} {}", range.start, range.end),
        RangeAnswer::Unsatisfiable => "unsatisfiable".to_owned(),
        RangeAnswer::Ignore | RangeAnswer::Many(_) => "ignore".to_owned(),
    }
}

/// Several ranges are the one thing in which they differ: there the kernel sends the whole.
fn same_range(driver: &mut Driver, field: &[u8], length: u64) {
    let said = driver.must(b'r', &[&length.to_le_bytes()[..], field].concat());
    let elements = field[field.len().min(6)..]
        .split(|&byte| byte == b',')
        .filter(|element| element.trim_ascii() != b"")
        .count();
    let expected = if elements > 1 { "ignore".to_owned() } else { range_by_server(field, length) };
    assert_eq!(said, expected, "{:?} of {length}", String::from_utf8_lossy(field));
}

#[test]
fn ranges_are_read_alike() {
    let Some(mut driver) = driver::start() else { return };
    for field in
        ["bytes=0-0", "BYTES=1-", "bytes=-1", "bytes=-0", "bytes=5-4", "bytes=9-", "bytes=0-99", "items=0-1"]
    {
        same_range(&mut driver, field.as_bytes(), 5);
        same_range(&mut driver, field.as_bytes(), 0);
    }
    same_range(&mut driver, b"bytes=18446744073709551616-", 5);
    same_range(&mut driver, b"bytes=-99999999999999999999999", u64::MAX);
    let driver = std::cell::RefCell::new(&mut driver);
    let letters = proptest::sample::select(b"00123456789---,, x".to_vec());
    let sets = (prop::collection::vec(letters, 0..12), prop_oneof![0..20_u64, any::<u64>()]);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(8000));
    let outcome = runner.run(&sets, |(set, length)| {
        same_range(&mut driver.borrow_mut(), &[b"bytes=", &set[..]].concat(), length);
        Ok(())
    });
    outcome.expect("the same ranges of both");
}
