//! The Range field: whatever is asked for, what is sent lies within the content, and no byte twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use staunch_server::range::{RangeAnswer, parse};

fuzz_target!(|input: (u64, &[u8])| {
    let (length, set) = input;
    let mut ranges = match parse(&[b"bytes=", set].concat(), length) {
        RangeAnswer::Ignore | RangeAnswer::Unsatisfiable => return,
        RangeAnswer::One(range) => vec![range],
        RangeAnswer::Many(ranges) => ranges,
    };
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert!(parse(set, length) == RangeAnswer::Ignore || set.len() > 6);
});
