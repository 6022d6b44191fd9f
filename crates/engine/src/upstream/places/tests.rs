//! Places are taken, waited for, refused and given back, by one thread and by several.

use std::collections::VecDeque;
use std::sync::Arc;

use super::*;
use crate::exchange::address::StreamRef;

const PATIENCE_MS: u32 = 1000;

fn address(slot: u32) -> Address {
    Address { worker: 0, slot, generation: 1, stream: StreamRef::ONLY }
}

/// The answer to a request that comes, where nobody hears news.
fn ask(places: &Places, slot: u32, now_ms: u64) -> PlaceAnswer {
    let mut news = Vec::new();
    let answer = places.ask(address(slot), Standing::default(), now_ms, &mut news);
    assert_eq!(news, [], "for others");
    answer
}

fn give_back(places: &Places, now_ms: u64) -> Vec<PlaceNews> {
    let mut news = Vec::new();
    places.give_back(GivenBack::Answered { in_work_ms: 10 }, now_ms, &mut news);
    news
}

#[test]
fn as_many_as_the_limit_have_places_and_the_first_in_line_has_the_next() {
    let places = Places::new(PlacesLimit::Fixed(2), PATIENCE_MS);
    assert_eq!([1, 2, 3, 4].map(|slot| ask(&places, slot, 0)), {
        use PlaceAnswer::{Taken, Waits};
        [Taken, Taken, Waits, Waits]
    });
    assert_eq!(give_back(&places, 5), [PlaceNews { address: address(3), has_place: true }]);
    assert!(places.leave(address(4)) && !places.leave(address(4)) && !places.leave(address(3)));
    assert_eq!((give_back(&places, 6), give_back(&places, 7)), (vec![], vec![]));
    let figures = places.figures();
    assert_eq!((figures.in_work, figures.waiting, figures.limit), (0, 0, 2));
}

#[test]
fn no_limit_lets_everybody_in() {
    let places = Places::new(PlacesLimit::Off, PATIENCE_MS);
    assert!((0..10_000).all(|slot| ask(&places, slot, 0) == PlaceAnswer::Taken));
    assert_eq!(places.figures().in_work, 10_000);
}

#[test]
fn more_than_can_be_answered_in_time_are_refused() {
    let places = Places::new(PlacesLimit::Fixed(1), PATIENCE_MS);
    let answers: Vec<_> = (0..20).map(|slot| ask(&places, slot, 0)).collect();
    let count = |wanted| answers.iter().filter(|answer| **answer == wanted).count();
    assert_eq!((count(PlaceAnswer::Taken), count(PlaceAnswer::Waits)), (1, 8), "while no rate is known");
    assert_eq!(count(PlaceAnswer::Refused { spread_s: 1 }), 11);
    assert_eq!(places.figures().refused, 11);
}

#[test]
fn clients_whose_patience_is_over_leave_the_line() {
    let places = Places::new(PlacesLimit::Fixed(1), PATIENCE_MS);
    assert_eq!([1, 2].map(|slot| ask(&places, slot, 100)), [PlaceAnswer::Taken, PlaceAnswer::Waits]);
    let mut news = Vec::new();
    assert_eq!(places.ask(address(3), Standing::default(), 1101, &mut news), PlaceAnswer::Waits);
    assert_eq!(news, [PlaceNews { address: address(2), has_place: false }]);
}

#[test]
fn the_law_finds_the_places_of_a_server() {
    // Four places of 10 ms, and a client for each millisecond: ten times what can be served.
    let places = Places::new(PlacesLimit::Auto, PATIENCE_MS);
    let (mut begun, mut inside, mut news) = (Vec::<u64>::new(), VecDeque::new(), Vec::new());
    let (mut answered, mut at_the_end) = (0, 0);
    for now_ms in 0..20_000_u64 {
        begun.retain(|since_ms| {
            let is_over = now_ms >= since_ms + 10;
            if is_over {
                places.give_back(GivenBack::Answered { in_work_ms: 10 }, now_ms, &mut news);
                answered += 1;
                at_the_end += u32::from(now_ms >= 15_000);
            }
            !is_over
        });
        if places.ask(address(now_ms as u32), Standing::default(), now_ms, &mut news) == PlaceAnswer::Taken {
            inside.push_back(now_ms);
        }
        inside.extend(news.drain(..).filter(|news| news.has_place).map(|_| now_ms));
        while begun.len() < 4
            && let Some(_) = inside.pop_front()
        {
            begun.push(now_ms);
        }
    }
    assert!(at_the_end > 1_900, "{at_the_end} of 2 000 in the last five seconds, {answered} in all");
    let figures = places.figures();
    assert!((4..=64).contains(&figures.limit) && figures.refused > 10_000, "{figures:?}");
}

