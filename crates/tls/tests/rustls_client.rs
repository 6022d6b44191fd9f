//! Whole connections in memory, with a client of rustls: every suite and group, resumption, names, cuts,
//! updates.
mod house;

use std::io::{Read, Write};
use std::sync::Arc;

use house::{House, Side, context, house, pair};
use proptest::prelude::*;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore,
    SupportedCipherSuite, SupportedProtocolVersion,
};
use staunch_tls::{Alert, CertificateStore, Fault, Suite};

const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

fn client_config(house: &House, suites: &[SupportedCipherSuite], protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(house.authority.certificate_pem().as_bytes()).expect("PEM");
    roots.add(root).expect("a root");
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites = suites.to_vec();
    let mut versions = BOTH.to_vec();
    versions.retain(|version| suites.iter().any(|suite| suite.version().version == version.version));
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .expect("suites of the version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
    Arc::new(config)
}

fn all_suites() -> Vec<SupportedCipherSuite> {
    rustls::crypto::ring::ALL_CIPHER_SUITES.to_vec()
}

/// Both ends of a connection.
struct Wire {
    client: ClientConnection,
    side: Side,
    /// What the client read, and whether it was told that this is all.
    got: Vec<u8>,
    is_end: bool,
}

impl Wire {
    fn new(house: &House, config: &Arc<ClientConfig>, name: &str) -> Self {
        let name = name.to_owned().try_into().expect("a name");
        let client = ClientConnection::new(Arc::clone(config), name).expect("a client");
        Self { client, side: Side::new(&house.context), got: Vec::new(), is_end: false }
    }

    /// Carries bytes both ways until nothing moves, in pieces of at most `piece` bytes.
    fn carry(&mut self, piece: usize) -> Result<(), Fault> {
        loop {
            let mut bytes = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut bytes).expect("memory");
            }
            let answers = std::mem::take(&mut self.side.output);
            if bytes.is_empty() && answers.is_empty() {
                return Ok(());
            }
            let mut result = Ok(());
            for part in bytes.chunks(piece) {
                result = self.side.receive(part);
                if result.is_err() {
                    break;
                }
            }
            let mut answers = &[answers, std::mem::take(&mut self.side.output)].concat()[..];
            while !answers.is_empty() {
                self.client.read_tls(&mut answers).expect("memory");
                if self.client.process_new_packets().is_err() {
                    return result;
                }
                self.read();
            }
            result?;
        }
    }

    fn read(&mut self) {
        let mut piece = [0; 4_096];
        while let Ok(count) = self.client.reader().read(&mut piece) {
            self.got.extend_from_slice(&piece[..count]);
            self.is_end |= count == 0;
            if count == 0 {
                return;
            }
        }
    }

    /// A request and its answer.
    fn ask(&mut self, request: &[u8], answer: &[u8], piece: usize) {
        self.client.writer().write_all(request).expect("memory");
        self.carry(piece).expect("good records");
        assert_eq!(std::mem::take(&mut self.side.plain), request);
        self.side.seal(&[answer]);
        self.carry(piece).expect("good records");
        assert!(std::mem::take(&mut self.got) == answer, "{} bytes", answer.len());
    }
}

#[test]
fn every_suite_talks_and_sleeps_between() {
    let house = house();
    let mut seen = Vec::new();
    for suite in all_suites() {
        let mut wire = Wire::new(&house, &client_config(&house, &[suite], &[b"http/1.1"]), "localhost");
        match wire.carry(usize::MAX) {
            Ok(()) => {}
            // The house has a key of ECDSA alone; other programs try RSA.
            Err(Fault::Refused(Alert::HandshakeFailure, _))
                if format!("{:?}", suite.suite()).contains("_RSA_") =>
            {
                continue;
            }
            Err(fault) => panic!("{suite:?}: {fault}"),
        }
        for turn in 0..4 {
            wire.ask(format!("request {turn}").as_bytes(), &vec![turn; 1 << (5 * turn)], usize::MAX);
        }
        let agreed = wire.side.agreed.clone().expect("open");
        assert_eq!(agreed.suite_number, u16::from(suite.suite()));
        assert_eq!(
            (agreed.protocol, agreed.server_name.as_deref()),
            (Some(&b"http/1.1"[..]), Some("localhost"))
        );
        assert!(!agreed.is_resumed && agreed.group_number.is_some());
        seen.push(agreed.suite);
    }
    seen.sort_unstable_by_key(|suite| *suite as u8);
    assert_eq!(seen, Suite::ALL);
}

#[test]
fn tickets_resume_in_both_versions() {
    let house = house();
    for version in [ProtocolVersion::TLSv1_3, ProtocolVersion::TLSv1_2] {
        let mut suites = all_suites();
        suites.retain(|suite| suite.version().version == version);
        let config = client_config(&house, &suites, &[b"h2"]);
        for is_resumed in [false, true, true] {
            let mut wire = Wire::new(&house, &config, "localhost");
            wire.carry(usize::MAX).expect("good");
            wire.ask(b"GET", b"200", usize::MAX);
            assert_eq!(wire.side.agreed.as_ref().expect("open").is_resumed, is_resumed, "{version:?}");
            let expected = if is_resumed { HandshakeKind::Resumed } else { HandshakeKind::Full };
            assert_eq!(wire.client.handshake_kind(), Some(expected));
        }
    }
}

