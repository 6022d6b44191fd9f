//! Client certificates in memory, with a client of rustls: who is let in, and who is told what.
#[path = "house/clients.rs"]
mod clients;
mod house;
#[path = "house/visits.rs"]
mod visits;

use std::sync::Arc;

use clients::{Authority, DAY, Shown, valid};
use house::{House, house, now};
use rcgen::{GeneralSubtree, NameConstraints, SanType};
use rustls::{AlertDescription, ClientConnection, SupportedProtocolVersion};
use staunch_tls::{Alert, CertificateFault, ClientAuthority, Fault, HandshakeProgress, SitePolicy};
use visits::{TLS13, VERSIONS, ask, client, policy, read, shake};

#[test]
fn a_good_certificate_names_its_client() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let middle = root.below("middle", |_| ());
    for (shown, required) in [(root.client("anna", |_| ()), true), (middle.client("anna", |_| ()), false)] {
        ask(&house, Some(policy(read(&root, None), required)));
        for version in VERSIONS {
            let agreed = shake(&house, &client(&house, version, Some(&shown)), "localhost").expect("let in");
            let identity = agreed.client.expect("verified");
            assert_eq!((&*identity.subject, identity.policy), ("CN=anna,O=House", 7));
            let digest = ring::digest::digest(&ring::digest::SHA256, &shown.chain[0]);
            assert_eq!(identity.fingerprint, digest.as_ref());
            assert_eq!(identity.fingerprint_hex().len(), 64);
            assert!(!agreed.is_resumed);
        }
    }
}

#[test]
fn one_without_a_certificate_is_let_in_where_it_is_optional() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    for version in VERSIONS {
        let config = client(&house, version, None);
        ask(&house, Some(policy(read(&root, None), false)));
        assert_eq!(shake(&house, &config, "localhost").expect("let in").client, None);
        ask(&house, Some(policy(read(&root, None), true)));
        let (fault, alert) = shake(&house, &config, "localhost").expect_err("refused");
        assert_eq!(fault, Fault::Certificate(CertificateFault::Missing));
        assert_eq!(alert, AlertDescription::CertificateRequired);
    }
}

#[test]
fn one_that_is_not_asked_shows_nothing() {
    let house = house();
    let shown = Authority::root("root", now() - DAY).client("anna", |_| ());
    for version in VERSIONS {
        let agreed = shake(&house, &client(&house, version, Some(&shown)), "localhost").expect("let in");
        assert_eq!(agreed.client, None);
    }
}

/// Every certificate that must not pass, with what is said of it.
fn bad_ones(root: &Authority) -> Vec<(&'static str, Shown, CertificateFault, AlertDescription)> {
    let deep = (0..19).fold(root.below("0", |_| ()), |above, place| above.below(&place.to_string(), |_| ()));
    let deeper = (0..8).fold(root.below("0", |_| ()), |above, place| above.below(&place.to_string(), |_| ()));
    let excluding = root.below("constrained", |params| {
        let permitted_subtrees = vec![GeneralSubtree::DnsName("example.org".into())];
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    });
    let stranger = Authority::root("root", now() - DAY);
    use AlertDescription as A;
    use CertificateFault as F;
    let mut forged = root.client("forged", |_| ());
    forged.key = root.client("other", |_| ()).key;
    vec![
        (
            "expired",
            root.client("old", |params| valid(params, now() - 9 * DAY, now() - DAY)),
            F::Expired,
            A::CertificateExpired,
        ),
        (
            "not yet valid",
            root.client("early", |params| valid(params, now() + DAY, now() + 2 * DAY)),
            F::Expired,
            A::CertificateExpired,
        ),
        ("self-signed", Shown::self_signed("me", now() - DAY), F::UnknownIssuer, A::UnknownCA),
        (
            "unknown issuer",
            Authority::root("who", now() - DAY).client("x", |_| ()),
            F::UnknownIssuer,
            A::UnknownCA,
        ),
        ("an issuer of the same name", stranger.client("anna", |_| ()), F::Bad, A::DecryptError),
        ("chain of 20", deep.client("deep", |_| ()), F::Bad, A::CertificateUnknown),
        ("chain of 9", deeper.client("deep", |_| ()), F::Bad, A::CertificateUnknown),
        (
            "name constraint",
            excluding.client("named", |params| {
                params.subject_alt_names = vec![SanType::DnsName("example.net".try_into().expect("a name"))];
            }),
            F::Bad,
            A::CertificateUnknown,
        ),
        (
            "for servers",
            root.client("server", |params| {
                params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
            }),
            F::Bad,
            A::UnsupportedCertificate,
        ),
        ("subject of 2 000 bytes", root.client(&"x".repeat(2_000), |_| ()), F::Bad, A::BadCertificate),
    ]
}

