//! Upstreams that are closed behind their last bytes, step by step and without a network.

use std::net::SocketAddr;

use staunch_netio::{Address, Outgoing, Slot, Target};

use super::{
    Upstream, UpstreamDeadline, UpstreamLoss, UpstreamNews, UpstreamStep, UpstreamTimeouts, Upstreams,
};
use crate::exchange::piece::Piece;

const SLOT: Slot = 1;
const TIMEOUTS: UpstreamTimeouts = UpstreamTimeouts { connect_ms: 100, send_ms: 1_000, receive_ms: 5_000 };

/// An upstream in the first row, not connected yet.
fn wanted() -> (Upstreams, Upstream) {
    let upstreams = Upstreams::new(4);
    let target = Target::new(Address::Internet(SocketAddr::from(([10, 0, 0, 1], 80))));
    let upstream = upstreams.connect(target, TIMEOUTS, None).expect("room");
    (upstreams, upstream)
}

/// An upstream in the first row, connected at 10 ms.
fn connected() -> (Upstreams, Upstream) {
    let (upstreams, upstream) = wanted();
    assert!(matches!(upstreams.step(0, 0), UpstreamStep::Connect(_)));
    upstreams.place(0, SLOT);
    upstreams.note(0, |row| row.note_connected(0, 10));
    assert!(matches!(upstreams.step(0, 10), UpstreamStep::Tell(UpstreamNews::Connected)));
    assert!(matches!(upstreams.step(0, 10), UpstreamStep::Receive(SLOT)));
    assert!(matches!(upstreams.step(0, 10), UpstreamStep::Rest));
    (upstreams, upstream)
}

fn sent(step: UpstreamStep) -> Box<Outgoing> {
    match step {
        UpstreamStep::Send(SLOT, outgoing) => outgoing,
        step => panic!("no send but {step:?}"),
    }
}

#[test]
fn last_bytes_go_out_before_the_end() {
    let (upstreams, upstream) = connected();
    upstreams.send(upstream, Piece::Bytes(b"first".to_vec()));
    assert_eq!(sent(upstreams.step(0, 20)).length_bytes(), 5);
    upstreams.send(upstream, Piece::Bytes(b"last words".to_vec()));
    upstreams.close_after_sending(upstream);
    assert!(!upstreams.send(upstream, Piece::Bytes(b"more".to_vec())), "its name is good no more");
    assert!(matches!(upstreams.step(0, 30), UpstreamStep::Rest), "one send at a time");
    upstreams.note(0, |row| row.note_sent(0, 40));
    assert_eq!(sent(upstreams.step(0, 40)).length_bytes(), 10);
    assert!(matches!(upstreams.step(0, 40), UpstreamStep::Rest));
    upstreams.note(0, |row| row.note_sent(0, 50));
    assert!(matches!(upstreams.step(0, 50), UpstreamStep::Close(SLOT)));
    assert!(matches!(upstreams.step(0, 50), UpstreamStep::Rest));
}

#[test]
fn one_with_nothing_to_send_is_closed_at_once() {
    let (upstreams, upstream) = connected();
    upstreams.close_after_sending(upstream);
    assert!(matches!(upstreams.step(0, 20), UpstreamStep::Close(SLOT)));
    let (upstreams, upstream) = wanted();
    upstreams.send(upstream, Piece::Bytes(b"never".to_vec()));
    upstreams.close_after_sending(upstream);
    assert!(matches!(upstreams.step(0, 0), UpstreamStep::Forget), "it was not connected");
}

/// Whatever its peer does meanwhile: takes a little now and then, or sends.
#[test]
fn last_bytes_have_one_deadline() {
    let (upstreams, upstream) = connected();
    upstreams.send(upstream, Piece::Bytes(b"last words".to_vec()));
    upstreams.close_after_sending(upstream);
    sent(upstreams.step(0, 500));
    for now_ms in [600, 900, 1_400] {
        upstreams.note(0, |row| row.note_progress(now_ms));
        assert!(!upstreams.note(0, |row| row.note_received(now_ms)), "nobody is told");
        upstreams.note(0, |row| row.keep(b"an answer"));
    }
    let due = upstreams.note(0, |row| row.due());
    assert_eq!(due, Some((1_500, UpstreamDeadline::Send)));
    upstreams.lose(0, UpstreamLoss::TimedOut(UpstreamDeadline::Send));
    assert!(matches!(upstreams.step(0, 1_500), UpstreamStep::Close(SLOT)), "the handler is not told");
}

#[test]
fn a_failure_ends_the_wait() {
    for fails in [0, 1] {
        let (upstreams, upstream) = connected();
        upstreams.send(upstream, Piece::Bytes(b"last words".to_vec()));
        upstreams.close_after_sending(upstream);
        sent(upstreams.step(0, 20));
        match fails {
            0 => upstreams.note(0, |row| row.note_sent(104, 30)),
            _ => upstreams.note(0, |row| {
                row.note_ended(104);
                row.note_sent(0, 30);
            }),
        }
        assert!(matches!(upstreams.step(0, 30), UpstreamStep::Close(SLOT)));
    }
}

#[test]
fn what_it_holds_may_be_wanted_by_others() {
    let (upstreams, upstream) = connected();
    upstreams.send(upstream, Piece::Bytes(vec![0; 1_000]));
    upstreams.close_after_sending(upstream);
    sent(upstreams.step(0, 20));
    upstreams.note(0, |row| row.counted_bytes = row.held_bytes());
    assert_eq!(upstreams.holders().len(), 1);
    upstreams.lose(0, UpstreamLoss::NoMemory);
    assert!(matches!(upstreams.step(0, 20), UpstreamStep::Close(SLOT)));
}
