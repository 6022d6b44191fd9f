//! Seals that hold, and every way to break one.

use super::*;
use crate::frame::Frame;
use crate::header::{Flags, Header, Kind};
use crate::outgoing::FrameOut;

fn secrets(byte: u8, mode: Mode) -> Secrets {
    Secrets { slots: [Some([byte; 32]), None], sends_by: 0, mode }
}

fn sealed(keys: &mut Keys, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind: Kind::Data,
        flags: Flags::WHOLE.with(Flags::AUTH),
        source: 7,
        destination: 8,
        source_port: 1000,
        destination_port: 2000,
        message_id: 1,
        length: payload.len() as u16,
        sequence: 0,
    };
    let mut bytes = Vec::new();
    keys.seal(&FrameOut { header, head: header.encode(0), payload }, 5_000, &mut bytes);
    bytes
}

/// Takes a frame by the receiver's keys, and gives its payload.
fn opened(keys: &mut Keys, bytes: &[u8], boot: u64) -> Result<Vec<u8>, Fault> {
    let header = Frame::decode(bytes, 0)?.header;
    let head = bytes[..16].try_into().unwrap();
    let mut behind = bytes[16..].to_vec();
    keys.open(&head, &header, boot, &mut behind, 0)?;
    Ok(behind[..usize::from(header.length)].to_vec())
}

#[test]
fn what_is_sealed_is_opened_once_and_by_the_right_key_alone() {
    for mode in [Mode::Mac, Mode::Aead] {
        let mut sender = Keys::new(secrets(1, mode), 7, 77);
        let mut receiver = Keys::new(secrets(1, mode), 8, 88);
        let bytes = sealed(&mut sender, b"hello");
        assert_eq!(bytes.len(), 16 + 5 + mode.trailer_bytes());
        assert_eq!(bytes[16..21] == b"hello"[..], mode == Mode::Mac);
        assert_eq!(opened(&mut receiver, &bytes, 78), Err(Fault::Auth));
        assert_eq!(opened(&mut receiver, &bytes, 77), Ok(b"hello".to_vec()));
        assert_eq!(opened(&mut receiver, &bytes, 77), Err(Fault::Replay));
        let mut other = Keys::new(secrets(2, mode), 8, 88);
        assert_eq!(opened(&mut other, &bytes, 77), Err(Fault::Auth));
        for bit in 16 * 8..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mut receiver = Keys::new(secrets(1, mode), 8, 88);
            let fault = opened(&mut receiver, &changed, 77).unwrap_err();
            assert!([Fault::Auth, Fault::Length].contains(&fault), "bit {bit}: {fault:?}");
        }
    }
}

#[test]
fn a_header_that_was_changed_with_its_check_is_found() {
    for mode in [Mode::Mac, Mode::Aead] {
        let bytes = sealed(&mut Keys::new(secrets(1, mode), 7, 77), b"hello");
        let mut header = Frame::decode(&bytes, 0).unwrap().header;
        header.destination_port = 2001;
        let changed = [&header.encode(0)[..], &bytes[16..]].concat();
        let mut receiver = Keys::new(secrets(1, mode), 8, 88);
        assert_eq!(opened(&mut receiver, &changed, 77), Err(Fault::Auth));
    }
}

#[test]
fn a_rotation_loses_nothing() {
    let mode = Mode::Aead;
    let (mut sender, mut receiver) = (Keys::new(secrets(1, mode), 7, 77), Keys::new(secrets(1, mode), 8, 88));
    let both = Secrets { slots: [Some([1; 32]), Some([2; 32])], sends_by: 0, mode };
    assert!(opened(&mut receiver, &sealed(&mut sender, b"a"), 77).is_ok());
    receiver.set(both.clone());
    assert!(opened(&mut receiver, &sealed(&mut sender, b"b"), 77).is_ok());
    sender.set(Secrets { sends_by: 1, ..both });
    assert!(opened(&mut receiver, &sealed(&mut sender, b"c"), 77).is_ok());
    receiver.set(Secrets { slots: [None, Some([2; 32])], sends_by: 1, mode });
    assert!(opened(&mut receiver, &sealed(&mut sender, b"d"), 77).is_ok());
    sender.set(secrets(1, mode));
    assert_eq!(opened(&mut receiver, &sealed(&mut sender, b"e"), 77), Err(Fault::Auth));
}

#[test]
fn no_counter_is_used_twice() {
    let mut keys = Keys::new(secrets(1, Mode::Mac), 7, 77);
    let mut last = 0;
    for (now_ms, opens) in [(10, true), (10, false), (10, true), (500, false), (1_499, false), (2_600, false)]
    {
        if opens {
            keys.open_port(1000, now_ms * 1_000_000 + 900_000);
        }
        let counter = u64::from_be_bytes(keys.word(1000, Mode::Mac, now_ms));
        assert!(counter > last, "{counter} after {last}");
        last = counter;
    }
    assert!(last >= 2_600 * UNITS_PER_MS, "a port that was idle goes on at the clock");
    assert!(!format!("{keys:?}").contains("1, 1, 1"), "secrets are not printed");
}
