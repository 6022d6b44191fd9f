//! Places at one server, taken and given back by threads that do nothing else.
//!
//! The processor time is seen from outside. It must never read a clock: the milliseconds are made up.

use std::thread;

use staunch_engine::{Address, GivenBack, PlaceAnswer, Places, PlacesLimit, Standing, StreamRef};

/// So long that no patience ends.
const PATIENCE_MS: u32 = 3_600_000;
/// Turns of a millisecond: at a quarter of a microsecond each.
const TURNS_PER_MS: u32 = 4096;

/// So many threads take a place and give it back, each so many times. A thread that has to wait leaves the
/// line at once, unless it was given a place meanwhile.
pub(crate) fn run(threads: u16, limit: u32, times: u32) {
    let places = Places::new(PlacesLimit::Fixed(limit), PATIENCE_MS);
    thread::scope(|scope| {
        for worker in 0..threads {
            let places = &places;
            scope.spawn(move || take_turns(places, worker, times));
        }
    });
    assert_eq!(places.figures().in_work, 0, "a place was not given back");
}

fn take_turns(places: &Places, worker: u16, times: u32) {
    let mut news = Vec::new();
    for turn in 0..times {
        let now_ms = u64::from(turn / TURNS_PER_MS);
        let address = Address { worker, slot: 0, generation: turn, stream: StreamRef::ONLY };
        let has_place = match places.ask(address, Standing::default(), now_ms, &mut news) {
            PlaceAnswer::Taken => true,
            PlaceAnswer::Waits => !places.leave(address),
            PlaceAnswer::Refused { .. } => false,
        };
        if has_place {
            places.give_back(GivenBack::Answered { in_work_ms: 1 }, now_ms, &mut news);
        }
        // Others learn that they have a place when they want to leave.
        news.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_given_back() {
        run(4, 4, 2_000);
        run(4, 2, 2_000);
    }
}
