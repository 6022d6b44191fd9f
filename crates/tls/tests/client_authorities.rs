//! Authorities of clients and their lists of revoked certificates: what is wrong with them is said.
#[path = "house/clients.rs"]
mod clients;

use clients::{Authority, DAY, pem};
use rcgen::{IsCa, KeyUsagePurpose};
use staunch_tls::limits::{AUTHORITIES_MAX, LISTS_BYTES_MAX, LISTS_MAX, PEM_BYTES_MAX};
use staunch_tls::{ClientAuthority, ClientAuthorityFault as Fault, ListsFault};

const NOW: u64 = 1_795_000_000;

fn fault(authorities: &str, lists: Option<&str>) -> Fault {
    let read = ClientAuthority::read(authorities.as_bytes(), lists.map(str::as_bytes), NOW);
    read.err().expect("something is wrong")
}

#[test]
fn faulty_authorities_are_named() {
    let root = Authority::root("root", NOW - DAY);
    let whole = root.pem();
    let old = Authority::root("old", NOW - 13 * DAY).pem();
    let early = Authority::root("early", NOW + 2 * DAY).pem();
    let no_authority = root.below("none", |params| {
        params.is_ca = IsCa::NoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    });
    assert_eq!(fault("", None), Fault::NoCertificate);
    assert_eq!(fault("nonsense", None), Fault::NoCertificate);
    assert_eq!(fault(&root.list(&[], NOW, NOW + DAY), None), Fault::NoCertificate);
    assert!(matches!(fault(&whole[..whole.len() / 2], None), Fault::Pem(_)), "half written");
    assert!(matches!(fault(&format!("{whole}{}", &whole[..99]), None), Fault::Pem(_)), "half written");
    assert_eq!(fault(&format!("{whole}{}", pem("CERTIFICATE", b"no DER")), None), Fault::Certificate(2));
    assert_eq!(fault(&format!("{whole}{}", no_authority.pem()), None), Fault::NoAuthority(2));
    assert_eq!(fault(&old, None), Fault::Expired(3 * DAY));
    assert_eq!(fault(&early, None), Fault::NotYetValid(2 * DAY));
    assert_eq!(fault(&whole.repeat(AUTHORITIES_MAX + 1), None), Fault::TooMany(AUTHORITIES_MAX + 1));
    assert_eq!(fault(&" ".repeat(PEM_BYTES_MAX + 1), None), Fault::TooLong);
    assert_eq!(Fault::Expired(3 * DAY).to_string(), "the authority expired 3 days ago");
}

#[test]
fn an_authority_that_has_ended_is_left_out_beside_another() {
    let (root, old) = (Authority::root("root", NOW - DAY), Authority::root("old", NOW - 13 * DAY));
    let both = format!("{}{}", old.pem(), root.pem());
    let read = ClientAuthority::read(both.as_bytes(), None, NOW).expect("one is good");
    assert_eq!(read.authorities_until_unix_s(), NOW + 9 * DAY);
    // Before it ended its end was what is next.
    let read = ClientAuthority::read(both.as_bytes(), None, NOW - 4 * DAY);
    assert_eq!(read.expect("both are good").authorities_until_unix_s(), NOW - 3 * DAY);
}

#[test]
fn faulty_lists_are_named() {
    let root = Authority::root("root", NOW - DAY);
    let good = root.list(&[&root.client("gone", |_| ())], NOW - DAY, NOW + DAY);
    let of_lists = |text: &str| match fault(&root.pem(), Some(text)) {
        Fault::Lists(fault) => fault,
        other => panic!("{other:?}"),
    };
    let read =
        ClientAuthority::read(root.pem().as_bytes(), Some(good.as_bytes()), NOW).expect("both are good");
    assert_eq!(read.lists_until_unix_s(), Some(NOW + DAY));
    assert_eq!(of_lists(""), ListsFault::NoList);
    assert_eq!(of_lists(&root.pem()), ListsFault::NoList);
    assert!(matches!(of_lists(&good[..good.len() / 2]), ListsFault::Pem(_)), "half written");
    assert_eq!(of_lists(&format!("{good}{}", pem("X509 CRL", b"no DER"))), ListsFault::List(2));
    let stale = Authority::root("other", NOW - DAY).list(&[], NOW - 3 * DAY, NOW - 2 * DAY);
    assert_eq!(of_lists(&format!("{good}{stale}")), ListsFault::Stale(2, 2 * DAY));
    let der = root.list_der(&[], NOW - DAY, NOW + DAY);
    let endless = pem("X509 CRL", &without_next_update(&der));
    assert_eq!(of_lists(&format!("{good}{endless}")), ListsFault::Endless(2));
    let in_part = pem("X509 CRL", &with_distribution_point(&der, &[0x83, 2, 6, 0x40]));
    assert!(matches!(of_lists(&in_part), ListsFault::Kind(1, _)), "{:?}", of_lists(&in_part));
    assert_eq!(of_lists(&good.repeat(LISTS_MAX + 1)), ListsFault::TooMany(LISTS_MAX + 1));
    assert_eq!(of_lists(&" ".repeat(LISTS_BYTES_MAX + 1)), ListsFault::TooLong);
    let sentence = Fault::Lists(ListsFault::Stale(2, 2 * DAY)).to_string();
    let expected =
        "list 2 of revoked certificates is stale: its next was due 2 days ago; put that in its place";
    assert_eq!(sentence, expected);
}

