//! What holds for every order of models, and some that were reckoned by hand. Nothing here is measured.
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::results::{ClientReport, Usage};

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

fn ranked(summaries: &[Summary]) -> Vec<Rank> {
    let named = named(summaries);
    rank(&named.iter().map(|(name, summary)| (name.as_str(), *summary)).collect::<Vec<_>>())
}

proptest! {
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
