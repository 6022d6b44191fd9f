//! Classes and known clients in line: any history, and crowds before simulated applications.
//!
//! Time is an argument, so every run of a seed is the same to the last answer; `--nocapture` shows the parts
//! that were answered.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

use staunch_engine::{
    Address, GivenBack, PlaceAnswer, PlaceClass, PlaceNews, Places, PlacesLimit, Standing, StreamRef,
};

/// Milliseconds after which who stands in line is looked at again.
const STEP_MS: u64 = 10;
const PATIENCE_MS: u64 = 1000;
const USERS: Standing = Standing { class: PlaceClass::Normal, is_known: false };
const KNOWN: Standing = Standing { class: PlaceClass::Normal, is_known: true };
const URGENT: Standing = Standing { class: PlaceClass::High, is_known: false };
const PREFETCH: Standing = Standing { class: PlaceClass::Low, is_known: false };

fn places(limit: PlacesLimit) -> Places {
    Places::new(limit, PATIENCE_MS as u32)
}

fn address(slot: u32) -> Address {
    Address { worker: 0, slot, generation: 1, stream: StreamRef::ONLY }
}

/// Gives back a place, and tells whose turn it is.
fn next(places: &Places) -> Option<u32> {
    let mut news = Vec::new();
    places.give_back(GivenBack::Unanswered, 0, &mut news);
    news.first().map(|one| one.address.slot)
}

/// Requests that come in this order while the only place is taken, in the order in which they get it.
fn order(came: &[Standing]) -> Vec<u32> {
    let places = places(PlacesLimit::Fixed(1));
    let mut news = Vec::new();
    assert_eq!(places.ask(address(100), USERS, 0, &mut news), PlaceAnswer::Taken);
    for (slot, standing) in (0..).zip(came) {
        assert_eq!(places.ask(address(slot), *standing, 0, &mut news), PlaceAnswer::Waits, "{slot}");
    }
    std::iter::from_fn(|| next(&places)).collect()
}

#[test]
fn classes_go_in_order_then_known_clients_and_then_the_first() {
    assert_eq!(order(&[PREFETCH, USERS, KNOWN, URGENT]), [3, 2, 1, 0]);
    assert_eq!(order(&[USERS, KNOWN, USERS, KNOWN]), [1, 3, 0, 2]);
    let low_known = Standing { is_known: true, ..PREFETCH };
    assert_eq!(order(&[low_known, USERS]), [1, 0], "a known client makes no request urgent");
}

#[test]
fn a_stranger_gets_one_of_four_places_beside_known_clients_of_its_class() {
    assert_eq!(order(&[USERS, KNOWN, KNOWN, KNOWN, KNOWN, KNOWN]), [1, 2, 3, 0, 4, 5]);
    assert_eq!(order(&[PREFETCH, URGENT, URGENT, URGENT, URGENT]), [1, 2, 3, 4, 0], "not beside a class");
}

#[test]
fn a_full_line_has_room_for_what_goes_before_it_and_for_strangers() {
    let places = places(PlacesLimit::Fixed(1));
    let mut slots = 0..;
    let mut ask = |standing, count: usize| -> usize {
        let mut ask = || places.ask(address(slots.next().expect("a slot")), standing, 0, &mut Vec::new());
        (0..count).filter(|_| matches!(ask(), PlaceAnswer::Waits)).count()
    };
    // The first has the place. While no rate is known, eight may wait.
    assert_eq!(ask(PREFETCH, 20), 8);
    assert_eq!(ask(KNOWN, 20), 8, "requests of low class are not before it");
    assert_eq!(ask(USERS, 20), 2, "a quarter of eight, which known clients cannot take");
    assert_eq!(ask(URGENT, 20), 8);
    assert_eq!(ask(USERS, 20), 0, "their part is taken");
    let waiting: Vec<u32> = places.by_standing().iter().map(|one| one.waiting).collect();
    assert_eq!(waiting, [0, 8, 8, 2, 0, 8]);
    let of = |standing: Standing| places.by_standing()[standing.rank()];
    let figures = of(USERS);
    assert_eq!((figures.asked, figures.refused, figures.standing), (40, 38, USERS));
    assert!(places.is_full(PREFETCH, 0) && places.is_full(URGENT, 0));
}

#[test]
fn a_request_of_low_class_waits_for_a_quarter_of_the_patience() {
    let places = places(PlacesLimit::Fixed(1));
    let mut news = Vec::new();
    for (slot, standing) in [(0, USERS), (1, PREFETCH), (2, USERS)] {
        places.ask(address(slot), standing, 100, &mut news);
    }
    assert!(places.tick(350, &mut news) && news.is_empty());
    assert!(places.tick(361, &mut news));
    assert_eq!(news, [PlaceNews { address: address(1), has_place: false }]);
    assert_eq!(places.by_standing()[PREFETCH.rank()].refused, 1);
    news.clear();
    assert!(!places.tick(1112, &mut news));
    assert_eq!(news, [PlaceNews { address: address(2), has_place: false }]);
}