#[test]
fn keys_change_both_ways() {
    let house = house();
    let mut suites = all_suites();
    suites.retain(|suite| suite.tls13().is_some());
    let mut wire = Wire::new(&house, &client_config(&house, &suites, &[]), "localhost");
    wire.carry(usize::MAX).expect("good");
    for _ in 0..3 {
        wire.client.refresh_traffic_keys().expect("TLS 1.3");
        wire.ask(b"after the client's", b"answer", usize::MAX);
        wire.side.change_key();
        wire.ask(b"after ours", b"answer", usize::MAX);
    }
    // rustls answers an update when it writes next.
    wire.ask(b"once more", b"answer", usize::MAX);
    assert_eq!(wire.side.oddities, 6, "three of the client's own, three asked for");
}

#[test]
fn row_07_an_end_is_told_both_ways() {
    let house = house();
    let mut wire = Wire::new(&house, &client_config(&house, &all_suites(), &[]), "localhost");
    wire.carry(usize::MAX).expect("good");
    wire.client.send_close_notify();
    wire.carry(usize::MAX).expect("an end is no fault");
    assert!(wire.side.is_end);
    wire.side.close();
    wire.carry(usize::MAX).expect("an end");
    assert!(wire.is_end && wire.got.is_empty());
}

/// What the client is told when its handshake is refused.
fn refusal(house: &House, config: &Arc<ClientConfig>, name: &str) -> (Fault, AlertDescription) {
    let mut wire = Wire::new(house, config, name);
    let fault = wire.carry(usize::MAX).expect_err("it must be refused");
    match wire.client.process_new_packets() {
        Err(rustls::Error::AlertReceived(alert)) => (fault, alert),
        other => panic!("{other:?}"),
    }
}

#[test]
fn row_09_names_choose_certificates_or_are_refused() {
    let house = house();
    let config = client_config(&house, &all_suites(), &[]);
    for name in ["localhost", "LOCALHOST", "printer.house.local"] {
        Wire::new(&house, &config, name).carry(usize::MAX).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    }
    for name in ["other.internal", "a.printer.house.local", "house.local"] {
        let (fault, alert) = refusal(&house, &config, name);
        assert_eq!(
            (fault.alert(), alert),
            (Some(Alert::UnrecognizedName), AlertDescription::UnrecognisedName)
        );
    }
    // A client that asks for an address sends no name, and gets the first certificate.
    Wire::new(&house, &config, "127.0.0.1").carry(usize::MAX).expect("the first certificate");
}

#[test]
fn certificates_are_swapped_without_touching_connections() {
    let house = house();
    let config = client_config(&house, &all_suites(), &[]);
    let mut open = Wire::new(&house, &config, "localhost");
    open.carry(usize::MAX).expect("good");
    let next = pair(&house.authority, &["next.internal"]);
    house.store.replace(&[next], false);
    open.ask(b"still there?", b"yes", usize::MAX);
    Wire::new(&house, &config, "next.internal").carry(usize::MAX).expect("the new certificate");
    assert_eq!(refusal(&house, &config, "gone.internal").1, AlertDescription::UnrecognisedName);
    house.store.replace(&[], false);
    assert!(!house.store.has("next.internal"));
}

/// A peer whose first message is refused while others stand behind it ends its connection, and nothing else.
/// (Found by the fuzz target `client_hello`, whose own the first byte of each is.)
#[test]
fn messages_behind_a_fault_end_one_connection() {
    const FOUND: [&[u8]; 2] = [
        include_bytes!("../../../fuzz/seeds/client_hello/messages-behind-a-fault"),
        include_bytes!("../../../fuzz/seeds/client_hello/two-faults"),
    ];
    for bytes in FOUND {
        for piece in [bytes.len(), 9, 1] {
            let mut side = Side::new(&house().context);
            let refused = bytes[1..].chunks(piece).find_map(|piece| side.receive(piece).err());
            assert!(matches!(refused, Some(Fault::Refused(..))), "{refused:?}");
            assert!(!side.output.is_empty(), "an alert");
        }
    }
}

#[test]
fn row_02_nothing_in_common_is_refused() {
    let mut house = house();
    let config = client_config(&house, &all_suites(), &[b"acme-tls/1"]);
    let (fault, alert) = refusal(&house, &config, "localhost");
    assert_eq!(
        (fault.alert(), alert),
        (Some(Alert::NoApplicationProtocol), AlertDescription::NoApplicationProtocol)
    );
    house.store = Arc::new(CertificateStore::new(&[], true));
    house.context = context(&house.store);
    let config = client_config(&house, &all_suites(), &[]);
    let mut wire = Wire::new(&house, &config, "localhost");
    assert!(wire.carry(usize::MAX).is_err(), "no certificate at all");
}

