//! The Range field: whatever is asked for, what is sent lies within the content, and no byte twice.
#![cfg_attr(fuzzing, no_main)]

use staunch_server::range::{RangeAnswer, parse};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

pub(crate) fn judge(input: &[u8]) {
    let Some((length, set)) = input.split_first_chunk() else { return };
    let length = u64::from_le_bytes(*length);
    let mut ranges = match parse(&[b"bytes=", set].concat(), length) {
        RangeAnswer::Ignore | RangeAnswer::Unsatisfiable => return,
        RangeAnswer::One(range) => vec![range],
        RangeAnswer::Many(ranges) => ranges,
    };
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert!(parse(set, length) == RangeAnswer::Ignore || set.len() > 6);
}
