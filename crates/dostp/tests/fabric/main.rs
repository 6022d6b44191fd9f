//! The fabric of whole clusters, by seed. A failure names the seed; `STAUNCH_SEEDS` gives their number.

mod hostile;
mod world;

use staunch_dostp::fabric::{Stamp, limits};
use staunch_dostp::kinds::publish::Publisher;
use staunch_dostp::kinds::realtime;
use world::{DEADLINE_MS, Faults, REALTIME, World};

const SITES: [&str; 2] = ["", "b.example"];

fn seeds(default_count: u64, scenario: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let count = std::env::var("STAUNCH_SEEDS").ok().and_then(|count| count.parse().ok());
    for seed in 0..count.unwrap_or(default_count) {
        if let Err(fault) = std::panic::catch_unwind(|| scenario(seed)) {
            println!("seed {seed}");
            std::panic::resume_unwind(fault);
        }
    }
}

/// Nodes publish, delete, come and go on a bad network.
fn live(world: &mut World, count: u64) {
    for address in 1..=count {
        world.start(address as u16, &SITES);
    }
    for round in 0..300 {
        let place = world.random.below(world.nodes.len() as u64) as usize;
        if !world.nodes[place].is_up {
            continue;
        }
        let site = world.random.below(2) as usize;
        // Half of them are real-time topics.
        let mut draw = || {
            let prefix = if world.random.below(2) == 0 { REALTIME } else { "" };
            format!("{prefix}{}", world.random.below(20))
        };
        let (topic, other) = (draw(), draw());
        let length = if world.random.below(20) == 0 { 5_000 } else { world.random.below(60) };
        let mut value = format!("{round}-").into_bytes();
        value.resize(length as usize + 4, b'x');
        match world.random.below(10) {
            0 => world.publish(place, site, &[&topic], None),
            1 if topic != other => world.publish(place, site, &[&topic, &other], Some(&value)),
            _ => world.publish(place, site, &[&topic], Some(&value)),
        }
        if world.random.below(100) == 0 {
            let parts = world.nodes.iter().map(|node| node.address).collect::<Vec<_>>();
            world.parts =
                parts.into_iter().map(|address| (address, (world.random.next() % 2) as u8)).collect();
        }
        if world.random.below(50) == 0 {
            world.parts.clear();
        }
        let pause_ms = world.random.below(60);
        world.run(pause_ms);
    }
}

/// The network is well again; how long it takes until all agree.
fn heal(world: &mut World) {
    (world.parts, world.faults) = (Default::default(), Faults::default());
    for _ in 0..40 {
        world.run(1_000);
        if (0..2).all(|site| world.agrees(site)) {
            return;
        }
    }
    for site in 0..2 {
        for place in 0..world.nodes.len() {
            println!("{place} {site}: {} of {}", world.values(place, site).len(), world.newest(site).len());
            println!("{:?}", world.nodes[place].fabric.counts());
        }
    }
    panic!("they do not agree");
}

#[test]
fn once_the_network_is_well_all_hold_the_same() {
    seeds(40, |seed| {
        let mut world =
            World::new(seed, Faults { lost: 100, doubled: 100, delayed: 300, ..Faults::default() });
        let count = 2 + world.random.below(7);
        live(&mut world, count);
        heal(&mut world);
    });
}

#[test]
fn whatever_is_lost_a_node_that_went_leaves_its_values() {
    seeds(20, |seed| {
        let mut world = World::new(seed, Faults { lost: 400, ..Faults::default() });
        live(&mut world, 4);
        world.nodes[0].is_up = false;
        heal(&mut world);
        // A node that begins anew with nothing gets everything, and so does a node that comes late.
        let expected: Vec<usize> = (0..2).map(|site| world.newest(site).len()).collect();
        world.start(1, &SITES);
        world.start(9, &SITES);
        heal(&mut world);
        let found: Vec<usize> = (0..2).map(|site| world.values(5, site).len()).collect();
        assert_eq!(found, expected);
    });
}

#[test]
fn who_comes_late_gets_few_small_values_as_well() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.publish(0, 0, &["a"], Some(b"1"));
    world.run(5_000);
    world.start(2, &SITES);
    world.run(1_100);
    assert_eq!(world.values(1, 0).get("a"), Some(&&b"1"[..]));
    world.run(5_000);
    let asked = |world: &World| [world.nodes[0].requests, world.nodes[1].requests];
    let before = asked(&world);
    world.run(60_000);
    assert_eq!(asked(&world), before, "all is known");
    assert!(before.iter().all(|count| *count <= 2), "{before:?}");
}

#[test]
fn an_update_that_was_lost_is_asked_for_at_once_when_the_next_one_comes() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    world.run(3_000);
    world.faults.lost = 1_000;
    world.publish(0, 0, &["a"], Some(b"1"));
    world.run(1);
    world.faults.lost = 0;
    world.publish(0, 0, &["b"], Some(b"2"));
    world.run(10);
    assert_eq!(world.values(1, 0).len(), 2);
}

