//! What holds for every frame: only a SYN without ACK is ever dropped or answered, and every one of those is.
//!
//! It must never know how the program reads.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use staunch_gate::program::{Attach, Reject};

use crate::oracle::may_be_shed;
use crate::packet::packet;
use crate::trial::{self, DROP, ONE_PLACE, PASS, PORTS, REPLY};
use crate::verdicts;

/// A kernel's test run takes no frame without an Ethernet header.
const FRAME_BYTES_MIN: usize = 14;
const CASES: u32 = 20_000;

/// Frames of the table, with bytes exchanged, and cut.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let whole: Vec<Vec<u8>> = verdicts::lines().iter().map(|line| packet(line.words)).collect();
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let changes = prop::collection::vec(change, 0..4);
    let cut = prop::option::weighted(0.2, any::<prop::sample::Index>());
    (prop::sample::select(whole), changes, cut).prop_map(|(mut frame, changes, cut)| {
        // What says what a frame is stands at its front.
        let front = frame.len().min(120);
        for (index, byte) in changes {
            frame[index.index(front)] = byte;
        }
        let length = cut.map_or(frame.len(), |cut| cut.index(frame.len()));
        frame.truncate(length.max(FRAME_BYTES_MIN));
        frame
    })
}

#[test]
fn only_a_syn_without_ack_is_ever_dropped_or_answered() {
    for reject in [Reject::Drop, Reject::Reset] {
        let attach = Attach { ports: &PORTS, reject, ..Attach::default() };
        let Some(mut trial) = trial::load(&attach, &ONE_PLACE) else { return };
        trial::give(&mut trial, &trial::shed());
        let trial = std::cell::RefCell::new(trial);
        let mut runner = TestRunner::new(Config { cases: CASES, ..Config::default() });
        let checked = runner.run(&frames(), |frame| {
            let judged = trial.borrow_mut().judge(&frame).expect("a judgement");
            prop_assert_eq!(judged.action != PASS, may_be_shed(&frame), "{:x?}", frame);
            prop_assert!([DROP, PASS, REPLY].contains(&judged.action));
            prop_assert!(reject == Reject::Reset || judged.action != REPLY);
            prop_assert!(judged.action == REPLY || judged.frame == frame);
            Ok(())
        });
        checked.expect("a property that holds");
    }
}

#[test]
fn noise_is_let_in() {
    let Some(mut trial) = trial::plain() else { return };
    trial::give(&mut trial, &trial::shed());
    let trial = std::cell::RefCell::new(trial);
    let mut runner = TestRunner::new(Config { cases: CASES, ..Config::default() });
    let noise = prop::collection::vec(any::<u8>(), FRAME_BYTES_MIN..300);
    let checked = runner.run(&noise, |frame| {
        let action = trial.borrow_mut().judge(&frame).expect("a judgement").action;
        prop_assert_eq!(action != PASS, may_be_shed(&frame));
        Ok(())
    });
    checked.expect("a property that holds");
}

/// The oracle itself: it knows the lines of the table.
#[test]
fn the_oracle_agrees_with_the_table() {
    let lines = verdicts::lines();
    for line in lines.iter().filter(|line| line.state == "shed") {
        assert_eq!(may_be_shed(&packet(line.words)), line.is_dropped(), "line {}", line.number);
    }
}
