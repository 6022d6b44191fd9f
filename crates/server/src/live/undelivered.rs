//! Long deliveries that were handed over and not taken yet: what readers that stand still make the server
//! hold.
//!
//! It owns the shares: the slices of a delivery are shared by all who get it, so each of them has its part in
//! the account of its connection. It must never cost a short delivery more than a comparison.

use std::sync::Arc;

use foldhash::HashMap;

use super::pending::{Pending, SharedBytes};
use crate::limits::LONG_DELIVERY_BYTES_MIN;

/// Seats with the deliveries that they stand before.
#[derive(Debug, Default)]
pub(crate) struct Undelivered {
    seats: HashMap<u32, Stand>,
    /// Number of readers before each delivery.
    counts: HashMap<LongDelivery, usize>,
}

#[derive(Debug)]
struct Stand {
    delivery: LongDelivery,
    noted_bytes: usize,
}

/// A delivery of some length, told from others by where its first slice lies: that is held until it was
/// taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LongDelivery {
    first: usize,
    bytes: usize,
}

impl LongDelivery {
    /// The delivery that is about to be handed over, unless it is short.
    #[inline]
    pub(crate) fn of(pending: &Pending) -> Option<Self> {
        let slices = pending.slices();
        let bytes = slices.iter().map(|slice| slice.len() + size_of::<SharedBytes>()).sum();
        let first = slices.last().filter(|_| bytes >= LONG_DELIVERY_BYTES_MIN)?;
        Some(Self { first: Arc::as_ptr(first).addr(), bytes })
    }
}

impl Undelivered {
    /// A seat is handed this from now on, or nothing long.
    #[inline]
    pub(crate) fn set(&mut self, seat: u32, delivery: Option<LongDelivery>) {
        if delivery.is_some() || !self.seats.is_empty() {
            self.change(seat, delivery);
        }
    }

    #[cold]
    fn change(&mut self, seat: u32, delivery: Option<LongDelivery>) {
        let stand = delivery.map(|delivery| Stand { delivery, noted_bytes: 0 });
        let before = match stand {
            Some(stand) => self.seats.insert(seat, stand),
            None => self.seats.remove(&seat),
        };
        if let Some(delivery) = delivery {
            *self.counts.entry(delivery).or_default() += 1;
        }
        if let Some(Stand { delivery, .. }) = before
            && let Some(count) = self.counts.get_mut(&delivery)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&delivery);
            }
        }
        if self.seats.is_empty() {
            // Memory that a crowd needed is given back.
            *self = Self::default();
        }
    }

    /// Bytes that a seat has to have in its account.
    #[inline]
    pub(crate) fn note(&mut self, seat: u32) -> usize {
        if self.seats.is_empty() { 0 } else { self.note_share(seat) }
    }

    #[cold]
    fn note_share(&mut self, seat: u32) -> usize {
        let Self { seats, counts } = self;
        let Some(stand) = seats.get_mut(&seat) else { return 0 };
        stand.noted_bytes = share(counts, stand.delivery);
        stand.noted_bytes
    }

    /// Seats whose share is more than a tenth other than what was noted.
    pub(crate) fn outdated(&self) -> Vec<u32> {
        let is_outdated = |stand: &Stand| {
            let now = share(&self.counts, stand.delivery);
            now.abs_diff(stand.noted_bytes) > now / 10
        };
        self.seats.iter().filter(|(_, stand)| is_outdated(stand)).map(|(seat, _)| *seat).collect()
    }
}

fn share(counts: &HashMap<LongDelivery, usize>, delivery: LongDelivery) -> usize {
    delivery.bytes.div_ceil(counts.get(&delivery).copied().unwrap_or(1).max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Slices of these lengths.
    fn slices(lengths: &[usize]) -> Vec<SharedBytes> {
        lengths.iter().map(|length| vec![b'x'; *length].into()).collect()
    }

    #[test]
    fn short_deliveries_are_not_listed() {
        let mut undelivered = Undelivered::default();
        for length in [0, 1, LONG_DELIVERY_BYTES_MIN - size_of::<SharedBytes>() - 1] {
            undelivered.set(1, LongDelivery::of(&Pending::of(&slices(&[length]))));
        }
        undelivered.set(1, LongDelivery::of(&Pending::Nothing));
        assert!(
            undelivered.seats.is_empty() && undelivered.note(1) == 0 && undelivered.outdated().is_empty()
        );
    }

    proptest! {
        /// Accounts of all together count what is held, whoever comes and goes.
        #[test]
        fn what_is_counted_is_what_is_held(
            lengths in prop::collection::vec(prop::collection::vec(1_usize..60_000, 1..6), 1..5),
            steps in prop::collection::vec((0_u32..40, prop::option::of(0_usize..5)), 1..120),
        ) {
            let deliveries: Vec<Vec<SharedBytes>> = lengths.iter().map(|lengths| slices(lengths)).collect();
            let mut undelivered = Undelivered::default();
            let mut accounts = BTreeMap::new();
            let mut held = BTreeMap::new();
            for (seat, which) in steps {
                let which = which.map(|which| which % deliveries.len());
                let pending = which.map_or(Pending::Nothing, |which| Pending::of(&deliveries[which]));
                undelivered.set(seat, LongDelivery::of(&pending));
                accounts.insert(seat, undelivered.note(seat));
                held.insert(seat, which);
                for seat in undelivered.outdated() {
                    accounts.insert(seat, undelivered.note(seat));
                }
                let before: BTreeSet<usize> = held.values().flatten().copied().collect();
                let bytes = |which: &usize| deliveries[*which].iter().map(|slice| slice.len()).sum::<usize>();
                let held_bytes: usize = before.iter().map(bytes).sum();
                let counted_bytes: usize = accounts.values().sum();
                let short_bytes = deliveries.len() * LONG_DELIVERY_BYTES_MIN;
                let said = format!("{counted_bytes} for {held_bytes}");
                prop_assert!(counted_bytes * 10 <= held_bytes * 11 + 10_000, "{said}");
                prop_assert!((counted_bytes + short_bytes) * 10 >= held_bytes * 9, "{said}");
            }
            for seat in 0..40 {
                undelivered.set(seat, None);
            }
            prop_assert!(undelivered.seats.is_empty() && undelivered.counts.is_empty());
        }
    }
}