#[test]
fn what_is_told_too_late_is_dropped_and_asked_for() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    world.run(3_000);
    world.publish(0, 0, &["quotes.a"], Some(b"1"));
    world.publish(0, 0, &["quotes.a", "other"], Some(b"2"));
    world.run(10);
    assert_eq!(world.values(1, 0).get("quotes.a"), Some(&&b"2"[..]));
    let counts = |world: &World, place: usize| *world.nodes[place].fabric.counts();
    // An update with an ordinary topic has no deadline.
    assert_eq!((counts(&world, 0).realtime_told, counts(&world, 1).realtime_heard), (1, 1));
    let asked = world.nodes[1].requests;
    for (way_ms, late) in [(u64::from(DEADLINE_MS), 0), (u64::from(DEADLINE_MS) + 1, 1)] {
        world.faults.way_ms = way_ms;
        world.publish(0, 0, &["quotes.a"], Some(b"3"));
        // A step until it is sent, and one that every message takes.
        world.run(way_ms + 2);
        world.faults.way_ms = 0;
        assert_eq!(counts(&world, 1).late, late, "on its way for {way_ms} ms");
        assert_eq!(world.nodes[1].requests, asked);
        world.publish(0, 0, &["quotes.b"], Some(&[late as u8]));
        world.run(10);
        assert!(world.agrees(0));
    }
    assert!(world.nodes[1].requests > asked, "what came too late was asked for");
}

#[test]
fn a_host_that_begins_anew_is_in_time_although_its_clock_is_another_one() {
    let told = |epoch: u32, sent_ms: u64, topic: &str| {
        let stamp = Stamp { ms: 0, node: 9, sequence: epoch };
        let payload = Publisher::new(epoch).publish(0, &hostile::record(stamp, topic));
        realtime::stamp(&payload, DEADLINE_MS * 1_000, sent_ms * 1_000)
    };
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.run(1_000);
    world.deliver(0, &hostile::data(9, &told(1, 50_000_000, "a")));
    world.deliver(0, &hostile::data(9, &told(1, 49_990_000, "late")));
    world.deliver(0, &hostile::data(9, &told(2, 49_980_000, "b")));
    world.run(10);
    let values = world.values(0, 0);
    assert_eq!(values.keys().collect::<Vec<_>>(), [&"a", &"b"]);
}

#[test]
fn without_questions_what_was_lost_stays_lost() {
    let mut world = World::new(1, Faults { lost: 200, drops_requests: true, ..Faults::default() });
    live(&mut world, 3);
    world.faults = Faults { drops_requests: true, ..Faults::default() };
    world.run(30_000);
    assert!(!world.agrees(0), "the check sees nothing");
}

#[test]
fn a_site_that_a_node_does_not_have_is_left_out() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &["b.example"]);
    world.publish(0, 0, &["a"], Some(b"1"));
    world.publish(0, 1, &["a"], Some(b"2"));
    world.run(3_000);
    assert_eq!(world.values(1, 0).get("a"), Some(&&b"2"[..]));
    assert_eq!((world.nodes[1].values.len(), world.nodes[1].fabric.counts().unknown_site), (1, 1));
}

#[test]
fn a_topic_that_was_forgotten_here_does_not_come_back_by_itself() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    world.publish(0, 0, &["a"], Some(b"1"));
    world.publish(0, 0, &["b"], Some(b"1"));
    world.run(3_000);
    world.forget(1, 0, "a");
    let before = world.nodes[1].requests;
    world.run(60_000);
    assert_eq!((world.values(1, 0).len(), world.values(0, 0).len()), (1, 2));
    let asked = world.nodes[1].requests - before;
    // A wait that doubles from 100 ms to 10 s leaves a minute room for a dozen rounds of some messages each.
    assert!((1..50).contains(&asked), "{asked} questions in a minute about what stays as it is");
    world.publish(0, 0, &["a"], Some(b"2"));
    world.run(10);
    assert_eq!(world.values(1, 0).get("a"), Some(&&b"2"[..]));
}

#[test]
fn ends_are_told_to_who_asks_also_after_they_were_forgotten_where_they_came_from() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    for topic in ["a", "b"] {
        world.publish(0, 0, &[topic], Some(b"1"));
    }
    world.run(3_000);
    world.parts.insert(2, 1);
    for topic in ["a", "b"] {
        world.publish(0, 0, &[topic], None);
    }
    world.forget(0, 0, "b");
    world.run(3_000);
    assert_eq!(world.values(1, 0).len(), 2);
    world.parts.clear();
    world.run(10_000);
    assert!(world.values(1, 0).is_empty(), "{:?}", world.values(1, 0).keys());
}

#[test]
fn an_update_has_as_many_topics_elsewhere_as_where_it_was_published() {
    let topics: Vec<String> = (0..limits::TOPICS_PER_RECORD_MAX).map(|number| number.to_string()).collect();
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    world.run(3_000);
    world.publish(0, 0, &topics, Some(b"1"));
    world.run(10);
    world.start(3, &SITES);
    world.run(3_000);
    assert_eq!([1, 2].map(|place| world.values(place, 0).len()), [topics.len(); 2]);
}

