//! What a ticket of a client with a certificate is good for, and for how long what was verified holds.
#[path = "house/clients.rs"]
mod clients;
mod house;
#[path = "house/visits.rs"]
mod visits;

use std::sync::Arc;

use clients::{Authority, DAY, valid};
use house::{House, house, now};
use rcgen::SanType;
use rustls::ClientConfig;
use staunch_tls::{CertificateFault, ClientAuthority, Fault};
use visits::{TLS13, VERSIONS, ask, client, policy, read, shake};

#[test]
fn what_was_verified_holds_until_a_file_changes_or_something_ends() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let shown = root.client("anna", |params| valid(params, now() - DAY, now() + 2 * DAY));
    let list = root.list(&[], now() - DAY, now() + DAY);
    ask(&house, Some(policy(read(&root, Some(&list)), true)));
    let agreed = shake(&house, &client(&house, TLS13, Some(&shown)), "localhost").expect("let in");
    let identity = agreed.client.expect("verified");
    assert!(house.context.upholds(&identity, now()));
    ask(&house, Some(policy(read(&root, Some(&list)), false)));
    assert!(house.context.upholds(&identity, now()), "the same files");
    // Whatever handshakes were told last: perhaps there was none for long.
    assert!(!house.context.upholds(&identity, now() + DAY + 60), "the list is stale");
    ask(&house, Some(policy(read(&root, None), true)));
    assert!(!house.context.upholds(&identity, now()), "other files");
    ask(&house, None);
    assert!(!house.context.upholds(&identity, now()), "nobody vouches");
}

/// Shakes hands twice with one client: whether the second was resumed, and whom it named.
fn again(house: &House, config: &Arc<ClientConfig>, between: impl FnOnce()) -> (bool, Option<String>) {
    let first = shake(house, config, "localhost").expect("let in");
    assert!(!first.is_resumed);
    between();
    let second = shake(house, config, "localhost").expect("let in");
    (second.is_resumed, second.client.map(|identity| identity.subject.to_string()))
}

#[test]
fn a_resumed_session_keeps_what_was_verified() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let shown = root.client("anna", |_| ());
    ask(&house, Some(policy(read(&root, None), true)));
    for version in VERSIONS {
        let config = client(&house, version, Some(&shown));
        let anna = Some("CN=anna,O=House".to_owned());
        assert_eq!(again(&house, &config, || ()), (true, anna.clone()));
        // And so on: the ticket of a resumed session is as good.
        let third = shake(&house, &config, "localhost").expect("let in");
        assert_eq!((third.is_resumed, third.client.map(|client| client.subject.to_string())), (true, anna));
    }
}

#[test]
fn a_ticket_is_good_for_its_policy_alone() {
    let root = Authority::root("root", now() - DAY);
    let other = Authority::root("other", now() - DAY);
    let both = format!("{}{}", root.pem(), other.pem());
    let both = || ClientAuthority::read(both.as_bytes(), None, now()).expect("two authorities");
    let shown = root.client("anna", |_| ());
    let list = |from| root.list(&[], from, now() + DAY);
    for version in VERSIONS {
        let house = house();
        let config = |shown| client(&house, version, shown);
        // A client that showed nothing has to show a certificate once the policy requires it.
        let nobody = config(None);
        ask(&house, Some(policy(read(&root, None), false)));
        assert_eq!(again(&house, &nobody, || ()), (true, None));
        ask(&house, Some(policy(read(&root, None), true)));
        let (fault, _) = shake(&house, &nobody, "localhost").expect_err("refused");
        assert_eq!(fault, Fault::Certificate(CertificateFault::Missing));
        // Nor does a ticket of a site that asks for nothing help.
        let nobody = config(None);
        ask(&house, None);
        assert_eq!(again(&house, &nobody, || ()), (true, None));
        ask(&house, Some(policy(read(&root, None), true)));
        assert!(shake(&house, &nobody, "localhost").is_err());
        // Other authorities, and another list, look at the certificate anew.
        let anna = Some("CN=anna,O=House".to_owned());
        let full = (false, anna.clone());
        let change = || ask(&house, Some(policy(both(), true)));
        assert_eq!(again(&house, &config(Some(&shown)), change), full);
        ask(&house, Some(policy(read(&root, Some(&list(now() - DAY))), true)));
        let change = || ask(&house, Some(policy(read(&root, Some(&list(now() - 60))), true)));
        assert_eq!(again(&house, &config(Some(&shown)), change), full);
        let revoked = root.list(&[&shown], now() - 30, now() + DAY);
        let with_ticket = config(Some(&shown));
        assert_eq!(again(&house, &with_ticket, || ()), (true, anna));
        ask(&house, Some(policy(read(&root, Some(&revoked)), true)));
        let (fault, _) = shake(&house, &with_ticket, "localhost").expect_err("revoked");
        assert_eq!(fault, Fault::Certificate(CertificateFault::Revoked));
    }
}

#[test]
fn a_ticket_ends_with_the_certificate_and_the_list() {
    let root = Authority::root("root", now() - DAY);
    let hour = 3_600;
    let brief = root.client("brief", |params| valid(params, now() - DAY, now() + hour));
    let long = root.client("long", |_| ());
    for version in VERSIONS {
        let house = house();
        ask(&house, Some(policy(read(&root, None), true)));
        let config = client(&house, version, Some(&brief));
        assert!(again(&house, &config, || ()).0);
        house.context.tell_time(now() + hour + 60);
        let (fault, _) = shake(&house, &config, "localhost").expect_err("its certificate has ended");
        assert_eq!(fault, Fault::Certificate(CertificateFault::Expired));
        house.context.tell_time(now());
        let list = root.list(&[], now() - DAY, now() + hour);
        ask(&house, Some(policy(read(&root, Some(&list)), true)));
        let config = client(&house, version, Some(&long));
        assert!(again(&house, &config, || ()).0);
        house.context.tell_time(now() + hour + 60);
        let (fault, _) = shake(&house, &config, "localhost").expect_err("the list is stale");
        assert_eq!(fault, Fault::Certificate(CertificateFault::UnknownStatus));
    }
}

#[test]
fn a_session_too_long_for_a_ticket_is_not_resumed() {
    let house = house();
    let root = Authority::root("root", now() - DAY);
    let long = root.client("long", |params| {
        let name = |place: usize| {
            SanType::DnsName(format!("{place}.{}", "x".repeat(50)).try_into().expect("a name"))
        };
        params.subject_alt_names = (0..200).map(name).collect();
    });
    assert!(long.chain[0].len() > staunch_tls::limits::SESSION_BYTES_MAX);
    ask(&house, Some(policy(read(&root, None), true)));
    for version in VERSIONS {
        let (is_resumed, client) = again(&house, &client(&house, version, Some(&long)), || ());
        assert_eq!((is_resumed, client.as_deref()), (false, Some("CN=long,O=House")));
    }
}