/// Numbers that chance draws (SplitMix64).
struct Chance(u64);

impl Chance {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// How many come in a millisecond in which this many are to be expected.
    fn arrivals(&mut self, mean: f64) -> usize {
        let part = |chance: &mut Self| chance.draw(1 << 53) as f64 / (1_u64 << 53) as f64;
        let (least, mut product, mut count) = ((-mean).exp(), part(self), 0);
        while product > least {
            product *= part(self);
            count += 1;
        }
        count
    }
}

/// A line as it has to be: who waits, and who has got what.
struct Model {
    seed: u64,
    waiting: Vec<(Address, Standing, u64)>,
    /// Known clients that went before strangers who waited, in a row, by class.
    before_strangers: [usize; 3],
    in_work: usize,
    asked: usize,
    ended: usize,
}

impl Model {
    fn hear(&mut self, news: &mut Vec<PlaceNews>, now_ms: u64) {
        for PlaceNews { address, has_place } in news.drain(..) {
            let seed = self.seed;
            let index = self.waiting.iter().position(|one| one.0 == address);
            let index = index.unwrap_or_else(|| panic!("seed {seed}: news for a request that does not wait"));
            let (_, standing, came_ms) = self.waiting[index];
            if has_place {
                self.check_turn(index, standing);
                self.in_work += 1;
            } else {
                let wait_ms = if standing.class == PlaceClass::Low { PATIENCE_MS / 4 } else { PATIENCE_MS };
                assert!(now_ms - came_ms > wait_ms, "seed {seed}: refused too early");
                self.ended += 1;
            }
            self.waiting.remove(index);
        }
    }

    fn check_turn(&mut self, index: usize, standing: Standing) {
        let seed = self.seed;
        let wait = |wanted: Standing| self.waiting.iter().any(|one| one.1 == wanted);
        assert!(self.waiting.iter().all(|one| one.1.class <= standing.class), "seed {seed}: class");
        let is_first = self.waiting[..index].iter().all(|one| one.1 != standing);
        assert!(is_first, "seed {seed}: the first of equals goes first");
        let [known, strangers] = [true, false].map(|is_known| wait(Standing { is_known, ..standing }));
        let passed = &mut self.before_strangers[standing.class as usize];
        match (standing.is_known, known && strangers) {
            (true, true) => *passed += 1,
            (false, true) => assert_eq!(std::mem::take(passed), 3, "seed {seed}: one of four"),
            (_, false) => *passed = 0,
        }
        assert!(*passed <= 3, "seed {seed}: strangers starve");
    }

    /// Behind a look at the line all wait no longer than they may.
    fn check_waits(&self, now_ms: u64) {
        for (_, standing, came_ms) in &self.waiting {
            let wait_ms = if standing.class == PlaceClass::Low { PATIENCE_MS / 4 } else { PATIENCE_MS };
            assert!(now_ms - came_ms <= wait_ms + STEP_MS, "seed {}: {standing:?} is forgotten", self.seed);
        }
    }
}

/// Whatever happens, each request ends in one way, and turns are in order.
#[test]
fn no_request_is_lost_and_turns_are_in_order_in_any_history() {
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let limit = 1 + chance.draw(4) as u32;
        let places = places(PlacesLimit::Fixed(limit));
        let mut model =
            Model { seed, waiting: Vec::new(), before_strangers: [0; 3], in_work: 0, asked: 0, ended: 0 };
        let (mut now_ms, mut news) = (1, Vec::new());
        for slot in 0..600 {
            match chance.draw(10) {
                0..=5 => {
                    let standing = Standing::ALL[chance.draw(6) as usize];
                    let answer = places.ask(address(slot), standing, now_ms, &mut news);
                    model.asked += 1;
                    model.hear(&mut news, now_ms);
                    match answer {
                        PlaceAnswer::Taken => model.in_work += 1,
                        PlaceAnswer::Waits => model.waiting.push((address(slot), standing, now_ms)),
                        PlaceAnswer::Refused { .. } => model.ended += 1,
                    }
                }
                6..=7 if model.in_work > 0 => {
                    let in_work_ms = chance.draw(50) as u32;
                    (model.in_work, model.ended) = (model.in_work - 1, model.ended + 1);
                    places.give_back(GivenBack::Answered { in_work_ms }, now_ms, &mut news);
                    model.hear(&mut news, now_ms);
                }
                8 if !model.waiting.is_empty() => {
                    let index = chance.draw(model.waiting.len() as u64) as usize;
                    assert!(places.leave(model.waiting.remove(index).0), "seed {seed}");
                    model.ended += 1;
                }
                _ => {
                    now_ms += STEP_MS + chance.draw(150);
                    places.tick(now_ms, &mut news);
                    model.hear(&mut news, now_ms);
                    model.check_waits(now_ms);
                }
            }
            let figures = places.figures();
            let (in_work, waiting) = (figures.in_work as usize, figures.waiting as usize);
            assert_eq!((in_work, waiting), (model.in_work, model.waiting.len()), "seed {seed}");
            assert!(waiting == 0 || in_work == limit as usize, "seed {seed}: a place is free");
            assert_eq!(model.asked, model.ended + in_work + waiting, "seed {seed}: one is lost");
        }
    }
}

