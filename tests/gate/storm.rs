//! Random frames made in the kernel: 10^7, or as many as STAUNCH_STORM_FRAMES says.
//!
//! It must never let a single wrong deed pass.

use std::thread;

use staunch_gate::program::{Storm, StormCount};
use staunch_netio::clock::now_ns;

use crate::trial::permitted;

const FRAMES: u64 = 10_000_000;
/// Storms that run at the same time, each on a processor.
const STORMS: u64 = 4;

#[test]
fn no_frame_but_a_syn_is_shed() {
    let asked = std::env::var("STAUNCH_STORM_FRAMES").ok();
    let frames: u64 = asked.map_or(FRAMES, |text| text.parse().expect("STAUNCH_STORM_FRAMES: a number"));
    let first_seed = now_ns();
    let storms: Option<Vec<Storm>> =
        (0..STORMS).map(|index| permitted(Storm::load(first_seed + index, now_ns()))).collect();
    let Some(storms) = storms else { return };
    let mut threads = Vec::new();
    for (index, mut storm) in storms.into_iter().enumerate() {
        let count = frames / STORMS + u64::from(frames % STORMS > index as u64);
        threads.push((first_seed + index as u64, thread::spawn(move || storm.run(count).expect("a storm"))));
    }
    let mut all = StormCount::default();
    for (seed, thread) in threads {
        let count = thread.join().expect("a storm");
        println!("seed {seed}: {count:?}");
        assert_eq!((count.dropped_wrongly, count.passed_wrongly), (0, 0), "seed {seed}: {count:?}");
        all.made += count.made;
        all.syn += count.syn;
    }
    assert_eq!(all.made, frames);
    // The storm must show both: what is to be shed, and what is not.
    assert!(all.syn > frames / 20 && all.syn < frames / 2, "{all:?}");
}

/// The frames of the storm shown to a gate that protects other ports: the storm sees that they are let in.
#[test]
fn the_storm_sees_what_is_wrong() {
    let Some(mut storm) = permitted(Storm::load_wrong(7, now_ns())) else { return };
    let count = storm.run(10_000).expect("a storm");
    assert!(count.passed_wrongly == count.syn && count.syn > 0 && count.first_wrong > 0, "{count:?}");
}
