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
    let many = server.repeat(CHAIN_CERTIFICATES_MAX + 1);
    let faults: &[(&[&str], &str, &str)] = &[
        (&[&server], &other.key, "the key does not match the certificate"),
        (&[&server, &root], &key, "certificate 1 is not signed by certificate 2"),
        (&[&server, &between, &server], &key, "certificate 2 is not signed by certificate 3"),
        (&[&between, &server], &key, "the server's own certificate must come first"),
        (&[&root, &between, &server], &key, "the server's own certificate must come first"),
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