#[test]
fn row_04_a_handshake_is_bounded() {
    let house = house();
    let mut side = Side::new(&house.context);
    side.receive(&[22, 3, 1, 0x20, 0, 1, 0, 0x3f, 0]).expect("more is awaited");
    let fault = [0u8; 8188].chunks(1).find_map(|byte| side.receive(byte).err());
    assert_eq!(fault, None, "the first record alone is within the bounds");
    // A hello in many records of one byte each.
    let mut side = Side::new(&house.context);
    side.receive(&[22, 3, 1, 0, 4, 1, 0, 0x3f, 0]).expect("more is awaited");
    let fault = (0..300).find_map(|_| side.receive(&[22, 3, 1, 0, 1, 0]).err()).expect("a bound");
    assert_eq!(fault.alert(), Some(Alert::DecodeError));
    assert_eq!(side.output, Alert::DecodeError.plain_record());
}

#[test]
fn row_01_plain_http_is_told_apart() {
    let mut side = Side::new(&house().context);
    assert_eq!(side.receive(b"GET / HTTP/1.1\r\n"), Err(Fault::PlainHttp));
    assert!(side.output.is_empty(), "the answer is the caller's");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However the client's bytes are cut, the connection says the same.
    #[test]
    fn cuts_change_nothing(piece in 1usize..700, suite in 0usize..9, length in 1usize..40_000) {
        let house = house();
        let suite = all_suites()[suite % all_suites().len()];
        prop_assume!(!format!("{:?}", suite.suite()).contains("ECDHE_RSA"));
        let mut wire = Wire::new(&house, &client_config(&house, &[suite], &[]), "localhost");
        wire.carry(piece).expect("good");
        let long: Vec<u8> = (0..length).map(|byte| u8::try_from(byte % 251).expect("below")).collect();
        wire.ask(&long[..length.min(9_000)], &long, piece);
    }

    /// A client's flights with a changed byte never open a connection with other bytes than were sent.
    #[test]
    fn a_changed_byte_is_never_taken(place in 0usize..2_000, mask in 1u8..) {
        let house = house();
        let mut wire = Wire::new(&house, &client_config(&house, &all_suites(), &[]), "localhost");
        let mut offset = 0;
        for _ in 0..3 {
            let mut bytes = Vec::new();
            while wire.client.wants_write() {
                wire.client.write_tls(&mut bytes).expect("memory");
            }
            if let Some(byte) = place.checked_sub(offset).and_then(|place| bytes.get_mut(place)) {
                *byte ^= mask;
            }
            offset += bytes.len();
            if wire.side.receive(&bytes).is_err() {
                prop_assert!(wire.side.plain.is_empty());
                return Ok(());
            }
            let answers = std::mem::take(&mut wire.side.output);
            let mut answers = &answers[..];
            while !answers.is_empty() {
                wire.client.read_tls(&mut answers).expect("memory");
                if wire.client.process_new_packets().is_err() {
                    return Ok(());
                }
            }
            if !wire.client.is_handshaking() && wire.side.plain.is_empty() {
                wire.client.writer().write_all(b"request").expect("memory");
            }
        }
        prop_assert!(wire.side.plain.is_empty() || wire.side.plain == b"request");
    }
}

/// A record of another type within a message gets its alert (RFC 8446, section 5.1), though rustls has none
/// for it.
#[test]
fn a_record_within_a_message_gets_an_alert() {
    let house = house();
    let mut suites = all_suites();
    suites.retain(|suite| suite.version().version == ProtocolVersion::TLSv1_2);
    let mut wire = Wire::new(&house, &client_config(&house, &suites, &[]), "localhost");
    let mut flights = Vec::new();
    for _ in 0..2 {
        let mut flight = Vec::new();
        while wire.client.wants_write() {
            wire.client.write_tls(&mut flight).expect("memory");
        }
        if flights.is_empty() {
            wire.side.receive(&flight).expect("a good hello");
            wire.client.read_tls(&mut &wire.side.output[..]).expect("memory");
            wire.client.process_new_packets().expect("a good answer");
            wire.side.output.clear();
        }
        flights.push(flight);
    }
    // ClientKeyExchange, ChangeCipherSpec, Finished: the second comes within the first.
    let flight = &flights[1];
    assert_eq!((flight[0], &flight[3..5]), (22, &[0, 37][..]), "{}", flight.escape_ascii());
    let (exchange, rest) = flight[5..].split_at(37);
    let (start, end) = exchange.split_at(7);
    let bytes = [&[22, 3, 3, 0, 7], start, &rest[..6], &[22, 3, 3, 0, 30], end].concat();
    let fault = wire.side.receive(&bytes).expect_err("it must be refused");
    assert_eq!(fault.alert(), Some(Alert::UnexpectedMessage), "{fault}");
    assert_eq!(wire.side.output, Alert::UnexpectedMessage.plain_record());
}
