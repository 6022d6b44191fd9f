//! Single cases on the simulated network.
//!
//! It must never depend on chance: there are no faults.

use std::time::Duration;

use staunch_netio::simulated::Step;
use staunch_netio::{Completion, Io};

use super::world::{self, World};
use super::{Run, judge};
use crate::lane::Lane;
use crate::outcome::Counts;
use crate::plan::{LaneKind, SlotPlan};
use crate::schedule::{Arrivals, Profile};

fn constant(rate_per_s: f64) -> LaneKind {
    let profile = Profile::Steady { rate_per_s };
    LaneKind::Open { arrivals: Arrivals::Constant, profile, slots: SlotPlan::PerRequest }
}

fn closed(pipeline: u32) -> LaneKind {
    LaneKind::Closed { connections: 1, pipeline, requests_per_connection: None, requests: Some(4) }
}

fn hold(connections: u32, request_first: bool) -> LaneKind {
    LaneKind::Hold { connections, open_per_s: None, request_first }
}

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Runs a world to its end and gives its only lane's counts.
fn finish(mut run: Run, world: &World) -> Counts {
    while run.turn() {
        judge::turn(&mut run.worker, &run.sums.lanes, world.keeps_time());
    }
    run.sums.lanes[0]
}

#[test]
fn a_pause_of_an_open_loop_is_not_its_end() {
    let world = world::plain(constant(10.0), milliseconds(3_000), None, Vec::new());
    let mut run = Run::new(&world);
    while run.now_ms() < 1_000 {
        assert!(run.turn());
    }
    run.control.set_factor(0.0);
    let before = run.now_ms();
    while run.now_ms() < before + 1_000 {
        assert!(run.turn(), "the run ended in its pause");
    }
    run.control.set_factor(1.0);
    let counts = finish(run, &world);
    assert!((18..=21).contains(&counts.offered), "ten a second for two of three seconds: {counts:?}");
}

#[test]
fn a_change_of_rate_moves_the_start_that_is_awaited() {
    let world = world::plain(constant(0.001), milliseconds(2_000), None, Vec::new());
    let mut run = Run::new(&world);
    while run.now_ms() < 500 {
        assert!(run.turn());
    }
    run.control.set_factor(10_000.0);
    let counts = finish(run, &world);
    assert!(counts.offered > 10, "ten a second, instead of one in a thousand seconds: {counts:?}");
}

#[test]
fn what_a_schedule_wanted_is_offered_even_if_there_was_no_time() {
    let mut world = world::plain(constant(10_000.0), milliseconds(1_000), None, Vec::new());
    world.faults.time_jumps = 1_000;
    let counts = finish(Run::new(&world), &world);
    assert_eq!((counts.offered, counts.settled()), (10_000, 10_000), "{counts:?}");
    assert!(counts.unsent > 9_000, "{counts:?}");
}

#[test]
fn patience_is_kept_with_pipelined_requests() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    // The first answer comes just before patience is over, the others never.
    let server = vec![Step::UntilReceived(20), Step::Wait(300), Step::Send(answer)];
    let world = world::plain(closed(4), milliseconds(9_000), Some(milliseconds(700)), vec![server]);
    let mut run = Run::new(&world);
    while run.turn() {}
    let counts = run.sums.lanes[0];
    assert_eq!((counts.in_time, counts.timed_out, counts.unfinished), (1, 3, 0), "{counts:?}");
    assert!(run.now_ms() <= 701, "given up after {} ms", run.now_ms());
}

