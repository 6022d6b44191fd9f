//! Tables and properties of ranges.

use super::*;
use proptest::prelude::*;

fn one_range(start: u64, end: u64) -> RangeAnswer {
    RangeAnswer::One(ByteRange { start, end })
}

fn many_ranges(ranges: &[(u64, u64)]) -> RangeAnswer {
    RangeAnswer::Many(ranges.iter().map(|&(start, end)| ByteRange { start, end }).collect())
}

#[test]
fn table() {
    use RangeAnswer::{Ignore, Unsatisfiable};
    let table = [
        ("bytes=0-0", one_range(0, 1)),
        ("bytes=0-499", one_range(0, 100)),
        ("bytes=10-19", one_range(10, 20)),
        ("BYTES=10-19", one_range(10, 20)),
        ("bytes=99-", one_range(99, 100)),
        ("bytes=-1", one_range(99, 100)),
        ("bytes=-500", one_range(0, 100)),
        ("bytes= 10-19 ", one_range(10, 20)),
        ("bytes=,10-19,", one_range(10, 20)),
        ("bytes=0-99999999999999999999999999", one_range(0, 100)),
        ("bytes=100-", Unsatisfiable),
        ("bytes=-0", Unsatisfiable),
        ("bytes=99999999999999999999999999-", Unsatisfiable),
        ("bytes=100-200,300-", Unsatisfiable),
        ("bytes=", Ignore),
        ("bytes=,", Ignore),
        ("bytes=-", Ignore),
        ("bytes=5", Ignore),
        ("bytes=9-5", Ignore),
        ("bytes=a-b", Ignore),
        ("bytes=1-2-3", Ignore),
        ("bytes=+1-2", Ignore),
        ("bytes=1 - 2", Ignore),
        ("bytes 1-2", Ignore),
        ("lines=1-2", Ignore),
        ("", Ignore),
        ("bytes=0-1,x", Ignore),
        ("bytes=0-1, 5-6", many_ranges(&[(0, 2), (5, 7)])),
        ("bytes=5-6,0-1", many_ranges(&[(5, 7), (0, 2)])),
        ("bytes=0-1,200-", one_range(0, 2)),
        ("bytes=0-1,2-3", many_ranges(&[(0, 2), (2, 4)])),
        ("bytes=0-2,2-3", one_range(0, 4)),
        ("bytes=0-,0-,0-", one_range(0, 100)),
        ("bytes=50-60,0-1,55-70", many_ranges(&[(0, 2), (50, 71)])),
    ];
    for (field, expected) in table {
        assert_eq!(parse(field.as_bytes(), 100), expected, "{field:?}");
    }
}

#[test]
fn of_an_empty_representation() {
    for field in ["bytes=0-", "bytes=0-0,5-6", "bytes=-0", "bytes=-5", "bytes=0-0,-5"] {
        assert_eq!(parse(field.as_bytes(), 0), RangeAnswer::Ignore, "{field}");
    }
}

#[test]
fn too_many_ranges_get_the_whole() {
    let list = |count: usize| {
        let ranges: Vec<String> = (0..count).map(|index| format!("{0}-{0}", index * 3)).collect();
        parse(format!("bytes={}", ranges.join(",")).as_bytes(), 1000)
    };
    assert!(matches!(list(RANGES_MAX), RangeAnswer::Many(ranges) if ranges.len() == RANGES_MAX));
    assert_eq!(list(RANGES_MAX + 1), RangeAnswer::Ignore);
}

proptest! {
    #[test]
    fn ranges_lie_within_and_never_overlap(
        specs in prop::collection::vec((any::<Option<u8>>(), any::<Option<u8>>()), 0..80),
        length in 0_u64..300,
    ) {
        let text = |number: Option<u8>| number.map_or(String::new(), |number| number.to_string());
        let list: Vec<String> =
            specs.iter().map(|&(first, last)| format!("{}-{}", text(first), text(last))).collect();
        check(&parse(format!("bytes={}", list.join(",")).as_bytes(), length), length)?;
    }

    #[test]
    fn any_bytes_are_read(set in prop::collection::vec(any::<u8>(), 0..40), length in any::<u64>()) {
        let mut field = b"bytes=".to_vec();
        field.extend(set);
        check(&parse(&field, length), length)?;
    }
}

fn check(answer: &RangeAnswer, length: u64) -> Result<(), TestCaseError> {
    let mut ranges = match answer {
        RangeAnswer::One(range) => vec![*range],
        RangeAnswer::Many(ranges) => ranges.clone(),
        RangeAnswer::Ignore | RangeAnswer::Unsatisfiable => return Ok(()),
    };
    ranges.sort_by_key(|range| range.start);
    for range in &ranges {
        prop_assert!(range.start < range.end && range.end <= length);
    }
    for pair in ranges.windows(2) {
        prop_assert!(pair[0].end <= pair[1].start);
    }
    Ok(())
}