#[test]
fn clocks_that_were_wrong_keep_nothing_apart() {
    const WRONG_MS: i64 = 3_600_000;
    seeds(30, |seed| {
        let mut world = World::new(seed, Faults { lost: 50, doubled: 50, ..Faults::default() });
        let count = 2 + world.random.below(4);
        for address in 1..=count {
            world.start(address as u16, &SITES);
        }
        for round in 0..150 {
            let place = world.random.below(count) as usize;
            if round % 10 == 0 {
                let skew_ms = world.random.below(2 * WRONG_MS as u64) as i64 - WRONG_MS;
                world.nodes[place].skew_ms = if world.random.below(2) == 0 { 0 } else { skew_ms };
            }
            let topic = world.random.below(9).to_string();
            world.publish(place, 0, &[&topic], Some(round.to_string().as_bytes()));
            world.run(50);
        }
        // All clocks are set, and there is news of each topic.
        world.nodes.iter_mut().for_each(|node| node.skew_ms = 0);
        for topic in 0..9 {
            let place = world.random.below(count) as usize;
            world.publish(place, 0, &[&topic.to_string()], Some(b"now"));
            world.run(5);
        }
        world.faults = Faults::default();
        // Until what is ahead by no more than clocks may be is behind.
        world.run(limits::AHEAD_MS_MAX);
        heal(&mut world);
    });
}

#[test]
fn a_value_of_tomorrow_gives_way_once_the_clock_is_set() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    world.run(3_000);
    world.nodes[0].skew_ms = 86_400_000;
    world.publish(0, 0, &["a"], Some(b"of tomorrow"));
    world.run(3_000);
    assert_eq!(world.values(1, 0).get("a"), None);
    world.nodes[0].skew_ms = 0;
    world.publish(1, 0, &["a"], Some(b"of today"));
    world.run(3_000);
    assert_eq!([0, 1].map(|place| world.values(place, 0)["a"]), [b"of today"; 2]);
}

#[test]
fn a_value_too_long_to_be_told_makes_nobody_ask() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    world.publish(0, 0, &["a"], Some(b"1"));
    world.publish(0, 0, &["long"], Some(&vec![b'x'; limits::RECORD_BYTES_MAX]));
    world.run(3_000);
    assert_eq!(world.values(1, 0).len(), 1);
    world.introduce(0, 0);
    let before = world.nodes[1].requests;
    world.run(60_000);
    assert_eq!((world.nodes[1].requests, world.nodes[0].fabric.counts().too_long), (before, 2));
}

#[test]
fn what_finds_no_room_for_good_is_asked_for_less_and_less() {
    let mut world = World::new(1, Faults::default());
    world.start(1, &SITES);
    world.start(2, &SITES);
    (world.nodes[1].room, world.nodes[1].queue_max) = (100, usize::MAX);
    for topic in 0..500 {
        world.publish(0, 0, &[&topic.to_string()], Some(&[b'x'; 1_000]));
        world.run(1);
    }
    world.run(30_000);
    assert_eq!(world.values(1, 0).len(), 100);
    let before = world.nodes[1].requests;
    world.run(300_000);
    let asked = world.nodes[1].requests - before;
    // Some 17 questions, each time that 10 s of rest and three reports are over.
    assert!((100..450).contains(&asked), "{asked} questions in five minutes");
    // Once there is room everything comes at once.
    world.nodes[1].room = usize::MAX;
    world.run(15_000);
    assert_eq!(world.values(1, 0).len(), 500);
}

#[test]
fn a_node_that_has_begun_anew_is_heard_at_once() {
    seeds(20, |seed| {
        let mut world = World::new(seed, Faults::default());
        world.start(1, &SITES);
        world.start(2, &SITES);
        world.run(5_000);
        world.nodes[1].is_up = false;
        world.run(500 + 100 * seed);
        let load = staunch_dostp::fabric::NodeLoad { requests_per_second: 7, ..Default::default() };
        let place = world.start(2, &SITES);
        world.nodes[place].fabric.set_load(load.clone());
        world.run(1_100);
        assert_eq!(world.nodes[0].fabric.nodes(world.now(0))[0].load, Some(load));
    });
}

#[test]
fn nodes_know_each_others_load_and_who_is_silent() {
    let mut world = World::new(1, Faults::default());
    let load = staunch_dostp::fabric::NodeLoad { requests_per_second: 7, ..Default::default() };
    world.start(1, &SITES);
    world.start(2, &[]);
    world.nodes[0].fabric.set_load(load.clone());
    world.run(2_000);
    let known = |world: &World| world.nodes[1].fabric.nodes(world.now(1));
    assert_eq!((known(&world)[0].load.clone(), known(&world)[0].is_silent), (Some(load), false));
    world.nodes[0].is_up = false;
    world.run(7_000);
    assert!(known(&world)[0].is_silent);
    world.run(60_000);
    assert!(known(&world).is_empty());
}
