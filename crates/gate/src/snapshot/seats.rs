//! Which viewers may look at the same time: so many, shared between the users of the host.
//!
//! It owns the rule alone. It must never know a socket or a thread.

/// Those who look at a time: each costs a thread.
pub(super) const SEATS_MAX: usize = 8;
/// The user who is never locked out by others.
const ROOT: u32 = 0;

/// The seats that are taken, in the order in which they were.
#[derive(Debug)]
pub(super) struct Seats<V> {
    taken: Vec<Seat<V>>,
    next: u64,
}

#[derive(Debug)]
struct Seat<V> {
    number: u64,
    user: u32,
    viewer: V,
}

impl<V> Seats<V> {
    pub(super) const fn new() -> Self {
        Self { taken: Vec::new(), next: 0 }
    }

    /// Takes a seat for a user. Gives its number, and who has to leave for it; `None` where there is no seat:
    /// while all are taken, a user who has two more than this one gives up the last of them, and to root
    /// any other one does.
    pub(super) fn take(&mut self, user: u32, viewer: V) -> Option<(u64, Option<V>)> {
        let leaves = if self.taken.len() < SEATS_MAX { None } else { Some(self.who_leaves_for(user)?) };
        let left = leaves.map(|place| self.taken.remove(place).viewer);
        let number = self.next;
        self.next += 1;
        self.taken.push(Seat { number, user, viewer });
        Some((number, left))
    }

    /// Gives a seat back; one that was taken away is nobody's any more.
    pub(super) fn give_back(&mut self, number: u64) {
        self.taken.retain(|seat| seat.number != number);
    }

    /// The place of the last seat of the user who has most.
    fn who_leaves_for(&self, user: u32) -> Option<usize> {
        let others = (0..self.taken.len()).filter(|place| self.taken[*place].user != user);
        let place = others.max_by_key(|place| (self.count(self.taken[*place].user), *place))?;
        let has_too_many = self.count(self.taken[place].user) > self.count(user) + 1;
        (has_too_many || (user == ROOT && self.count(ROOT) == 0)).then_some(place)
    }

    fn count(&self, user: u32) -> usize {
        self.taken.iter().filter(|seat| seat.user == user).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seats that these users asked for, one after the other; the viewer is its place in the row.
    fn seats(users: &[u32]) -> Seats<usize> {
        let mut seats = Seats::new();
        for (viewer, user) in users.iter().enumerate() {
            seats.take(*user, viewer);
        }
        seats
    }

    #[test]
    fn a_user_who_takes_all_seats_gives_way() {
        let mut greedy = seats(&[1000; SEATS_MAX]);
        assert!(greedy.take(1000, 90).is_none());
        // The last of them leaves, and no more than a fair share is taken away.
        for (turn, left) in [7, 6, 5, 4].into_iter().enumerate() {
            let (_, leaves) = greedy.take(1001, 100 + turn).expect("a seat");
            assert_eq!(leaves, Some(left), "turn {turn}");
        }
        assert!(greedy.take(1001, 200).is_none() && greedy.take(1000, 200).is_none());
        assert_eq!((greedy.count(1000), greedy.count(1001)), (4, 4));
    }

    #[test]
    fn root_is_never_locked_out() {
        let mut full = seats(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(full.take(9, 90).is_none());
        let (number, leaves) = full.take(ROOT, 91).expect("a seat for root");
        assert_eq!(leaves, Some(7));
        // A single seat of root's is enough.
        assert!(full.take(ROOT, 92).is_none());
        full.give_back(number);
        assert_eq!(full.take(9, 93).map(|(_, leaves)| leaves), Some(None));
    }

    #[test]
    fn a_seat_that_was_taken_away_is_given_back_by_nobody() {
        let mut seats = Seats::new();
        let (first, _) = seats.take(1, 'a').expect("a seat");
        for viewer in ['b'; SEATS_MAX - 1] {
            seats.take(1, viewer);
        }
        let taken_away = seats.taken.last().map(|seat| seat.number).expect("a seat");
        seats.take(2, 'c').expect("a seat");
        seats.give_back(taken_away);
        assert_eq!(seats.taken.len(), SEATS_MAX);
        seats.give_back(first);
        assert_eq!(seats.taken.len(), SEATS_MAX - 1);
    }
}