#[test]
fn a_place_given_back_is_never_lost_between_threads() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 20_000;
    let places = Arc::new(Places::new(PlacesLimit::Fixed(2), PATIENCE_MS));
    // A thread that hears that another request has a place uses it and gives it back on that one's behalf.
    let use_place = |places: &Places, news: &mut Vec<PlaceNews>| {
        let mut places_held = 1;
        while places_held > 0 {
            places.give_back(GivenBack::Unanswered, 0, news);
            places_held -= 1;
            places_held += news.drain(..).filter(|news| news.has_place).count();
        }
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let places = Arc::clone(&places);
            std::thread::spawn(move || {
                let mut news = Vec::new();
                for round in 0..ROUNDS {
                    let standing = Standing::ALL[round as usize % Standing::ALL.len()];
                    let answer = places.ask(address(thread * ROUNDS + round), standing, 0, &mut news);
                    let granted = news.drain(..).filter(|news| news.has_place).count();
                    let taken = usize::from(answer == PlaceAnswer::Taken);
                    (0..granted + taken).for_each(|_| use_place(&places, &mut news));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let figures = places.figures();
    assert_eq!((figures.in_work, figures.waiting), (0, 0), "{figures:?}");
}

#[test]
fn work_beside_the_places_tells_nothing_of_the_rate() {
    let rate_after = |how| {
        let places = Places::new(PlacesLimit::Fixed(1), PATIENCE_MS);
        assert_eq!([1, 2].map(|slot| ask(&places, slot, 100)), [PlaceAnswer::Taken, PlaceAnswer::Waits]);
        let mut news = Vec::new();
        places.give_back(how, 200, &mut news);
        assert_eq!(news, [PlaceNews { address: address(2), has_place: true }]);
        let figures = places.figures();
        assert_eq!((figures.in_work, figures.unanswered), (1, 0));
        figures.rate
    };
    assert!(rate_after(GivenBack::Answered { in_work_ms: 100 }) > 0.0);
    assert_eq!(rate_after(GivenBack::Beside), 0.0);
}

#[test]
fn those_in_line_at_a_server_that_is_gone_are_told_and_those_in_work_stay() {
    let places = Places::new(PlacesLimit::Fixed(1), PATIENCE_MS);
    (1..4).for_each(|slot| _ = ask(&places, slot, 0));
    let mut news = Vec::new();
    places.send_away(&mut news);
    assert_eq!(news, [2, 3].map(|slot| PlaceNews { address: address(slot), has_place: false }));
    assert_eq!((places.figures().in_work, places.figures().waiting), (1, 0));
    assert_eq!(give_back(&places, 5), []);
}

#[test]
fn bursts_with_quiet_between_them_are_let_in() {
    // A page and its parts, every five seconds, from a server that answers each in a millisecond.
    for limit in [PlacesLimit::Auto, PlacesLimit::Fixed(1)] {
        let places = Places::new(limit, PATIENCE_MS);
        let (mut news, mut at_work) = (Vec::new(), 0);
        for now_ms in 0..300_000 {
            (0..at_work).for_each(|_| {
                places.give_back(GivenBack::Answered { in_work_ms: 1 }, now_ms, &mut news);
            });
            at_work = 0;
            for part in (0..8).filter(|_| now_ms % 5_000 == 0) {
                let answer = places.ask(address(part), Standing::default(), now_ms, &mut news);
                at_work += u32::from(answer == PlaceAnswer::Taken);
            }
            at_work += u32::try_from(news.drain(..).filter(|news| news.has_place).count()).unwrap();
        }
        let figures = places.figures();
        assert_eq!(figures.refused, 0, "{limit:?} {figures:?}");
    }
}
