//! Ages, questions and answers of peers, by a table of moments.

use super::*;
use crate::fault::Fault;
use crate::greeting::Greeting;
use crate::header::{Flags, Header};
use crate::limits::GONE_MS;

const OWN: Own = Own { address: 8, link: Link([8; 6]), boot: 88, mtu: 1500 };
const LINK: Link = Link([7; 6]);

fn header(kind: Kind, source: u16) -> Header {
    let to_all = matches!(kind, Kind::Hello | Kind::Bye);
    Header {
        kind,
        flags: Flags::WHOLE,
        source,
        destination: if to_all { EVERYBODY } else { 8 },
        source_port: 0,
        destination_port: 0,
        message_id: 0,
        length: 32,
        sequence: 0,
    }
}

fn greeting(challenge: u64, echo: u64) -> Greeting {
    Greeting { boot: 77, challenge, echo, mtu: 1500, link: LINK }
}

/// A node whose start is long over, which has heard of node 7 at time 0.
fn acquainted() -> Peers {
    let mut peers = Peers::new(OWN, 10, [1; 16]);
    hear(&mut peers, Kind::Hello, greeting(0, 0), 0).unwrap();
    assert_eq!(peers.poll_event(), Some(PeerEvent::Appeared(7)));
    peers
}

fn hear(peers: &mut Peers, kind: Kind, greeting: Greeting, now_ms: u64) -> Result<(), Fault> {
    peers.heard(LINK, &header(kind, 7), Some(&greeting), Trust::Open, now_ms)
}

fn sent(peers: &mut Peers, now_ms: u64) -> Vec<Kind> {
    peers.tick(now_ms);
    std::iter::from_fn(|| peers.poll_control(now_ms)).map(|control| control.kind).collect()
}

fn state(peers: &Peers) -> Option<bool> {
    peers.list().next().map(|peer| peer.is_stale)
}

#[test]
fn a_silent_peer_nobody_speaks_to_turns_stale_and_goes() {
    let mut peers = acquainted();
    assert_eq!((sent(&mut peers, FRESH_MS - 1), state(&peers)), (vec![], Some(false)));
    assert_eq!((sent(&mut peers, FRESH_MS), state(&peers)), (vec![], Some(true)));
    assert_eq!((sent(&mut peers, GONE_MS - 1), state(&peers)), (vec![], Some(true)));
    assert_eq!((sent(&mut peers, GONE_MS), state(&peers)), (vec![], None));
    assert_eq!(peers.poll_event(), Some(PeerEvent::Gone(7)));
}

#[test]
fn a_silent_peer_that_is_spoken_to_is_asked_three_times() {
    let mut peers = acquainted();
    assert_eq!(peers.route(7, 1_000), Route::To { link: LINK, mtu: 1500 });
    for moment_ms in [0, 300, 600] {
        assert_eq!(sent(&mut peers, FRESH_MS + moment_ms), [Kind::Probe]);
        assert_eq!(sent(&mut peers, FRESH_MS + moment_ms + 299), []);
    }
    assert_eq!((sent(&mut peers, FRESH_MS + 900), state(&peers)), (vec![], None));
}

#[test]
fn a_message_to_a_stale_peer_goes_at_once_and_asks() {
    let mut peers = acquainted();
    sent(&mut peers, FRESH_MS);
    assert_eq!(peers.route(7, FRESH_MS + 5), Route::To { link: LINK, mtu: 1500 });
    assert_eq!(sent(&mut peers, FRESH_MS + 5), [Kind::Probe]);
    hear(&mut peers, Kind::HelloReply, greeting(0, 1), FRESH_MS + 6).unwrap();
    assert_eq!((sent(&mut peers, FRESH_MS + 2_000), state(&peers)), (vec![], Some(false)));
}