/// Requests of each standing that came behind the first seconds, and how many were answered within the
/// patience.
fn answered_in_time(
    (at_once, service_ms): (usize, u64),
    crowds: &[(Standing, f64)],
    seed: u64,
) -> Vec<(f64, f64)> {
    const SECONDS: u64 = 30;
    // The limit is found in the first seconds, and those that come last are not answered before the end.
    const COUNTED_MS: std::ops::Range<u64> = 8_000..(SECONDS - 1) * 1_000;
    let places = places(PlacesLimit::Auto);
    let peak_per_ms = at_once as f64 / service_ms as f64;
    let mut chance = Chance(seed);
    // Each request's crowd, the moment it came and the moment it had a place.
    let mut requests: Vec<(usize, u64, u64)> = Vec::new();
    let (mut inside, mut served) = (VecDeque::<usize>::new(), VecDeque::<(usize, u64)>::new());
    let (mut counts, mut news) = (vec![(0.0, 0.0); crowds.len()], Vec::new());
    for now_ms in 1..SECONDS * 1_000 {
        while let Some((number, _)) = served.pop_front_if(|(_, end_ms)| *end_ms <= now_ms) {
            let (crowd, came_ms, placed_ms) = requests[number];
            let in_work_ms = (now_ms - placed_ms) as u32;
            places.give_back(GivenBack::Answered { in_work_ms }, now_ms, &mut news);
            if COUNTED_MS.contains(&came_ms) && now_ms - came_ms <= PATIENCE_MS {
                counts[crowd].1 += 1.0;
            }
        }
        for (crowd, (standing, load)) in crowds.iter().enumerate() {
            for _ in 0..chance.arrivals(load * peak_per_ms) {
                let number = requests.len();
                requests.push((crowd, now_ms, now_ms));
                counts[crowd].0 += f64::from(u8::from(COUNTED_MS.contains(&now_ms)));
                let answer = places.ask(address(number as u32), *standing, now_ms, &mut news);
                if answer == PlaceAnswer::Taken {
                    inside.push_back(number);
                }
            }
        }
        if now_ms % 50 == 0 {
            places.tick(now_ms, &mut news);
        }
        for one in news.drain(..).filter(|one| one.has_place) {
            requests[one.address.slot as usize].2 = now_ms;
            inside.push_back(one.address.slot as usize);
        }
        while served.len() < at_once
            && let Some(number) = inside.pop_front()
        {
            served.push_back((number, now_ms + service_ms));
        }
    }
    counts
}

/// The parts of two crowds that are answered in time, of all seeds together.
fn parts(application: (usize, u64), crowds: [(Standing, f64); 2]) -> [f64; 2] {
    let runs: Vec<_> = (0..4).map(|seed| answered_in_time(application, &crowds, seed)).collect();
    [0, 1].map(|crowd| {
        let sum = |of: fn(&(f64, f64)) -> f64| runs.iter().map(|run| of(&run[crowd])).sum::<f64>();
        sum(|counts| counts.1) / sum(|counts| counts.0)
    })
}

const ONE_PLACE: (usize, u64) = (1, 10);
const EIGHT_PLACES: (usize, u64) = (8, 200);

#[test]
fn users_are_answered_while_prefetch_is_offered_at_twelve_times() {
    for application in [ONE_PLACE, EIGHT_PLACES] {
        let [users, prefetch] = parts(application, [(USERS, 0.5), (PREFETCH, 12.0)]);
        println!("{application:?}: users {users:.4}, prefetch {prefetch:.4}");
        assert!(users >= 0.99, "{application:?}: {users:.4} of the users");
        assert!(prefetch >= 0.03, "{application:?}: {prefetch:.4} of what is left for prefetch");
        let [users, others] = parts(application, [(USERS, 0.5), (USERS, 12.0)]);
        assert!(users < 0.2 && others < 0.2, "{application:?}: without classes {users:.4}");
    }
}

#[test]
fn known_clients_are_answered_in_a_crowd_of_strangers_and_a_crowd_of_known_leaves_room() {
    for application in [ONE_PLACE, EIGHT_PLACES] {
        let [known, strangers] = parts(application, [(KNOWN, 0.5), (USERS, 10.0)]);
        println!("{application:?}: known {known:.4}, strangers {strangers:.4}");
        assert!(known >= 0.97, "{application:?}: {known:.4} of the known");
        // Whether a client is known may be its own word: others keep a fourth of the places.
        let [strangers, liars] = parts(application, [(USERS, 0.15), (KNOWN, 10.0)]);
        println!("{application:?}: strangers {strangers:.4}, liars {liars:.4}");
        assert!(strangers >= 0.9, "{application:?}: {strangers:.4} of the strangers");
    }
}
