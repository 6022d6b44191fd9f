//! Which numbers of a topic one reader has had: what is lost, repeated, or out of order.
//!
//! It must never grow without bound: of very many gaps the oldest are forgotten, and what fills them later
//! counts as repeated.

/// Gaps that are remembered. A server that loses every second of thousands of updates has as many.
const GAPS_MAX: usize = 1024;

/// What a number was when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberArrival {
    /// The next one, or one behind it: then so many were passed over.
    Ahead {
        /// How many numbers between the last and this one did not come.
        missed: u64,
    },
    /// A number that had been passed over: out of order.
    Late,
    /// A number that had come before.
    Repeated,
}

/// The account of one reader.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The number that comes next; 0 before the first one sets it.
    next: u64,
    /// The first number that was due.
    first: u64,
    /// First and last of the numbers that were passed over, in ascending order.
    gaps: Vec<(u64, u64)>,
}

impl Ledger {
    /// From now on every number from this one on is due.
    pub(crate) fn expect_from(&mut self, first: u64) {
        *self = Self { next: first, first, gaps: Vec::new() };
    }

    /// Whether it is known which number is due.
    pub(crate) fn is_begun(&self) -> bool {
        self.next > 0
    }

    /// Takes a number, from 1 on. The first one begins the account if nothing else did.
    pub(crate) fn note(&mut self, number: u64) -> NumberArrival {
        if !self.is_begun() {
            self.expect_from(number);
        }
        if number >= self.next {
            let missed = number - self.next;
            if missed > 0 {
                self.add_gap((self.next, number - 1));
            }
            self.next = number.saturating_add(1);
            return NumberArrival::Ahead { missed };
        }
        let place = self.gaps.partition_point(|(_, last)| *last < number);
        let Some(&(first, last)) = self.gaps.get(place).filter(|(first, _)| *first <= number) else {
            return NumberArrival::Repeated;
        };
        let rest = [(first, number.wrapping_sub(1)), (number + 1, last)];
        let rest = rest.into_iter().filter(|(first, last)| first <= last);
        self.gaps.splice(place..=place, rest);
        NumberArrival::Late
    }

    /// How many of the numbers up to this one are due: those that came, those that were passed over, and
    /// those that have not come yet.
    pub(crate) fn due(&self, published: u64) -> u64 {
        if self.is_begun() { published.max(self.next - 1) + 1 - self.first } else { 0 }
    }

    /// How many of the numbers up to this one have not come yet, behind the last that did.
    pub(crate) fn behind(&self, published: u64) -> u64 {
        if self.is_begun() { (published + 1).saturating_sub(self.next) } else { 0 }
    }

    /// Whether a number was passed over and has not come since.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.gaps.is_empty()
    }

    fn add_gap(&mut self, gap: (u64, u64)) {
        if self.gaps.len() == GAPS_MAX {
            self.gaps.remove(0);
        }
        self.gaps.push(gap);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_kind_of_arrival() {
        let mut ledger = Ledger::default();
        assert_eq!((ledger.is_begun(), ledger.due(9), ledger.behind(9)), (false, 0, 0));
        ledger.expect_from(1);
        assert_eq!((ledger.due(0), ledger.due(3), ledger.behind(3)), (0, 3, 3));
        let arrivals = [1, 5, 3, 3, 2, 4, 4, 6].map(|number| ledger.note(number));
        use NumberArrival::{Ahead, Late, Repeated};
        let expected = [
            Ahead { missed: 0 },
            Ahead { missed: 3 },
            Late,
            Repeated,
            Late,
            Late,
            Repeated,
            Ahead { missed: 0 },
        ];
        assert_eq!(arrivals, expected);
        assert_eq!((ledger.has_gaps(), ledger.due(8), ledger.behind(8)), (false, 8, 2));
    }

    #[test]
    fn who_comes_late_begins_with_what_comes_first() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.note(40), NumberArrival::Ahead { missed: 0 });
        assert_eq!(ledger.note(39), NumberArrival::Repeated);
        assert_eq!((ledger.due(41), ledger.behind(41)), (2, 1));
    }

    #[test]
    fn gaps_are_bounded() {
        let mut ledger = Ledger::default();
        ledger.expect_from(1);
        for number in 1..=5000 {
            ledger.note(number * 2);
        }
        assert_eq!(ledger.gaps.len(), GAPS_MAX);
        assert_eq!((ledger.note(1), ledger.note(9999)), (NumberArrival::Repeated, NumberArrival::Late));
    }

    proptest! {
        #[test]
        fn the_account_is_that_of_a_set(numbers in prop::collection::vec(1u64..60, 0..200)) {
            let (mut ledger, mut seen, mut missed) = (Ledger::default(), BTreeSet::new(), 0);
            ledger.expect_from(1);
            for number in numbers {
                let highest = seen.last().copied().unwrap_or(0);
                let expected = match seen.insert(number) {
                    false => NumberArrival::Repeated,
                    true if number < highest => NumberArrival::Late,
                    true => NumberArrival::Ahead { missed: number - highest - 1 },
                };
                match expected {
                    NumberArrival::Ahead { missed: more } => missed += more,
                    NumberArrival::Late => missed -= 1,
                    NumberArrival::Repeated => {}
                }
                prop_assert_eq!(ledger.note(number), expected);
            }
            prop_assert_eq!(ledger.has_gaps(), missed > 0);
            prop_assert_eq!(ledger.due(70), 70);
            prop_assert_eq!(seen.len() as u64 + missed + ledger.behind(70), 70);
        }
    }
}