#[test]
fn a_bye_makes_stale_and_asks_only_about_whom_somebody_speaks_to() {
    let mut peers = acquainted();
    hear(&mut peers, Kind::Bye, greeting(0, 0), 10).unwrap();
    assert_eq!((sent(&mut peers, 10), state(&peers)), (vec![], Some(true)));
    let mut peers = acquainted();
    peers.route(7, 5);
    hear(&mut peers, Kind::Bye, greeting(0, 0), 10).unwrap();
    assert_eq!((sent(&mut peers, 10), state(&peers)), (vec![Kind::Probe], Some(true)));
}

#[test]
fn a_question_is_answered_at_once_and_a_start_within_200_ms() {
    let mut peers = acquainted();
    hear(&mut peers, Kind::Probe, greeting(5, 0), 10).unwrap();
    let control = peers.poll_control(10).unwrap();
    assert_eq!((control.kind, control.to, control.destination, control.echo), (Kind::HelloReply, LINK, 7, 5));
    hear(&mut peers, Kind::Hello, greeting(6, 0), 10).unwrap();
    hear(&mut peers, Kind::Hello, greeting(0, 0), 10).unwrap();
    let due_ms = peers.outbox.due_ms().unwrap();
    assert!((10..=210).contains(&due_ms));
    assert_eq!(sent(&mut peers, 210), [Kind::HelloReply]);
}

#[test]
fn who_has_no_voice_is_silent_until_it_has_one() {
    let mut peers = acquainted();
    peers.set_voice(false, 0);
    hear(&mut peers, Kind::Probe, greeting(5, 0), 10).unwrap();
    assert_eq!((sent(&mut peers, 1_000), peers.has_unheard()), (vec![], true));
    peers.set_voice(true, 1_000);
    assert_eq!((sent(&mut peers, 1_000), peers.has_unheard()), (vec![Kind::HelloReply], false));
}

#[test]
fn an_announcement_comes_every_450_to_495_seconds() {
    let mut peers = Peers::new(OWN, 10, [2; 16]);
    peers.start(0);
    assert_eq!(sent(&mut peers, 0), [Kind::Hello]);
    assert_eq!((sent(&mut peers, 499), sent(&mut peers, 500)), (vec![], vec![Kind::Hello]));
    for _ in 0..10 {
        let due_ms = peers.due_ms().unwrap();
        assert_eq!((sent(&mut peers, due_ms - 1), sent(&mut peers, due_ms)), (vec![], vec![Kind::Hello]));
        let next_ms = peers.due_ms().unwrap() - due_ms;
        assert!((450_000..495_000).contains(&next_ms), "{next_ms}");
    }
    peers.leave(9_000_000);
    assert_eq!(sent(&mut peers, 9_000_000), [Kind::Bye]);
    assert_eq!(peers.due_ms(), None);
}

#[test]
fn a_full_table_learns_nobody_while_all_are_fresh() {
    let mut peers = Peers::new(OWN, 2, [1; 16]);
    let mut hear = |source: u16, now_ms| {
        peers.heard(LINK, &header(Kind::Hello, source), Some(&greeting(0, 0)), Trust::Open, now_ms)
    };
    assert_eq!((hear(1, 0), hear(2, 0), hear(3, 0)), (Ok(()), Ok(()), Err(Fault::Unknown)));
    peers.tick(FRESH_MS);
    let (third, greeting) = (header(Kind::Hello, 3), greeting(0, 0));
    assert_eq!(peers.heard(LINK, &third, Some(&greeting), Trust::Open, FRESH_MS), Ok(()));
    assert_eq!(peers.list().count(), 2);
}

#[test]
fn only_so_many_addresses_are_asked_for_at_once() {
    let mut peers = Peers::new(OWN, 10, [1; 16]);
    for address in 100..100 + RESOLVING_MAX as u16 {
        assert_eq!(peers.route(address, 0), Route::Wait);
    }
    assert_eq!(peers.route(99, 0), Route::Unreachable);
    assert_eq!(sent(&mut peers, 0).len(), RESOLVING_MAX);
}