#[test]
fn a_list_that_a_newer_one_replaces_is_passed_over() {
    let root = Authority::root("root", NOW - DAY);
    let former = root.list(&[], NOW - 3 * DAY, NOW - DAY);
    let newer = root.list(&[], NOW - 2 * DAY, NOW + DAY);
    for text in [format!("{former}{newer}"), format!("{newer}{former}")] {
        let read = ClientAuthority::read(root.pem().as_bytes(), Some(text.as_bytes()), NOW);
        assert_eq!(read.expect("the newer one counts").lists_until_unix_s(), Some(NOW + DAY));
    }
}

/// RUSTSEC-2026-0104: an empty BIT STRING in an extension of a list made webpki panic. Whatever is damaged
/// is refused or read, and nothing panics.
#[test]
fn a_list_that_is_damaged_anywhere_is_no_reason_to_panic() {
    let root = Authority::root("root", NOW - DAY);
    let list = root.list_der(&[&root.client("gone", |_| ())], NOW - DAY, NOW + DAY);
    let read = |der: &[u8]| {
        let text = pem("X509 CRL", der);
        ClientAuthority::read(root.pem().as_bytes(), Some(text.as_bytes()), NOW).map(|_| ())
    };
    assert_eq!(read(&list), Ok(()));
    for end in 0..list.len() {
        assert!(read(&list[..end]).is_err(), "cut at {end}");
    }
    for place in 0..list.len() {
        for change in [1, 0x20, 0x80, 0xff] {
            let mut damaged = list.clone();
            damaged[place] ^= change;
            // What it comes to does not matter: signatures are judged when a client comes.
            let _ = read(&damaged);
        }
    }
    for reasons in [&[0x83, 0][..], &[0x83, 1, 0], &[0x83, 1, 7], &[0x83, 2, 8, 0], &[0xa3, 0]] {
        assert!(read(&with_distribution_point(&list, reasons)).is_err(), "{reasons:?}");
    }
    // Bits that are allowed are read, so the lists above are refused for their bits and nothing else.
    assert_eq!(read(&with_distribution_point(&list, &[])), Ok(()));
}

/// The list with an IssuingDistributionPoint (RFC 5280, section 5.2.5) behind its last extension: an address,
/// and this.
fn with_distribution_point(list: &[u8], content: &[u8]) -> Vec<u8> {
    let address = tagged(0xa0, &tagged(0xa0, &tagged(0x86, b"http://house.local/list")));
    let mut extension = vec![0x06, 3, 0x55, 0x1d, 28, 0x01, 1, 0xff];
    extension.extend(tagged(0x04, &tagged(0x30, &[&address, content].concat())));
    let extension = tagged(0x30, &extension);
    let (whole, _) = inner(list);
    let (signed, behind) = inner(whole);
    let mut rest = signed;
    while rest[0] != 0xa0 {
        (_, rest) = inner(rest);
    }
    let extensions_at = signed.len() - rest.len();
    let (explicit, _) = inner(rest);
    let (extensions, _) = inner(explicit);
    let extensions = tagged(0x30, &[extensions, &extension].concat());
    let signed = tagged(0x30, &[&signed[..extensions_at], &tagged(0xa0, &extensions)].concat());
    tagged(0x30, &[&signed, behind].concat())
}

/// The list without its nextUpdate, which stands behind version, algorithm, issuer and thisUpdate.
fn without_next_update(list: &[u8]) -> Vec<u8> {
    let (whole, _) = inner(list);
    let (signed, behind) = inner(whole);
    let mut rest = signed;
    for _ in 0..4 {
        (_, rest) = inner(rest);
    }
    let (_, behind_next) = inner(rest);
    let signed = tagged(0x30, &[&signed[..signed.len() - rest.len()], behind_next].concat());
    tagged(0x30, &[&signed, behind].concat())
}

/// Content of the first value, and what follows it.
fn inner(der: &[u8]) -> (&[u8], &[u8]) {
    let (head, length) = match der[1] {
        0x81 => (3, usize::from(der[2])),
        0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
        short => (2, usize::from(short)),
    };
    (&der[head..head + length], &der[head + length..])
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [&head[..], content].concat()
}