#[test]
fn so_many_requests_take_from_the_first_start_to_the_last_end() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    let request = "GET /plain HTTP/1.1\r\nHost: simulated\r\n\r\n".len();
    let prompt =
        |number: usize| [Step::UntilReceived(number * request), Step::Wait(3), Step::Send(answer.clone())];
    let all: Vec<Step> = (1..=4).flat_map(prompt).collect();
    let three = all[..9].to_vec();
    // All answered; the last given up when its client's patience is over; the last cut off by the end.
    for (server, patience_ms, length_ms, least_ms) in
        [(all, None, 9_000, 12), (three.clone(), Some(150), 9_000, 150 + 9), (three, None, 60, 60)]
    {
        let world =
            world::plain(closed(1), milliseconds(length_ms), patience_ms.map(milliseconds), vec![server]);
        let mut run = Run::new(&world);
        while run.turn() {}
        let span_ms = run.sums.span.length_ns() / 1_000_000;
        let over_ms = run.now_ms();
        assert!(span_ms >= least_ms && over_ms - span_ms <= 1, "{span_ms} of {over_ms} ms: {:?}", run.sums);
    }
}

#[test]
fn a_request_that_cannot_be_sent_has_an_end() {
    let world = world::plain(closed(1), milliseconds(9_000), None, vec![Vec::new()]);
    let mut run = Run::new(&world);
    while run.worker.net.connections.first().is_none_or(|connection| !connection.sending) {
        assert!(run.turn());
    }
    let net = &mut run.worker.net;
    let lost = Completion::Sent { slot: 0, outgoing: Box::default(), errno: 105 };
    run.worker.lanes[0].handle(net, 0, lost);
    let counts = run.worker.lanes[0].client().tally.counts;
    assert_eq!((counts.offered, counts.unsent), (1, 1), "{counts:?}");
}

#[test]
fn an_answer_is_read_although_the_server_takes_no_more() {
    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
    let server = vec![Step::Stall, Step::Wait(50), Step::Send(answer), Step::Close];
    let world = world::plain(closed(1), milliseconds(9_000), None, vec![server]);
    let mut run = Run::new(&world);
    while run.worker.net.connections.first().is_none_or(|connection| !connection.sending) {
        assert!(run.turn());
    }
    let net = &mut run.worker.net;
    let broken = Completion::Sent { slot: 0, outgoing: Box::default(), errno: 32 };
    run.worker.lanes[0].handle(net, 0, broken);
    while run.turn() && run.sums.statuses.is_empty() {}
    assert_eq!(run.sums.statuses.get(&413), Some(&1), "{:?}", run.sums);
}

#[test]
fn a_server_that_closes_at_once_fills_no_list() {
    let interval = Duration::from_secs(3_600);
    let kind = LaneKind::SlowHeaders { connections: 1, interval };
    let world = world::plain(kind, milliseconds(60_000), None, vec![vec![Step::Close]; 300]);
    let mut run = Run::new(&world);
    let mut longest = 0;
    while run.turn() {
        judge::turn(&mut run.worker, &run.sums.lanes, true);
        let Lane::Slow(lane) = &run.worker.lanes[0] else { unreachable!("it is a slow lane") };
        longest = longest.max(lane.due.len());
    }
    assert!((60..70).contains(&longest), "{longest} entries");
    assert!(run.sums.lanes[0].connections_made == 300, "{:?}", run.sums);
}

#[test]
fn without_a_pause_between_bytes_others_still_have_their_turn() {
    let kind = LaneKind::SlowBody { connections: 1, interval: Duration::ZERO, length_bytes: 1_000 };
    let world = world::plain(kind, milliseconds(2_000), None, vec![Vec::new()]);
    let mut run = Run::new(&world);
    while run.turn() {}
    let sent = run.sums.lanes[0].sent_bytes;
    assert!((1_001..1_200).contains(&sent), "the head and a body of 1000 bytes: {sent}");
    assert!(run.worker.net.io.now_ns() >= run.worker.times.until_ns);
}

#[test]
fn an_answer_to_a_request_that_was_not_sent_yet_is_wrong() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    // The server takes nothing, so the second request still waits for the first to be taken.
    let server = vec![Step::Stall, Step::Send(answer.clone()), Step::Wait(10), Step::Send(answer)];
    let world = world::plain(closed(1), milliseconds(9_000), None, vec![server]);
    let counts = finish(Run::new(&world), &world);
    assert_eq!((counts.in_time, counts.wrong_answer, counts.refused), (1, 1, 2), "{counts:?}");
}

