//! The record layer against a peer made of the same parts: what must be opened, and what must be refused.
//!
//! The rows of hostile input that concern records have their numbers in the names of the tests. Other
//! programs are the peers in `tests/`.
use proptest::prelude::*;

use super::*;
use crate::secret::Secret;

/// The other end: what it seals is what our side opens.
struct Peer {
    reading: Direction,
    writing: Direction,
}

fn secret(suite: Suite, seed: u8) -> Secret {
    let bytes: Vec<u8> =
        (0..suite.secret_length()).map(|byte| seed ^ u8::try_from(byte).expect("short")).collect();
    Secret::new(&bytes).expect("a secret is at most 48 bytes")
}

fn pair_at(suite: Suite, read: u64, written: u64) -> (Awake, Peer) {
    let direction = |seed, sequence| Direction::new(suite, secret(suite, seed), sequence);
    let ours = Awake::new(direction(1, read), direction(2, written));
    (ours, Peer { reading: direction(2, written), writing: direction(1, read) })
}

fn pair(suite: Suite) -> (Awake, Peer) {
    pair_at(suite, 0, 0)
}

impl Peer {
    fn record(&mut self, kind: u8, message: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        let start = self.writing.begin(kind, message.len(), &mut record);
        record.extend_from_slice(message);
        self.writing.seal(kind, start, &mut record).expect("the key is fresh");
        record
    }

    /// A record of TLS 1.3 with zeros behind its type (RFC 8446, section 5.4).
    fn padded(&mut self, kind: u8, message: &[u8], zeros: usize) -> Vec<u8> {
        assert!(zeros > 0);
        let mut inner = message.to_vec();
        inner.push(kind);
        inner.resize(message.len() + zeros, 0);
        self.record(0, &inner)
    }

    fn key_update(&mut self, asks: u8) -> Vec<u8> {
        let record = self.record(content::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, asks]);
        self.writing.update();
        record
    }

    /// Opens what our side sealed: type and content of each record.
    fn read(&mut self, mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut records = Vec::new();
        while let Some((head, rest)) = bytes.split_first_chunk::<RECORD_HEAD_BYTES>() {
            let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
            let mut body = rest[..length].to_vec();
            let place = self.reading.open(*head, &mut body).expect("our records can be opened");
            let mut content = body[place].to_vec();
            let is_tls13 = self.reading.suite().is_tls13();
            let kind = if is_tls13 { content.pop().expect("a type") } else { head[0] };
            if is_tls13 && kind == content::HANDSHAKE {
                self.reading.update();
            }
            records.push((kind, content));
            bytes = &rest[length..];
        }
        records
    }
}

/// The alert that our side answers to these bytes.
fn refusal(ours: &mut Awake, peer: &mut Peer, mut bytes: Vec<u8>) -> Alert {
    let mut output = Vec::new();
    let fault = ours.open(&mut bytes, &mut output).expect_err("it must be refused");
    let Fault::Refused(alert, _) = fault else { panic!("{fault}") };
    let told = peer.read(&output).pop().expect("the peer is told");
    assert_eq!(told, (content::ALERT, alert.bytes().to_vec()));
    alert
}

fn only_tls13() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.is_tls13())
}

fn only_tls12() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| !suite.is_tls13())
}

