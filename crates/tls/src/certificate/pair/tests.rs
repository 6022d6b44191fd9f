//! Pairs that are good, and each fault with its sentence. Row 10 of the hostile inputs.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};

use super::*;

/// 2026-11-18; the certificates below are valid from 2026-01-01 until 2027-01-01.
const NOW: u64 = 1_795_000_000;
const YEAR_BEGINS: u64 = 1_767_225_600;
const YEAR_ENDS: u64 = 1_798_761_600;

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    params
}

/// A server's certificate, that of the authority between, the root's, and the server's key.
struct Chain {
    server: String,
    between: String,
    root: String,
    key: String,
}

fn chain() -> Chain {
    let authority = |name: &str| {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let key = || KeyPair::generate().expect("a key");
    let (root_params, root_key) = (authority("root"), key());
    let root = root_params.self_signed(&root_key).expect("a root");
    let root_issuer = Issuer::from_params(&root_params, &root_key);
    let (between_params, between_key) = (authority("between"), key());
    let between = between_params.signed_by(&between_key, &root_issuer).expect("signed");
    let between_issuer = Issuer::from_params(&between_params, &between_key);
    let server_key = key();
    let names = ["Example.org", "*.example.org", "192.0.2.7", "2001:db8::7"];
    let server = params("server", &names).signed_by(&server_key, &between_issuer).expect("signed");
    Chain {
        server: pem("CERTIFICATE", server.der()),
        between: pem("CERTIFICATE", between.der()),
        root: pem("CERTIFICATE", root.der()),
        key: pem("PRIVATE KEY", server_key.serialized_der()),
    }
}

fn read(certificates: &[&str], key: &str) -> Result<CertificatePair, PairFault> {
    CertificatePair::read(certificates.concat().as_bytes(), key.as_bytes())
}

fn fault(certificates: &[&str], key: &str) -> String {
    match read(certificates, key) {
        Ok(_) => panic!("it must be refused"),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn good_pairs_are_read() {
    let Chain { server, between, root, key } = chain();
    for certificates in [&[&server[..]][..], &[&server, &between], &[&server, &between, &root]] {
        let pair = read(certificates, &key).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(pair.names(), ["example.org", "*.example.org"]);
        assert_eq!(pair.addresses().len(), 2);
        assert_eq!(pair.validity_unix_s(), (YEAR_BEGINS, YEAR_ENDS));
    }
    let both = format!("{key}{server}{between}");
    assert!(read(&[&both], &both).is_ok(), "chain and key in one file");
}

#[test]
fn names_are_covered_exactly_or_by_one_label() {
    let Chain { server, key, .. } = chain();
    let pair = read(&[&server], &key).unwrap_or_else(|fault| panic!("{fault}"));
    for name in ["example.org", "EXAMPLE.ORG.", "www.example.org", "192.0.2.7", "2001:db8:0::7"] {
        assert!(pair.covers(name), "{name}");
    }
    for name in ["a.b.example.org", ".example.org", "org", "example.com", "192.0.2.8", "", "xexample.org"] {
        assert!(!pair.covers(name), "{name}");
    }
}

#[test]
fn row_10_dates_and_names_are_judged_by_the_time_given() {
    let Chain { server, key, .. } = chain();
    let pair = read(&[&server], &key).unwrap_or_else(|fault| panic!("{fault}"));
    let sentence = |now, name| pair.check(now, &[name]).map_err(|fault| fault.to_string());
    for now in [YEAR_BEGINS, NOW, YEAR_ENDS] {
        assert_eq!(sentence(now, "example.org"), Ok(()));
    }
    let said: &[(u64, &str, &str)] = &[
        (YEAR_ENDS + 1, "example.org", "the certificate expired less than an hour ago"),
        (YEAR_ENDS + 3 * 86_400, "example.org", "the certificate expired 3 days ago"),
        (YEAR_BEGINS - 5 * 3_600, "example.org", "the certificate is not valid before 5 hours from now"),
        (
            NOW,
            "example.com",
            "the certificate is not for `example.com`; \
             it is for example.org, *.example.org, 192.0.2.7, 2001:db8::7",
        ),
    ];
    for (now, name, expected) in said {
        assert_eq!(sentence(*now, name), Err((*expected).to_owned()));
    }
}

#[test]
fn row_10_faulty_pairs_are_refused_whole() {
    let Chain { server, between, root, key } = chain();
    let other = chain();
    let cut = &server[..server.len() / 2];
    let damaged = pem("CERTIFICATE", b"no certificate");
    let key_damaged = pem("PRIVATE KEY", b"no key");
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let old_encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                         DEK-Info: AES-128-CBC,00\n\n\
                         AAAA\n\
                         -----END RSA PRIVATE KEY-----\n";
    let many = server.repeat(CHAIN_CERTIFICATES_MAX + 1);
    let faults: &[(&[&str], &str, &str)] = &[
        (&[&server], &other.key, "the key does not match the certificate"),
        (&[&between, &root], &key, "the key does not match the certificate"),
        (&[&server], &encrypted, "the key is encrypted"),
        (&[&server], old_encrypted, "the key is encrypted"),
        (&[""], &key, "no certificate (`BEGIN CERTIFICATE`) in the file"),
        (&[&key], &key, "no certificate (`BEGIN CERTIFICATE`) in the file"),
        (&[&server], "", "no private key (`BEGIN PRIVATE KEY`) in the file"),
        (&[&server], &server, "no private key (`BEGIN PRIVATE KEY`) in the file"),
        (&[&server, cut], &key, "the chain is no PEM, or is cut"),
        (&[&server], &key[..key.len() / 2], "the key is no PEM, or is cut"),
        (&[&server, &damaged], &key, "certificate 2 of the chain cannot be read"),
        (&[&server], &key_damaged, "the key is damaged"),
        (&[&many], &key, "17 certificates; a chain has at most 16"),
    ];
    for (certificates, key, expected) in faults {
        let said = fault(certificates, key);
        assert!(said.contains(expected), "`{said}` where `{expected}` is expected");
    }
    let long = " ".repeat(PEM_BYTES_MAX + 1);
    assert_eq!(fault(&[&long], &key), "the file is longer than 1 MiB");
}

/// What clients and other servers take is taken: put in order, without what does not belong to it, and said.
#[test]
fn chains_are_put_in_order_and_what_is_not_needed_is_dropped() {
    let Chain { server, between, root, key } = chain();
    let stranger = chain().server;
    let table: &[(&[&str], &[&str], &[&str])] = &[
        (&[&server, &between, &root], &[&server, &between, &root], &[]),
        (&[&between, &server], &[&server, &between], &["the chain is out of order: it is sent as 2, 1"]),
        (&[&root, &between, &server], &[&server, &between, &root], &["it is sent as 3, 2, 1"]),
        (&[&server, &root, &between], &[&server, &between, &root], &["it is sent as 1, 3, 2"]),
        (&[&server, &between, &server], &[&server, &between], &["certificate 3 stands there twice"]),
        (&[&server, &between, &between], &[&server, &between], &["certificate 3 stands there twice"]),
        (&[&server, &root], &[&server], &["certificate 2 belongs to none of the others: it is not sent"]),
        (&[&server, &stranger, &between], &[&server, &between], &["certificate 2 belongs to none"]),
    ];
    for (given, expected, notes) in table {
        let pair = read(given, &key).unwrap_or_else(|fault| panic!("{fault}"));
        let sent: Vec<String> = pair.key.cert.iter().map(|der| pem("CERTIFICATE", der)).collect();
        assert_eq!(sent, *expected);
        assert_eq!(pair.notes().len(), notes.len(), "{:?}", pair.notes());
        for (said, expected) in pair.notes().iter().zip(*notes) {
            assert!(said.contains(expected), "`{said}` where `{expected}` is expected");
        }
    }
}

/// Two certificates of one authority, signed by two roots: a client may know either.
#[test]
fn both_ways_to_a_root_are_sent() {
    let authority = |name: &str| {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let key = || KeyPair::generate().expect("a key");
    let (between_params, between_key) = (authority("between"), key());
    let by = |root: &str| {
        let issuer = Issuer::new(authority(root), key());
        pem("CERTIFICATE", between_params.signed_by(&between_key, &issuer).expect("signed").der())
    };
    let (one, other) = (by("an old root"), by("a new root"));
    let server_key = key();
    let issuer = Issuer::from_params(&between_params, &between_key);
    let server = params("server", &["a.example"]).signed_by(&server_key, &issuer).expect("signed");
    let server = pem("CERTIFICATE", server.der());
    let pair = read(&[&server, &one, &other], &pem("PRIVATE KEY", server_key.serialized_der()));
    let pair = pair.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((pair.key.cert.len(), pair.notes()), (3, &[][..]));
}

/// An issuer is the subject of another certificate whatever its text is encoded as (RFC 5280, section 7.1).
#[test]
fn names_are_compared_as_names() {
    use rcgen::DnValue;
    let named = |value: DnValue| {
        let mut params = params("", &[]);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, value);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let (authority_key, server_key) =
        (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let printable = DnValue::PrintableString("Example  Inc".try_into().expect("printable"));
    let as_written = named(printable).self_signed(&authority_key).expect("signed");
    for (name, is_same) in [("example inc", true), (" EXAMPLE INC ", true), ("example ink", false)] {
        let authority = named(DnValue::Utf8String(name.to_owned()));
        let issuer = Issuer::from_params(&authority, &authority_key);
        let server = params("server", &["a.example"]).signed_by(&server_key, &issuer).expect("signed");
        let chain = [pem("CERTIFICATE", server.der()), pem("CERTIFICATE", as_written.der())].concat();
        let pair = read(&[&chain], &pem("PRIVATE KEY", server_key.serialized_der()));
        let pair = pair.unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(pair.notes().is_empty(), is_same, "{name}: {:?}", pair.notes());
    }
}

/// Forms that OpenSSL knows too: older labels, what a certificate is trusted for, a mark in front of the
/// text.
#[test]
fn older_forms_of_text_are_read() {
    let Chain { server, between, key, .. } = chain();
    let older = |label: &str| server.replace("CERTIFICATE", label);
    let trusted = {
        let body: String = server.lines().filter(|line| !line.starts_with('-')).collect();
        let mut der = STANDARD.decode(body).expect("base64");
        // SEQUENCE { UTF8String "alias" }
        der.extend_from_slice(b"\x30\x07\x0c\x05alias");
        pem("TRUSTED CERTIFICATE", &der)
    };
    for server in [older("X509 CERTIFICATE"), trusted, format!("\u{feff}{server}")] {
        let pair = read(&[&server, &between], &format!("\u{feff}{key}"));
        assert_eq!(pair.unwrap_or_else(|fault| panic!("{fault}\n{server}")).key.cert.len(), 2);
    }
}

/// A key that cannot be used is told by its kind.
#[test]
fn keys_that_are_not_spoken_are_named() {
    let Chain { server, .. } = chain();
    let key = |algorithm: &[u8]| {
        let mut der = vec![0x30, 9 + algorithm.len() as u8, 2, 1, 0, 0x30, algorithm.len() as u8];
        der.extend_from_slice(algorithm);
        der.extend_from_slice(&[4, 2, 5, 0]);
        pem("PRIVATE KEY", &der)
    };
    let ecdsa = [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x23];
    let rsa = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        STANDARD.encode(vec![0x30; RSA_KEY_BYTES_MAX + 1])
    );
    for (key, expected) in [
        (key(&ecdsa), "the key is ECDSA with P-521, which is not spoken"),
        (key(&[6, 3, 0x2b, 0x65, 0x71]), "the key is Ed448, which is not spoken"),
        (rsa, "the key is RSA with more bits, which is not spoken"),
    ] {
        let said = fault(&[&server], &key);
        assert!(said.contains(expected), "`{said}` where `{expected}` is expected");
    }
}