#[test]
fn an_address_told_by_hand_is_used_and_asked() {
    let mut peers = Peers::new(OWN, 10, [1; 16]);
    peers.start_quietly(5_000);
    peers.tell(7, LINK, 5_000);
    assert_eq!(peers.route(7, 5_000), Route::To { link: LINK, mtu: 1500 });
    assert_eq!(sent(&mut peers, 5_000), [Kind::Probe]);
    assert_eq!(peers.route(8, 5_000), Route::Unreachable);
    assert!(!peers.is_in_trial(5_000));
}

/// With keys, a boot number is believed only by echo, and a word without proof moves nobody.
#[test]
fn with_keys_only_an_echo_is_believed() {
    let mut peers = Peers::new(OWN, 10, [1; 16]);
    let hello = header(Kind::Hello, 7);
    let claimed = |peers: &mut Peers, link, header: &Header, echo, boot, now_ms| {
        let greeting = Greeting { boot, ..greeting(0, echo) };
        peers.heard(link, header, Some(&greeting), Trust::Claimed, now_ms)
    };
    assert_eq!(claimed(&mut peers, LINK, &hello, 0, 77, 0), Err(Fault::Unknown));
    peers.tick(200);
    let question = peers.poll_control(200).unwrap();
    assert_eq!((question.kind, question.to), (Kind::Probe, LINK));
    let reply = header(Kind::HelloReply, 7);
    let wrong = question.challenge ^ 1;
    assert_eq!(claimed(&mut peers, LINK, &reply, wrong, 77, 201), Err(Fault::Unknown));
    assert_eq!(claimed(&mut peers, LINK, &reply, question.challenge, 77, 201), Ok(()));
    assert_eq!(peers.boot(7), Some(77));
    // Another boot number, another link address: asked, not believed.
    assert_eq!(claimed(&mut peers, LINK, &hello, 0, 78, 300), Err(Fault::Impostor));
    assert_eq!(claimed(&mut peers, Link([9; 6]), &hello, 0, 77, 300), Err(Fault::Impostor));
    assert_eq!((peers.boot(7), peers.link(7)), (Some(77), Some(LINK)));
    // A frame that is proven moves nobody: its sender is asked where it came from.
    sent(&mut peers, 400);
    let (data, other) = (header(Kind::Data, 7), Link([8, 9, 9, 9, 9, 9]));
    assert_eq!(peers.heard(other, &data, None, Trust::Proven, 3_000), Ok(()));
    assert_eq!(peers.link(7), Some(LINK));
    let challenge = challenges(&mut peers, other, 3_000)[0];
    assert_eq!(claimed(&mut peers, other, &reply, challenge, 77, 3_001), Ok(()));
    assert_eq!(peers.link(7), Some(other));
}

/// With keys: takes a greeting whose tag is right.
fn claim(peers: &mut Peers, link: Link, kind: Kind, echo: u64, mtu: u16, now_ms: u64) -> Result<(), Fault> {
    let greeting = Greeting { boot: 77, mtu, ..greeting(0, echo) };
    peers.heard(link, &header(kind, 7), Some(&greeting), Trust::Claimed, now_ms)
}

/// The challenges of PROBEs that are sent to a link address until then.
fn challenges(peers: &mut Peers, link: Link, now_ms: u64) -> Vec<u64> {
    let sent = std::iter::from_fn(|| peers.poll_control(now_ms));
    let probes = sent.filter(|control| control.kind == Kind::Probe && control.to == link);
    probes.map(|probe| probe.challenge).collect()
}