#[test]
fn records_cut_at_every_byte_are_opened() {
    for suite in Suite::ALL {
        let (_, mut peer) = pair(suite);
        let mut stream = peer.record(content::DATA, b"first");
        stream.extend(peer.record(content::DATA, b" second"));
        for cut in 0..=stream.len() {
            let (mut ours, _) = pair(suite);
            let (mut plain, mut kept, mut output) = (Vec::new(), Vec::new(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                kept.extend_from_slice(part);
                let opened = ours.open(&mut kept, &mut output).expect("good records");
                plain.extend_from_slice(&kept[opened.plain]);
                kept.drain(..opened.taken);
            }
            assert_eq!((plain.as_slice(), kept.len()), (&b"first second"[..], 0), "{suite:?} cut at {cut}");
            assert!(output.is_empty());
        }
    }
}

#[test]
fn a_long_answer_begins_small_and_a_short_one_is_whole() {
    let (mut ours, mut peer) = pair(Suite::Aes128Tls13);
    let lengths =
        |records: Vec<(u8, Vec<u8>)>| -> Vec<usize> { records.iter().map(|(_, one)| one.len()).collect() };
    let mut output = Vec::new();
    ours.seal(&[&[1; FLIGHT_BYTES]], &mut output).expect("sealed");
    assert_eq!(lengths(peer.read(&output)), [FLIGHT_BYTES]);
    for is_rested in [true, false] {
        output.clear();
        ours.seal(&[&[1; 40_000], &[2; 10_000]], &mut output).expect("sealed");
        let mut expected = vec![SMALL_RECORD_BYTES; if is_rested { 10 } else { 0 }];
        let left = 50_000 - 10 * SMALL_RECORD_BYTES * usize::from(is_rested);
        expected.extend(std::iter::repeat_n(RECORD_PLAIN_BYTES_MAX, left / RECORD_PLAIN_BYTES_MAX));
        expected.push(left % RECORD_PLAIN_BYTES_MAX);
        assert_eq!(lengths(peer.read(&output)), expected);
    }
    ours.rest();
    output.clear();
    ours.seal(&[&[1; FLIGHT_BYTES + 1]], &mut output).expect("sealed");
    assert_eq!(lengths(peer.read(&output))[0], SMALL_RECORD_BYTES);
}

#[test]
fn it_wakes_at_every_power_of_two_and_next_to_it() {
    let numbers = |suite: Suite| {
        let powers =
            (0..64).map(|bit| 1u64 << bit).flat_map(|power| [power - 1, power, power.saturating_add(1)]);
        powers.chain([u64::MAX - 3]).filter(move |&number| number < suite.records_max())
    };
    for suite in Suite::ALL {
        for sequence in numbers(suite) {
            let (ours, mut peer) = pair_at(suite, sequence, sequence);
            let mut ours = Awake::wake(&ours.sleep().expect("it rests"));
            let mut record = peer.record(content::DATA, b"up?");
            let mut output = Vec::new();
            let opened = ours.open(&mut record, &mut output).expect("a good record");
            assert_eq!(&record[opened.plain], b"up?", "{suite:?} at {sequence}");
            ours.seal(&[b"up."], &mut output).expect("sealed");
            assert_eq!(peer.read(&output).pop(), Some((content::DATA, b"up.".to_vec())));
        }
    }
}

#[test]
fn a_key_update_survives_sleep() {
    for suite in only_tls13() {
        let (mut ours, mut peer) = pair(suite);
        let mut output = Vec::new();
        for turn in 0u8..5 {
            let mut bytes = peer.key_update(1);
            let opened = ours.open(&mut bytes, &mut output).expect("a key update");
            assert_eq!((opened.plain.len(), opened.oddities), (0, 1));
            ours = Awake::wake(&ours.sleep().expect("it rests"));
            ours.seal(&[&[turn]], &mut output).expect("sealed");
            let answer = (content::HANDSHAKE, vec![KEY_UPDATE, 0, 0, 1, 0]);
            assert_eq!(peer.read(&std::mem::take(&mut output)), [answer, (content::DATA, vec![turn])]);
        }
    }
}

#[test]
fn a_cut_key_update_keeps_it_awake() {
    let (mut ours, mut peer) = pair(Suite::Aes128Tls13);
    let mut output = Vec::new();
    for (message, may_sleep) in [(&[KEY_UPDATE, 0][..], false), (&[0, 1, 0][..], true)] {
        let mut bytes = peer.record(content::HANDSHAKE, message);
        ours.open(&mut bytes, &mut output).expect("a part of a key update");
        assert_eq!(ours.sleep().is_some(), may_sleep);
    }
    peer.writing.update();
    let mut bytes = peer.record(content::DATA, b"new key");
    let opened = ours.open(&mut bytes, &mut output).expect("the new key");
    assert_eq!(&bytes[opened.plain], b"new key");
}

#[test]
fn our_key_changes_before_it_is_worn() {
    for suite in only_tls13() {
        let (mut ours, mut peer) = pair_at(suite, RECORDS_BEFORE_UPDATE_MAX - 1, RECORDS_BEFORE_UPDATE_MAX);
        let mut output = Vec::new();
        ours.seal(&[b"data"], &mut output).expect("sealed");
        let update = |asks| (content::HANDSHAKE, vec![KEY_UPDATE, 0, 0, 1, asks]);
        assert_eq!(peer.read(&output), [update(0), (content::DATA, b"data".to_vec())]);
        for expected in [vec![update(1)], vec![]] {
            output.clear();
            let mut bytes = peer.record(content::DATA, b"worn");
            ours.open(&mut bytes, &mut output).expect("a good record");
            assert_eq!(peer.read(&output), expected, "the peer is asked once");
        }
    }
}

#[test]
fn row_06_a_number_at_its_limit_ends_the_connection() {
    for suite in Suite::ALL {
        let (mut ours, mut peer) = pair_at(suite, suite.records_max() - 1, 0);
        let mut output = Vec::new();
        let mut bytes = peer.record(content::DATA, b"the last");
        ours.open(&mut bytes, &mut output).expect("the last record");
        let mut peer_bytes = vec![0u8; 64];
        peer_bytes[..5].copy_from_slice(&[content::DATA, 3, 3, 0, 59]);
        assert_eq!(ours.open(&mut peer_bytes, &mut output), Err(Fault::Exhausted), "{suite:?}");
    }
    for suite in only_tls12() {
        let (mut ours, _) = pair_at(suite, 0, suite.records_max());
        let mut output = Vec::new();
        assert_eq!(ours.seal(&[b"too many"], &mut output), Err(Fault::Exhausted));
        assert!(output.is_empty(), "a record that cannot be sealed is not sent");
    }
}

#[test]
fn row_06_oddities_in_a_row_end_the_connection() {
    for suite in Suite::ALL {
        let kinds: &[u8] = if suite.is_tls13() { &[0, 1, 2] } else { &[0, 2] };
        for &kind in kinds {
            let (mut ours, mut peer) = pair(suite);
            let odd = |peer: &mut Peer| match kind {
                0 => peer.record(content::DATA, b""),
                1 => peer.key_update(0),
                _ => peer.record(content::ALERT, &Alert::UserCanceled.bytes()),
            };
            let mut output = Vec::new();
            for turn in 0..2 {
                let mut bytes: Vec<u8> = (0..ODDITIES_IN_A_ROW_MAX).flat_map(|_| odd(&mut peer)).collect();
                let opened = ours.open(&mut bytes, &mut output).expect("as many as may be");
                assert_eq!(opened.oddities, u32::from(ODDITIES_IN_A_ROW_MAX), "{suite:?} {kind} {turn}");
                let mut bytes = peer.record(content::DATA, b"forgiven");
                ours.open(&mut bytes, &mut output).expect("data");
            }
            let bytes = (0..=ODDITIES_IN_A_ROW_MAX).flat_map(|_| odd(&mut peer)).collect();
            assert_eq!(refusal(&mut ours, &mut peer, bytes), Alert::UnexpectedMessage);
        }
    }
}

#[test]
fn row_06_a_flood_of_asked_updates_is_answered_once() {
    let (mut ours, mut peer) = pair(Suite::Aes256Tls13);
    let mut bytes: Vec<u8> = (0..20).flat_map(|_| peer.key_update(1)).collect();
    let mut output = Vec::new();
    ours.open(&mut bytes, &mut output).expect("within the bound");
    assert_eq!(peer.read(&output).len(), 1);
}

#[test]
fn row_06_padding_is_removed_and_padding_alone_refused() {
    for suite in only_tls13() {
        let (mut ours, mut peer) = pair(suite);
        let mut output = Vec::new();
        let mut bytes = peer.padded(content::DATA, b"padded\0", 1_000);
        bytes.extend(peer.padded(content::DATA, &[7; 6], RECORD_PLAIN_BYTES_MAX - 6));
        let opened = ours.open(&mut bytes, &mut output).expect("padding is allowed");
        assert_eq!(&bytes[opened.plain], b"padded\0\x07\x07\x07\x07\x07\x07");
        let bytes = peer.padded(0, b"", 100);
        assert_eq!(refusal(&mut ours, &mut peer, bytes), Alert::UnexpectedMessage);
    }
}

#[test]
fn row_06_over_long_records_are_refused() {
    for suite in Suite::ALL {
        let (mut ours, mut peer) = pair(suite);
        let mut output = Vec::new();
        let mut bytes = peer.record(content::DATA, &[1; RECORD_PLAIN_BYTES_MAX]);
        let opened = ours.open(&mut bytes, &mut output).expect("the longest record");
        assert_eq!(opened.plain.len(), RECORD_PLAIN_BYTES_MAX);
        let head = vec![content::DATA, 3, 3, 0x41, 0x01];
        assert_eq!(refusal(&mut ours, &mut peer, head), Alert::RecordOverflow, "by its head alone");
    }
    for suite in only_tls13() {
        let (mut ours, mut peer) = pair(suite);
        let bytes = peer.record(content::DATA, &[1; RECORD_PLAIN_BYTES_MAX + 1]);
        assert_eq!(refusal(&mut ours, &mut peer, bytes), Alert::RecordOverflow, "by its content");
    }
}

#[test]
fn row_06_a_wrong_type_is_refused() {
    for suite in Suite::ALL {
        for kind in (0..=255).filter(|kind| !(21..=23).contains(kind)) {
            let (mut ours, mut peer) = pair(suite);
            let bytes =
                if suite.is_tls13() { peer.record(kind, b"inside") } else { peer.record(kind, b"outside") };
            assert_eq!(refusal(&mut ours, &mut peer, bytes), Alert::UnexpectedMessage, "{suite:?} {kind}");
        }
        for kind in [20, 21, 22, 24] {
            let (mut ours, mut peer) = pair(suite);
            if suite.is_tls13() || !(21..=22).contains(&kind) {
                let plain = vec![kind, 3, 3, 0, 2, 1, 0];
                assert_eq!(refusal(&mut ours, &mut peer, plain), Alert::UnexpectedMessage, "not sealed");
            }
        }
    }
}

#[test]
fn row_06_a_forged_record_is_refused_at_every_byte() {
    for suite in Suite::ALL {
        let length = pair(suite).1.record(content::DATA, b"bytes").len();
        for place in 0..length {
            let (mut ours, mut peer) = pair(suite);
            let mut forged = peer.record(content::DATA, b"bytes");
            forged[place] ^= 1;
            let mut output = Vec::new();
            match ours.open(&mut forged, &mut output) {
                Err(Fault::Refused(..)) => {}
                // Bytes 3 and 4 are the length: a longer record is waited for.
                Ok(opened) => assert!(opened.taken == 0 && matches!(place, 3 | 4), "{suite:?} {place}"),
                Err(fault) => panic!("{fault}"),
            }
        }
        let (mut ours, mut peer) = pair(suite);
        let short = vec![content::DATA, 3, 3, 0, 3, 1, 2, 3];
        assert_eq!(refusal(&mut ours, &mut peer, short), Alert::BadRecordMac);
    }
}

#[test]
fn row_06_faulty_handshake_messages_are_refused() {
    let update = |asks| [KEY_UPDATE, 0, 0, 1, asks];
    let mut twice = update(0).to_vec();
    twice.extend(update(0));
    let messages: &[(&[u8], Alert)] = &[
        (b"", Alert::UnexpectedMessage),
        (&update(2), Alert::IllegalParameter),
        (&[KEY_UPDATE, 0, 0, 2, 0], Alert::DecodeError),
        (&[KEY_UPDATE, 1], Alert::DecodeError),
        (&twice, Alert::UnexpectedMessage),
        (&[4, 0, 0, 1, 0], Alert::UnexpectedMessage),
    ];
    for suite in only_tls13() {
        for (message, alert) in messages {
            let (mut ours, mut peer) = pair(suite);
            let bytes = peer.record(content::HANDSHAKE, message);
            assert_eq!(refusal(&mut ours, &mut peer, bytes), *alert, "{message:?}");
        }
        let (mut ours, mut peer) = pair(suite);
        let mut bytes = peer.record(content::HANDSHAKE, &[KEY_UPDATE]);
        bytes.extend(peer.record(content::DATA, b"between"));
        assert_eq!(refusal(&mut ours, &mut peer, bytes), Alert::UnexpectedMessage);
    }
}

#[test]
fn row_03_a_second_handshake_is_refused_once_then_ends_the_connection() {
    for suite in only_tls12() {
        let (mut ours, mut peer) = pair(suite);
        let mut output = Vec::new();
        let mut bytes = peer.record(content::HANDSHAKE, &[CLIENT_HELLO, 0, 0, 2, 3, 3]);
        ours.open(&mut bytes, &mut output).expect("a warning at first");
        assert_eq!(peer.read(&output), [(content::ALERT, vec![1, Alert::NoRenegotiation as u8])]);
        ours = Awake::wake(&ours.sleep().expect("it rests"));
        let bytes = peer.record(content::HANDSHAKE, &[CLIENT_HELLO, 0, 0, 2, 3, 3]);
        assert_eq!(refusal(&mut ours, &mut peer, bytes), Alert::UnexpectedMessage);
    }
    for suite in only_tls13() {
        let (mut ours, mut peer) = pair(suite);
        let bytes = peer.record(content::HANDSHAKE, &[CLIENT_HELLO, 0, 0, 2, 3, 3]);
        assert_eq!(refusal(&mut ours, &mut peer, bytes), Alert::UnexpectedMessage);
    }
}

#[test]
fn row_07_only_close_notify_is_an_end() {
    for suite in Suite::ALL {
        let (mut ours, mut peer) = pair(suite);
        let mut output = Vec::new();
        let mut bytes = peer.record(content::DATA, b"the last");
        let opened = ours.open(&mut bytes, &mut output).expect("data");
        assert!(!opened.is_end);
        let mut bytes = peer.record(content::DATA, b"rest");
        bytes.extend(peer.record(content::ALERT, &[1, 0]));
        bytes.extend_from_slice(b"what follows is not looked at");
        let opened = ours.open(&mut bytes, &mut output).expect("an end");
        assert_eq!((&bytes[opened.plain], opened.taken, opened.is_end), (&b"rest"[..], bytes.len(), true));
        ours.close(&mut output);
        assert_eq!(peer.read(&output), [(content::ALERT, vec![1, 0])]);
    }
}

#[test]
fn row_06_alerts_of_the_peer_are_understood() {
    for suite in Suite::ALL {
        let alerts: [(&[u8], Option<Fault>); 3] = [
            (&[2, 48], Some(Fault::PeerAlert(48))),
            (&[2], Some(Fault::Refused(Alert::DecodeError, "an alert that is not two bytes long"))),
            (&[1, 90], None),
        ];
        for (alert, expected) in alerts {
            let (mut ours, mut peer) = pair(suite);
            let mut bytes = peer.record(content::ALERT, alert);
            assert_eq!(ours.open(&mut bytes, &mut Vec::new()).err(), expected, "{suite:?} {alert:?}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_sealed_is_opened(
        suite in 0..Suite::ALL.len(),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9_000), 0..6),
    ) {
        let (mut ours, mut peer) = pair(Suite::ALL[suite]);
        let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let mut output = Vec::new();
        ours.seal(&slices, &mut output).expect("sealed");
        let records = peer.read(&output);
        prop_assert!(records.iter().all(|(kind, one)| *kind == content::DATA && !one.is_empty()));
        prop_assert_eq!(records.into_iter().flat_map(|(_, one)| one).collect::<Vec<_>>(), pieces.concat());
    }

    #[test]
    fn many_records_leave_no_gap(
        suite in 0..Suite::ALL.len(),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..500), 1..20),
    ) {
        let (mut ours, mut peer) = pair(Suite::ALL[suite]);
        let mut bytes: Vec<u8> = messages.iter().flat_map(|one| peer.record(content::DATA, one)).collect();
        let opened = ours.open(&mut bytes, &mut Vec::new()).expect("good records");
        prop_assert_eq!(opened.taken, bytes.len());
        prop_assert_eq!(&bytes[opened.plain], messages.concat());
    }

    #[test]
    fn garbage_is_never_content(
        suite in 0..Suite::ALL.len(),
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (mut ours, _) = pair(Suite::ALL[suite]);
        if let Ok(opened) = ours.open(&mut bytes, &mut Vec::new()) {
            prop_assert_eq!((opened.plain.len(), opened.taken), (0, 0));
        }
    }
}