#[test]
fn a_connection_given_up_before_it_was_made_is_replaced() {
    let server = vec![Step::Wait(0)];
    let mut world = world::plain(closed(1), milliseconds(9_000), Some(milliseconds(300)), vec![server; 4]);
    world.faults.unanswered = 1_000;
    let counts = finish(Run::new(&world), &world);
    assert_eq!((counts.connections_begun, counts.timed_out), (4, 4), "{counts:?}");
    assert_eq!(counts.syn_retransmitted, 0, "the first would be sent after a second: {counts:?}");
}

#[test]
fn segments_sent_again_are_counted_when_the_client_gives_up() {
    let server = vec![Step::Wait(0)];
    let mut world = world::plain(closed(1), milliseconds(9_000), Some(milliseconds(1_500)), vec![server; 4]);
    world.faults.unanswered = 1_000;
    let counts = finish(Run::new(&world), &world);
    assert_eq!((counts.timed_out, counts.syn_retransmitted), (4, 4), "{counts:?}");
}

/// What a server says that holds a connection, and one that is full.
const KEPT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const FULL: &[u8] = b"HTTP/1.1 503 Full\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The most held after any turn, and the number at the end.
fn most_and_last_held(world: &World) -> (u64, u64) {
    let (mut run, mut most) = (Run::new(world), 0);
    while run.turn() {
        judge::turn(&mut run.worker, &run.sums.lanes, world.keeps_time());
        most = most.max(run.worker.lanes[0].held());
    }
    (most, run.worker.lanes[0].held())
}

#[test]
fn a_connection_that_is_made_again_is_held_once_and_one_refused_never() {
    let answer = |bytes: &[u8]| vec![Step::UntilReceived(30), Step::Send(bytes.to_vec())];
    let refused = [answer(FULL), vec![Step::Close]].concat();
    let ended = [answer(KEPT), vec![Step::Wait(100), Step::Close]].concat();
    let servers = [vec![answer(KEPT), ended.clone()], vec![refused; 40]].concat();
    let world = world::plain(hold(3, true), milliseconds(9_000), None, servers);
    assert_eq!(most_and_last_held(&world), (2, 1), "two were answered 200, and one of them closed");
    let again = [vec![ended; 5], vec![answer(KEPT)]].concat();
    let world = world::plain(hold(1, true), milliseconds(9_000), None, again);
    assert_eq!(most_and_last_held(&world), (1, 1), "six times the same one");
}

/// How long nothing was begun between two connections, in milliseconds.
fn rests_ms(world: &World) -> Vec<u64> {
    let (mut run, mut gone_ms, mut rests) = (Run::new(world), None, Vec::new());
    let mut before = 0;
    while run.turn() {
        let now_ms = run.now_ms();
        let live = run.worker.lanes[0].dialer().map_or(0, |dialer| dialer.live);
        match (before, live) {
            (1, 0) => gone_ms = Some(now_ms),
            (0, 1) => rests.extend(gone_ms.map(|gone_ms| now_ms - gone_ms)),
            _ => {}
        }
        before = live;
    }
    rests
}

#[test]
fn a_server_that_is_full_is_not_asked_again_at_once() {
    let answered = vec![Step::UntilReceived(30), Step::Send(FULL.to_vec()), Step::Close];
    for (request_first, full) in [(true, answered), (false, vec![Step::Send(FULL.to_vec()), Step::Close])] {
        let world = world::plain(hold(1, request_first), milliseconds(5_000), None, vec![full; 100]);
        let rests = rests_ms(&world);
        assert!(rests.len() > 3 && rests.iter().all(|rest_ms| *rest_ms >= 10), "{rests:?}");
    }
}

#[test]
fn a_connection_that_asks_nothing_is_held_until_the_server_says_something() {
    let unasked = vec![Step::Wait(50), Step::Send(FULL.to_vec()), Step::Close];
    let servers = [vec![vec![Step::Wait(0)]], vec![unasked; 40]].concat();
    let world = world::plain(hold(3, false), milliseconds(9_000), None, servers);
    assert_eq!(most_and_last_held(&world), (3, 1), "who connects after the last is refused");
}
