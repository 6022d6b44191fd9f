//! What holds for every handful of values, and some that were reckoned by hand.
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn values() -> impl Strategy<Value = Vec<f64>> {
    vec(0.0f64..1e6, 1..12)
}

fn exact(low: f64, median: f64, high: f64) -> Summary {
    Summary { median, low, high }
}

proptest! {
    #[test]
    fn half_lie_on_each_side_of_a_median(values in values()) {
        let median = median(&values).expect("numbers");
        let half = values.len().div_ceil(2);
        prop_assert!(values.iter().filter(|value| **value <= median).count() >= half);
        prop_assert!(values.iter().filter(|value| **value >= median).count() >= half);
        let (first, third) = quartiles(&values).expect("numbers");
        prop_assert!(first <= median && median <= third);
    }

    #[test]
    fn a_range_holds_its_median_and_only_what_was_measured(values in values(), seed in any::<u64>()) {
        let summary = Summary::with_seed(&values, seed).expect("numbers");
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        prop_assert!(smallest <= summary.low && summary.low <= summary.median);
        prop_assert!(summary.median <= summary.high && summary.high <= largest);
        prop_assert_eq!(Summary::with_seed(&values, seed), Some(summary));
        if values.len() <= 5 {
            prop_assert_eq!((summary.low, summary.high), (smallest, largest));
        }
    }

    #[test]
    fn the_order_of_measuring_does_not_matter(mut values in values()) {
        let before = (median(&values), quartiles(&values));
        values.reverse();
        prop_assert_eq!((median(&values), quartiles(&values)), before);
    }

    #[test]
    fn a_larger_unit_changes_no_range(values in values()) {
        let times_four: Vec<f64> = values.iter().map(|value| value * 4.0).collect();
        let (small, large) = (Summary::of(&values).unwrap(), Summary::of(&times_four).unwrap());
        prop_assert_eq!(exact(small.low * 4.0, small.median * 4.0, small.high * 4.0), large);
    }
}

#[test]
fn medians_and_quartiles_of_a_few() {
    let table: &[(&[f64], f64, (f64, f64))] = &[
        (&[7.0], 7.0, (7.0, 7.0)),
        (&[1.0, 2.0], 1.5, (1.25, 1.75)),
        (&[9.0, 1.0, 2.0], 2.0, (1.5, 5.5)),
        (&[4.0, 1.0, 3.0, 2.0, 5.0], 3.0, (2.0, 4.0)),
    ];
    for (values, middle, quarters) in table {
        assert_eq!((median(values), quartiles(values)), (Some(*middle), Some(*quarters)), "{values:?}");
    }
    assert_eq!((median(&[]), quartiles(&[]), Summary::of(&[])), (None, None, None));
}

/// With many rounds one that went wrong moves nothing.
#[test]
fn one_stray_round_of_many_moves_no_end() {
    let mut values = vec![10.0; 20];
    values.push(1_000.0);
    assert_eq!(Summary::of(&values), Some(exact(10.0, 10.0, 10.0)));
}

#[test]
fn a_spread_has_its_ends() {
    assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
    assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).map(|spread| spread.median), Some(2.5));
    assert_eq!(Spread::of(&[]), None);
    assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
}