#[test]
fn with_keys_a_recorded_greeting_takes_no_other_nodes_place() {
    let stranger = |number: u8| Link([number; 6]);
    for recorded_first in [false, true] {
        let mut peers = Peers::new(OWN, 10, [1; 16]);
        if !recorded_first {
            assert_eq!(claim(&mut peers, LINK, Kind::Hello, 0, 1500, 0), Err(Fault::Unknown));
        }
        for number in 100..150 {
            assert_eq!(claim(&mut peers, stranger(number), Kind::Hello, 0, 1500, 0), Err(Fault::Unknown));
        }
        if recorded_first {
            assert_eq!(claim(&mut peers, LINK, Kind::Hello, 0, 1500, 0), Err(Fault::Unknown));
        }
        peers.tick(200);
        let challenge = challenges(&mut peers, LINK, 200)[0];
        let reply = |peers: &mut Peers, link| claim(peers, link, Kind::HelloReply, challenge, 1500, 201);
        assert_eq!(reply(&mut peers, stranger(100)), Err(Fault::Unknown), "asked at another link address");
        assert_eq!(reply(&mut peers, LINK), Ok(()));
        assert_eq!((peers.boot(7), peers.link(7)), (Some(77), Some(LINK)));
        // Long afterwards the echo proves nothing.
        let late = claim(&mut peers, stranger(100), Kind::HelloReply, challenge, 1500, 9_000);
        assert_eq!((late, peers.link(7)), (Err(Fault::Impostor), Some(LINK)));
    }
}

#[test]
fn with_keys_a_greeting_that_is_no_echo_changes_no_mtu_and_ends_no_question() {
    let mut peers = Peers::new(OWN, 10, [1; 16]);
    claim(&mut peers, LINK, Kind::Hello, 0, 1500, 0).unwrap_err();
    peers.tick(200);
    let challenge = challenges(&mut peers, LINK, 200)[0];
    claim(&mut peers, LINK, Kind::HelloReply, challenge, 1500, 201).unwrap();
    assert_eq!(claim(&mut peers, LINK, Kind::Hello, 0, 600, 5_000), Ok(()));
    assert_eq!(peers.route(7, 5_000), Route::To { link: LINK, mtu: 1500 });
    peers.tick(5_200);
    let challenge = challenges(&mut peers, LINK, 5_200)[0];
    assert_eq!(claim(&mut peers, LINK, Kind::HelloReply, challenge, 600, 5_201), Ok(()));
    assert_eq!(peers.route(7, 5_201), Route::To { link: LINK, mtu: 600 });
    // Messages are sent to the peer, it is silent, and a recorded HELLO of it comes: it is gone all the same.
    peers.route(7, 6_000);
    sent(&mut peers, 5_201 + FRESH_MS);
    assert_eq!(claim(&mut peers, LINK, Kind::Hello, 0, 600, 5_300 + FRESH_MS), Ok(()));
    sent(&mut peers, 5_600 + FRESH_MS);
    sent(&mut peers, 6_000 + FRESH_MS);
    assert_eq!((sent(&mut peers, 6_400 + FRESH_MS), state(&peers)), (vec![], None));
}

#[test]
fn a_probe_that_comes_again_is_answered_in_place_of_a_mute_voice() {
    let mut peers = acquainted();
    peers.set_voice(false, 0);
    for (challenge, moment_ms, answers) in [(5, 10, 0), (5, 310, 1), (5, 610, 1), (6, 700, 0), (5, 800, 0)] {
        hear(&mut peers, Kind::Probe, greeting(challenge, 0), moment_ms).unwrap();
        // Another process of the host has the voice.
        peers.set_voice(false, moment_ms);
        assert_eq!(sent(&mut peers, moment_ms).len(), answers, "at {moment_ms} ms");
    }
    // A HELLO comes twice, whether it was answered or not.
    for moment_ms in [1_000, 1_500] {
        hear(&mut peers, Kind::Hello, greeting(7, 0), moment_ms).unwrap();
    }
    assert_eq!(sent(&mut peers, 1_800), []);
}

#[test]
fn who_has_left_says_nothing_more() {
    let mut peers = acquainted();
    peers.route(7, 5);
    peers.leave(10);
    hear(&mut peers, Kind::Hello, greeting(5, 0), 11).unwrap();
    assert_eq!(sent(&mut peers, 300), [Kind::Bye]);
    assert_eq!(sent(&mut peers, 10 + FRESH_MS), []);
    peers.start(20 + FRESH_MS);
    assert_eq!(sent(&mut peers, 20 + FRESH_MS), [Kind::Hello]);
}