#[test]
fn a_bad_certificate_gets_its_alert() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    for (what, shown, expected, expected_alert) in bad_ones(&root) {
        for version in VERSIONS {
            // Optional is no leave to show a bad one.
            for is_required in [true, false] {
                ask(&house, Some(policy(read(&root, None), is_required)));
                let refused = shake(&house, &client(&house, version, Some(&shown)), "localhost");
                let (fault, alert) = refused.expect_err(what);
                let got = (fault, alert);
                assert_eq!(got, (Fault::Certificate(expected), expected_alert), "{what}, {version:?}");
            }
        }
    }
}

#[test]
fn lists_revoke_and_have_to_be_fresh_and_whole() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let middle = root.below("middle", |_| ());
    let (good, bad, below) =
        (root.client("good", |_| ()), root.client("bad", |_| ()), middle.client("below", |_| ()));
    let list = root.list(&[&bad], now() - DAY, now() + DAY);
    let refusal = |shown: &Shown, version| {
        let refused = shake(&house, &client(&house, version, Some(shown)), "localhost");
        refused.map(|agreed| agreed.client.is_some())
    };
    use AlertDescription as A;
    use CertificateFault as F;
    for version in VERSIONS {
        ask(&house, Some(policy(read(&root, Some(&list)), true)));
        assert_eq!(refusal(&good, version), Ok(true));
        let revoked = Err((Fault::Certificate(F::Revoked), A::CertificateRevoked));
        assert_eq!(refusal(&bad, version), revoked);
        // The authority in the middle has no list.
        let unknown = Err((Fault::Certificate(F::UnknownStatus), A::UnknownCA));
        assert_eq!(refusal(&below, version), unknown);
        let both = format!("{list}{}", middle.list(&[], now() - DAY, now() + DAY));
        ask(&house, Some(policy(read(&root, Some(&both)), true)));
        assert_eq!(refusal(&below, version), Ok(true));
        // A list that another has signed with the same name says nothing.
        let forged = Authority::root("root", now() - DAY).list(&[], now() - DAY, now() + DAY);
        ask(&house, Some(policy(read(&root, Some(&forged)), true)));
        let forged = Err((Fault::Certificate(F::UnknownStatus), A::HandshakeFailure));
        assert_eq!(refusal(&good, version), forged);
        // The list grows stale while it is in use.
        ask(&house, Some(policy(read(&root, Some(&list)), true)));
        house.context.tell_time(now() + DAY + 60);
        assert_eq!(refusal(&good, version), unknown);
        house.context.tell_time(now());
    }
}

#[test]
fn an_authority_that_ended_vouches_for_nobody() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let shown = root.client("anna", |params| valid(params, now() - DAY, now() + 90 * DAY));
    ask(&house, Some(policy(read(&root, None), true)));
    house.context.tell_time(now() + 10 * DAY);
    for version in VERSIONS {
        let refused = shake(&house, &client(&house, version, Some(&shown)), "localhost");
        let (fault, alert) = refused.expect_err("refused");
        assert_eq!(fault, Fault::Certificate(CertificateFault::UnknownIssuer));
        assert_eq!(alert, AlertDescription::UnknownCA);
    }
}

/// Whether a client of this certificate is let in, and whether it would be as well at its next request.
fn is_in(house: &House, shown: &Shown, version: &'static SupportedProtocolVersion) -> (bool, bool) {
    match shake(house, &client(house, version, Some(shown)), "localhost") {
        Ok(agreed) => {
            let identity = agreed.client.expect("it showed a certificate");
            (true, house.context.upholds(&identity, house.context.unix_s()))
        }
        Err(_) => (false, false),
    }
}

#[test]
fn an_authority_that_ended_vouches_for_nobody_beside_one_that_has_not() {
    let house = house();
    let (old, root) = (Authority::root("old", now() - 8 * DAY), Authority::root("root", now() - DAY));
    let long = |authority: &Authority| {
        authority.client("anna", |params| valid(params, now() - DAY, now() + 90 * DAY))
    };
    let (of_old, of_root) = (long(&old), long(&root));
    for (file, lists) in [
        (format!("{}{}", old.pem(), root.pem()), None),
        (format!("{}{}", root.pem(), old.pem()), Some([&root, &old])),
    ] {
        let lists = lists.map(|all| all.map(|one| one.list(&[], now() - DAY, now() + 5 * DAY)).concat());
        let read = ClientAuthority::read(file.as_bytes(), lists.as_ref().map(|text| text.as_bytes()), now());
        ask(&house, Some(policy(read.expect("both are good"), true)));
        for version in VERSIONS {
            house.context.tell_time(now());
            assert_eq!(is_in(&house, &of_old, version), (true, true));
            // The old one has ended, and the files were not read again yet.
            house.context.tell_time(now() + 3 * DAY);
            assert_eq!(is_in(&house, &of_old, version), (false, false));
            assert_eq!(is_in(&house, &of_root, version), (true, true), "the end of another is nothing to it");
        }
    }
}

