//! Settings of connections that live.

use std::io::Read;
use std::time::Duration;

use staunch_netio::{Completion, Io, Outgoing, Tuning};

use super::Make;
use super::harness::{Event, Harness, pattern_bytes};

/// What is sent to a peer that does not read: more than any kernel takes at once.
const SENT_BYTES: usize = 16 << 20;

/// How many bytes the kernel takes for a peer that does not read.
fn taken<I: Io>(harness: &mut Harness<I>, tuning: Option<Tuning>) -> usize {
    let (_client, slot) = harness.connect_narrow();
    tuning.into_iter().for_each(|tuning| harness.io.tune(slot, tuning));
    let mut outgoing = Box::<Outgoing>::default();
    outgoing.bytes().resize(SENT_BYTES, 0);
    harness.io.send(slot, outgoing, false);
    let mut taken = 0;
    for _ in 0..10 {
        harness.io.submit_and_wait(Some(Duration::from_millis(10))).unwrap();
        while let Some(completion) = harness.io.next_completion() {
            match completion {
                Completion::Progress { bytes, .. } => taken += bytes as usize,
                other => panic!("{other:?}"),
            }
        }
    }
    harness.io.close(slot);
    let mut closed = false;
    while !closed {
        harness.io.submit_and_wait(Some(Duration::from_millis(10))).unwrap();
        while let Some(completion) = harness.io.next_completion() {
            closed |= matches!(completion, Completion::Closed { .. });
        }
    }
    harness.forget(slot);
    taken
}

/// Each of the two bounds halves at least what a peer that does not read is given.
pub(crate) fn the_kernel_takes_less<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 4);
    if !harness.io.can_tune() {
        return eprintln!("not tested: options cannot be set here");
    }
    let unbounded = taken(&mut harness, None);
    for tuning in [Tuning::SendBuffer(4096), Tuning::Unsent(4096)] {
        let bounded = taken(&mut harness, Some(tuning));
        assert!(bounded * 2 < unbounded, "{tuning:?}: {bounded} of {unbounded} bytes");
    }
}

/// A setting changes nothing that is sent, whenever it is made, and none is too large.
pub(crate) fn every_setting_in_every_state<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 4);
    let settings = [
        Tuning::SendBuffer(16 * 1024),
        Tuning::SendBuffer(u32::MAX),
        Tuning::Unsent(16 * 1024),
        Tuning::Unsent(u32::MAX),
        Tuning::UserTimeout(60_000),
        Tuning::UserTimeout(u32::MAX),
        Tuning::UserTimeout(0),
    ];
    let tune = |harness: &mut Harness<I>, slot| {
        settings.iter().for_each(|&tuning| harness.io.tune(slot, tuning));
    };
    for round in 0..20_u64 {
        let (mut client, slot) = harness.connect();
        tune(&mut harness, slot);
        harness.io.receive(slot);
        harness.send_bytes(slot, &pattern_bytes(round, 300_000), round % 2 == 0);
        tune(&mut harness, slot);
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; 300_000];
            client.read_exact(&mut got).unwrap();
            (client, got)
        });
        harness.until(|event| *event == Event::Sent(slot, 0));
        tune(&mut harness, slot);
        if round % 2 != 0 {
            harness.close(slot);
            tune(&mut harness, slot);
        }
        harness.until(|event| *event == Event::Closed(slot));
        assert!(reader.join().unwrap().1 == pattern_bytes(round, 300_000));
        harness.expect_quiet();
    }
}
