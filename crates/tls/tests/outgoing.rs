//! Connections to servers, in memory, with this house's own server at their other end: names, authorities,
//! certificates of ours, cuts, resumption, ends.
mod house;

use house::{House, Side, house, now};
use staunch_tls::{OutgoingFault, OutgoingSession, OutgoingSettingsFault, OutgoingTls, OutgoingTrust};

/// Settings that believe the house's authority.
fn settings(house: &House) -> OutgoingTls {
    let authority = house.authority.certificate_pem();
    let trust = OutgoingTrust::Authorities(authority.as_bytes());
    OutgoingTls::new(trust, None, &[b"http/1.1"]).expect("good settings")
}

/// Both ends of a connection.
struct Wire {
    session: OutgoingSession,
    /// Bytes for the server.
    output: Vec<u8>,
    /// Bytes that the server has said.
    plain: Vec<u8>,
    side: Side,
}

impl Wire {
    fn new(house: &House, tls: &OutgoingTls, name: &str) -> Self {
        let mut output = Vec::new();
        let session = tls.connect(name, now(), &mut output).expect("a name");
        Self { session, output, plain: Vec::new(), side: Side::new(&house.context) }
    }

    /// Carries bytes both ways, in pieces of at most `piece` bytes, until nothing moves.
    fn carry(&mut self, piece: usize) -> Result<(), OutgoingFault> {
        while !self.output.is_empty() || !self.side.output.is_empty() {
            for part in std::mem::take(&mut self.output).chunks(piece) {
                if self.side.receive(part).is_err() {
                    // The server has given up: what it says is heard.
                    break;
                }
            }
            for part in std::mem::take(&mut self.side.output).chunks(piece) {
                self.session.receive(part, &mut self.plain, &mut self.output)?;
            }
        }
        Ok(())
    }
}

#[test]
fn bytes_go_both_ways_however_they_are_cut() {
    let house = house();
    let tls = settings(&house);
    for piece in [1, 7, 1_000, usize::MAX] {
        let mut wire = Wire::new(&house, &tls, "localhost");
        // Said before there are keys: it goes with the handshake's end.
        wire.session.send(b"GET / HTTP/1.1\r\n", &mut wire.output);
        assert!(!wire.session.is_established());
        wire.carry(piece).expect("a good server");
        assert!(wire.session.is_established());
        wire.session.send(b"Host: a\r\n\r\n", &mut wire.output);
        let answer: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        wire.carry(piece).expect("a good server");
        wire.side.seal(&[&answer]);
        wire.carry(piece).expect("a good server");
        assert_eq!(wire.side.plain, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "{piece}");
        assert!(wire.plain == answer, "{piece}");
        assert_eq!(wire.side.agreed.as_ref().and_then(|agreed| agreed.protocol), Some(&b"http/1.1"[..]));
        assert!(!wire.session.has_ended() && !wire.session.is_amid_record());
        wire.side.close();
        wire.carry(piece).expect("a good end");
        assert!(wire.session.has_ended());
        wire.session.close(&mut wire.output);
        wire.carry(piece).expect("a good end");
        assert!(wire.side.is_end);
    }
}

#[test]
fn sessions_are_resumed() {
    let house = house();
    let tls = settings(&house);
    let resumed = |_| {
        let mut wire = Wire::new(&house, &tls, "localhost");
        wire.carry(usize::MAX).expect("a good server");
        wire.side.seal(&[b"ok"]);
        wire.carry(usize::MAX).expect("a good server");
        wire.side.agreed.is_some_and(|agreed| agreed.is_resumed)
    };
    assert_eq!([0, 1].map(resumed), [false, true]);
}

#[test]
fn a_server_has_to_prove_its_name() {
    let (house, other) = (house(), house());
    let tls = settings(&house);
    for (house, name, outcome) in [
        (&house, "localhost", Ok(())),
        (&house, "a.house.local", Ok(())),
        (&house, "127.0.0.1", Ok(())),
        // A server may know by the name alone that it is not the one.
        (&house, "other.local", Err(OutgoingFault::PeerAlert(112))),
        (&house, "127.0.0.2", Err(OutgoingFault::OtherName)),
        (&other, "localhost", Err(OutgoingFault::UnknownIssuer)),
    ] {
        let mut wire = Wire::new(house, &tls, name);
        wire.session.send(b"a secret", &mut wire.output);
        assert_eq!(wire.carry(usize::MAX), outcome, "{name}");
        assert_eq!(wire.side.plain.is_empty(), outcome.is_err(), "{name}: a stranger has heard it");
    }
    assert_eq!(tls.connect("no name", now(), &mut Vec::new()).err(), Some(OutgoingFault::BadName));
}

#[test]
fn whoever_believes_anything_says_so() {
    let house = house();
    let tls = OutgoingTls::new(OutgoingTrust::Anything, None, &[]).expect("good settings");
    let mut wire = Wire::new(&house, &tls, "127.0.0.2");
    assert_eq!(wire.carry(usize::MAX), Ok(()));
}

#[test]
fn a_certificate_that_has_ended_is_not_believed() {
    let house = house();
    let tls = settings(&house);
    let mut output = Vec::new();
    let later = now() + 20 * 366 * 86_400;
    let session = tls.connect("localhost", later, &mut output).expect("a name");
    let mut wire = Wire { session, output, plain: Vec::new(), side: Side::new(&house.context) };
    assert_eq!(wire.carry(usize::MAX), Err(OutgoingFault::Expired));
}

#[test]
fn a_server_without_tls_is_told_from_one_that_breaks_off() {
    let house = house();
    let tls = settings(&house);
    let (mut plain, mut output) = (Vec::new(), Vec::new());
    let mut session = tls.connect("localhost", now(), &mut output).expect("a name");
    let answer = session.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut plain, &mut output);
    assert_eq!((answer, plain.len()), (Err(OutgoingFault::NotTls), 0));
    let mut session = tls.connect("localhost", now(), &mut output).expect("a name");
    let answer = session.receive(&[21, 3, 3, 0, 2, 2, 40], &mut plain, &mut output);
    assert_eq!(answer, Err(OutgoingFault::PeerAlert(40)));
}

#[test]
fn settings_that_are_not_good_are_named() {
    let house = house();
    let issued = house.authority.issue(&["client.local"], now()).expect("a name");
    let another = house.authority.issue(&["client.local"], now()).expect("a name");
    let (chain, key) = (issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes());
    let fault = |trust, identity| OutgoingTls::new(trust, identity, &[]).err();
    let anything = OutgoingTrust::Anything;
    assert_eq!(fault(anything, Some((chain, key))), None);
    assert_eq!(
        fault(anything, Some((chain, another.key_pem.as_bytes()))),
        Some(OutgoingSettingsFault::KeyOfAnother)
    );
    assert_eq!(fault(anything, Some((chain, b"x"))), Some(OutgoingSettingsFault::BadKey));
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(fault(OutgoingTrust::Authorities(b"x"), None), Some(OutgoingSettingsFault::NoAuthority));
    assert_eq!(fault(OutgoingTrust::Authorities(broken), None), Some(OutgoingSettingsFault::BadAuthority));
    assert_eq!(fault(OutgoingTrust::Roots(&[]), None), Some(OutgoingSettingsFault::NoAuthority));
}