#[test]
fn what_plays_no_part_ends_nothing() {
    let house = house();
    let (root, other) = (Authority::root("root", now() - DAY), Authority::root("other", now() - DAY));
    let mut shown = root.client("anna", |_| ());
    let gone = other.below("gone", |params| valid(params, now() - 9 * DAY, now() - DAY));
    shown.chain.push(gone.client("x", |_| ()).chain[1].clone());
    ask(&house, Some(policy(read(&root, None), true)));
    for version in VERSIONS {
        assert_eq!(is_in(&house, &shown, version), (true, true), "it sent one too many, which has ended");
    }
    // Nor does the list of another authority, once it is stale.
    let (good, bad) = (root.client("anna", |_| ()), other.client("bert", |_| ()));
    let lists = format!(
        "{}{}",
        root.list(&[], now() - DAY, now() + 5 * DAY),
        other.list(&[], now() - DAY, now() + DAY)
    );
    let both = format!("{}{}", root.pem(), other.pem());
    let both = ClientAuthority::read(both.as_bytes(), Some(lists.as_bytes()), now()).expect("all are good");
    ask(&house, Some(policy(both, true)));
    house.context.tell_time(now() + 2 * DAY);
    for version in VERSIONS {
        assert_eq!(is_in(&house, &good, version), (true, true));
        assert_eq!(is_in(&house, &bad, version), (false, false));
    }
}

#[test]
fn of_two_lists_of_one_authority_the_newer_counts() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let (good, bad) = (root.client("good", |_| ()), root.client("bad", |_| ()));
    let former = root.list(&[], now() - DAY, now() + DAY);
    let newer = root.list(&[&bad], now() - 60, now() + DAY);
    for lists in [format!("{former}{newer}"), format!("{newer}{former}")] {
        ask(&house, Some(policy(read(&root, Some(&lists)), true)));
        for version in VERSIONS {
            assert_eq!(is_in(&house, &good, version), (true, true));
            let refused = shake(&house, &client(&house, version, Some(&bad)), "localhost");
            let (fault, _) = refused.expect_err("the newer list revokes it");
            assert_eq!(fault, Fault::Certificate(CertificateFault::Revoked));
        }
    }
}

#[test]
fn each_name_has_its_policy() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let required = || Some(policy(read(&root, None), true));
    let site = |hosts: &[&str], is_default, clients| SitePolicy {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        is_default,
        clients,
    };
    house.context.ask_clients(&[
        site(&["localhost", "a.house.local"], true, None),
        site(&["*.house.local"], false, required()),
        site(&["b.house.local"], false, Some(policy(read(&root, None), false))),
    ]);
    let nobody = client(&house, TLS13, None);
    for (name, is_let_in) in [
        ("localhost", true),
        ("a.house.local", true),
        ("A.House.Local", true),
        ("b.house.local", true),
        ("c.house.local", false),
    ] {
        assert_eq!(shake(&house, &nobody, name).is_ok(), is_let_in, "{name}");
    }
    // A client that asks for no name meets the policy of the default.
    assert!(shake(&house, &nobody, "127.0.0.1").is_ok());
    ask(&house, required());
    assert!(shake(&house, &nobody, "127.0.0.1").is_err());
}

#[test]
fn a_handshake_holds_no_chain_without_end() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    ask(&house, Some(policy(read(&root, None), true)));
    let mut shown = root.client("anna", |_| ());
    let long = root.client("long", |params| {
        params.subject_alt_names = (0..400)
            .map(|place| SanType::DnsName(format!("{place}.{}", "x".repeat(50)).try_into().expect("a name")))
            .collect();
    });
    shown.chain.extend((0..6).map(|_| long.chain[0].clone()));
    let config = client(&house, TLS13, Some(&shown));
    let name = "localhost".try_into().expect("a name");
    let mut client = ClientConnection::new(config, name).expect("a client");
    let mut handshake = staunch_tls::Handshake::new(Arc::clone(&house.context), None);
    let fault = loop {
        let (mut bytes, mut answers) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut bytes).expect("memory");
        }
        match handshake.feed(&bytes, &mut answers).1 {
            Ok(HandshakeProgress::Done) => panic!("a chain of 140 KB was taken"),
            Ok(HandshakeProgress::Pending) => {}
            Err(fault) => break fault,
        }
        client.read_tls(&mut &answers[..]).expect("memory");
        client.process_new_packets().expect("the server's flight");
    };
    assert!(matches!(fault, Fault::Refused(Alert::DecodeError, _)), "{fault:?}");
    assert!(handshake.held_bytes() < 128 * 1024, "{}", handshake.held_bytes());
}
