//! What holds for every handful of rounds, and some that were reckoned by hand. Nothing here is measured.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::results::{ClientReport, Usage};

fn values() -> impl Strategy<Value = Vec<f64>> {
    vec(0.0f64..1e6, 1..12)
}

fn summaries() -> impl Strategy<Value = Vec<Summary>> {
    let one = (0.0f64..100.0, 0.0f64..10.0, 0.0f64..10.0);
    vec(one, 0..20).prop_map(|all| {
        all.into_iter().map(|(median, below, above)| exact(median - below, median, median + above)).collect()
    })
}

fn exact(low: f64, median: f64, high: f64) -> Summary {
    Summary { median, low, high }
}

fn named(summaries: &[Summary]) -> Vec<(String, Summary)> {
    summaries.iter().enumerate().map(|(number, summary)| (number.to_string(), *summary)).collect()
}

fn ranked(summaries: &[Summary]) -> Vec<Place> {
    let named = named(summaries);
    rank(&named.iter().map(|(name, summary)| (name.as_str(), *summary)).collect::<Vec<_>>())
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

    #[test]
    fn a_place_is_one_more_than_the_number_of_the_surely_smaller(summaries in summaries()) {
        let places = ranked(&summaries);
        prop_assert_eq!(places.len(), summaries.len());
        for (index, a) in places.iter().enumerate() {
            let before = places.iter().filter(|b| b.summary.high < a.summary.low).count();
            prop_assert_eq!(a.place, before + 1);
            prop_assert!(index == 0 || places[index - 1].place <= a.place);
        }
    }

    #[test]
    fn who_shares_a_place_cannot_be_told_apart(summaries in summaries()) {
        let places = ranked(&summaries);
        for a in &places {
            for b in &places {
                prop_assert!(a.place != b.place || a.summary.overlaps(&b.summary));
            }
        }
    }

    #[test]
    fn the_order_of_entries_does_not_matter(summaries in summaries()) {
        let mut entries = named(&summaries);
        let of = |entries: &[(String, Summary)]| {
            let entries: Vec<_> = entries.iter().map(|(name, summary)| (name.as_str(), *summary)).collect();
            let places = rank(&entries).into_iter().map(|place| (place.name, place.place));
            places.collect::<BTreeMap<_, _>>()
        };
        let before = of(&entries);
        entries.reverse();
        prop_assert_eq!(of(&entries), before);
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

/// Each overlaps with the next, and still the last of the chain does not stand beside the first.
#[test]
fn a_chain_of_overlaps_is_no_tie() {
    let entries = [
        ("last", exact(20.0, 21.0, 22.0)),
        ("c", exact(4.0, 5.0, 6.0)),
        ("a", exact(1.0, 2.0, 3.0)),
        ("b", exact(2.5, 3.5, 4.5)),
    ];
    let places: Vec<(String, usize)> =
        rank(&entries).into_iter().map(|place| (place.name, place.place)).collect();
    let expected = [("a", 1), ("b", 1), ("c", 2), ("last", 4)];
    assert_eq!(places, expected.map(|(name, place)| (name.to_owned(), place)));
}

fn measured(rounds: &[(f64, u64)]) -> Measured {
    let round = |&(system_s, answered): &(f64, u64)| Round {
        server: Usage { user_s: 1.0, system_s, ..Usage::default() },
        peak_memory_bytes: 0,
        served_by: Vec::new(),
        leaks: Vec::new(),
        client: ClientReport { answered, wall_s: 2.0, ..ClientReport::default() },
    };
    let row = crate::made_up::measured("poll", (1, 1, 4000, 0), &[]).row;
    Measured { row, rounds: rounds.iter().map(round).collect() }
}

#[test]
fn costs_are_per_answer_and_their_mean_weighs_rows_alike() {
    let (small, large) = (measured(&[(1.0, 2), (3.0, 2), (1.0, 2)]), measured(&[(9.0, 100), (19.0, 100)]));
    assert_eq!(cost(&small.rounds[0]), Some(Cost { cpu_s: 1.0, wall_s: 1.0 }));
    let means = mean_costs(&[&small, &large]);
    assert_eq!(means.iter().map(|cost| cost.cpu_s).collect::<Vec<_>>(), [0.55, 1.1]);
    let silent = measured(&[(1.0, 0), (3.0, 4)]);
    assert_eq!(cost(&silent.rounds[0]), None);
    assert_eq!(mean_costs(&[&silent, &large]).len(), 1);
    assert_eq!(mean_costs(&[]), []);
}
