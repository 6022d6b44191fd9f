//! Percentiles against a sorted list.

use proptest::prelude::*;

use super::*;

/// Thousandths of a percent, so that the rank is exact.
const PERCENTILES: [u64; 9] = [0, 1000, 25_000, 50_000, 90_000, 99_000, 99_900, 99_999, 100_000];

/// The value that so many of all do not exceed.
fn brute_force(sorted: &[u64], percent_thousandths: u64) -> u64 {
    let rank = (percent_thousandths * sorted.len() as u64).div_ceil(100_000).max(1);
    sorted[rank as usize - 1]
}

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

/// Times as they come: uniform over one scale or over all, all alike, and a few far beyond the others.
fn times() -> impl Strategy<Value = Vec<u64>> {
    let over_all_scales = (SHORTEST_NS.ilog2()..LONGEST_NS.ilog2(), any::<u64>())
        .prop_map(|(scale, bits)| (1_u64 << scale) + bits % (1 << scale));
    prop_oneof![
        prop::collection::vec(1_000_000..2_000_000_u64, 1..3000),
        prop::collection::vec(over_all_scales, 1..3000),
        (SHORTEST_NS..LONGEST_NS, 1..2000_usize).prop_map(|(value, number)| vec![value; number]),
        (
            prop::collection::vec(50_000..60_000_u64, 990..1000),
            prop::collection::vec(1_000_000_000..LONGEST_NS, 1..12)
        )
            .prop_map(|(most, few)| [most, few].concat()),
    ]
}

proptest! {
    #[test]
    fn percentiles_are_those_of_a_sorted_list_within_a_bucket(values in times()) {
        let histogram = of(&values);
        let mut sorted = values;
        sorted.sort_unstable();
        for percent in PERCENTILES {
            let right = brute_force(&sorted, percent);
            let found = histogram.percentile(percent as f64 / 1000.0);
            prop_assert!(histogram.buckets().equivalent(found, right), "{percent}: {found} for {right}");
            prop_assert!(found.abs_diff(right) <= right / 1000 + 512, "{percent}: {found} for {right}");
        }
        prop_assert_eq!(histogram.count(), sorted.len() as u64);
        prop_assert_eq!(histogram.max(), sorted[sorted.len() - 1]);
        let mean = sorted.iter().map(|value| *value as f64).sum::<f64>() / sorted.len() as f64;
        prop_assert!((histogram.mean() - mean).abs() <= mean / 1000.0 + 512.0);
    }

    #[test]
    fn merged_is_as_recorded_together(left in times(), right in times()) {
        let mut merged = of(&left);
        merged.merge(&of(&right));
        let together = of(&[left, right].concat());
        prop_assert_eq!(merged.buckets(), together.buckets());
        prop_assert_eq!(merged.max(), together.max());
    }
}

#[test]
fn beyond_the_bounds_nothing_is_lost() {
    let histogram = of(&[0, 1, LONGEST_NS + 1, u64::MAX]);
    assert_eq!(histogram.count(), 4);
    assert_eq!(histogram.max(), u64::MAX);
    assert!(histogram.percentile(50.0) < SHORTEST_NS);
    assert!(histogram.buckets().equivalent(histogram.percentile(75.0), LONGEST_NS));
}

#[test]
fn buckets_survive_being_written_and_read() {
    use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
    let histogram = of(&[1_000, 2_000_000, 2_000_000, 3_000_000_000]);
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram.buckets(), &mut bytes).expect("memory takes it");
    let read: Buckets<u64> = Deserializer::new().deserialize(&mut &bytes[..]).expect("as written");
    assert_eq!(&read, histogram.buckets());
}

#[test]
fn empty_is_all_zero_and_reset_makes_it_so() {
    let mut histogram = of(&[5_000_000]);
    histogram.reset();
    for histogram in [histogram, Histogram::default()] {
        assert_eq!((histogram.count(), histogram.max(), histogram.percentile(99.0)), (0, 0, 0));
        assert_eq!(histogram.mean(), 0.0);
    }
}

#[test]
fn the_mean_of_what_took_no_time_is_no_time() {
    assert_eq!(of(&[0, 0, 0]).mean(), 0.0);
    assert!(of(&[0, 0, 3_000]).mean() <= 3_000.0);
}
