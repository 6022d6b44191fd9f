//! The look at a ClientHello, with the reader of rustls as the oracle.
use std::sync::Arc;

use proptest::prelude::*;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

/// What a client of rustls says first.
fn hello_of(name: &str, protocols: &[&[u8]]) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .expect("both versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
    let name = name.to_owned().try_into().expect("a name or an address");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("memory");
    bytes
}

/// The message of a record, in records of `size` bytes.
fn in_records(record: &[u8], size: usize) -> Vec<u8> {
    let length = |piece: &[u8]| u16::try_from(piece.len()).expect("short").to_be_bytes();
    let records = record[RECORD_HEAD_BYTES..].chunks(size);
    records.flat_map(|piece| [&[22, 3, 1], &length(piece)[..], piece].concat()).collect()
}

/// A ClientHello of TLS 1.2 with these extensions.
fn with_extensions(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).expect("short").to_be_bytes().to_vec();
    let mut list = Vec::new();
    for (kind, value) in extensions {
        list.extend([&kind.to_be_bytes()[..], &length(value), value].concat());
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    body.extend([length(&list), list].concat());
    let message = [&[1, 0][..], &length(&body), &body].concat();
    [&[22, 3, 1][..], &length(&message), &message].concat()
}

fn name_list(name: &[u8]) -> Vec<u8> {
    let length = |count: usize| u16::try_from(count).expect("short").to_be_bytes();
    [&length(name.len() + 3)[..], &[0], &length(name.len()), name].concat()
}

fn refused(bytes: &[u8]) -> Fault {
    peek(bytes, &mut Vec::new()).expect_err("it must be refused")
}

fn alert(bytes: &[u8]) -> Alert {
    refused(bytes).alert().expect("an alert")
}

#[test]
fn a_client_of_rustls_is_read() {
    let bytes = hello_of("www.example.org", &[b"h2", b"http/1.1"]);
    let mut joined = Vec::new();
    let hello = peek(&bytes, &mut joined).expect("good").expect("whole");
    assert_eq!(hello.server_name, Some("www.example.org"));
    assert_eq!(hello.protocols().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
    assert!(hello.offers_tls13 && hello.ticket.is_none() && !hello.has_early_data);
}

#[test]
fn a_hello_is_waited_for_at_every_byte_and_in_any_records() {
    let bytes = hello_of("www.example.org", &[b"h2"]);
    for cut in 0..bytes.len() {
        assert_eq!(peek(&bytes[..cut], &mut Vec::new()), Ok(None), "cut at {cut}");
    }
    for size in [1, 3, 64] {
        let split = in_records(&bytes, size);
        let mut joined = Vec::new();
        let hello = peek(&split, &mut joined).expect("good").expect("whole");
        assert_eq!(hello.server_name, Some("www.example.org"), "records of {size}");
        assert_eq!(peek(&split[..split.len() - 1], &mut Vec::new()), Ok(None));
    }
}

#[test]
fn row_01_what_is_no_tls_is_refused_by_its_first_bytes() {
    for request in [&b"GET / HTTP/1.1\r\n"[..], b"P", b"PRI * HTTP/2.0"] {
        assert_eq!(refused(request), Fault::PlainHttp);
    }
    for garbage in [&b"\0"[..], b"\x15\x03\x01\0\x02\x01\0", b"\x17\x03\x03", b"get", b"\x05\x01\0"] {
        assert_eq!(alert(garbage), Alert::UnexpectedMessage, "{garbage:?}");
    }
    assert_eq!(alert(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), Alert::UnexpectedMessage, "a ServerHello");
}

#[test]
fn row_02_old_versions_are_refused() {
    assert_eq!(alert(&[0x80, 0x2e, 1, 0, 2]), Alert::ProtocolVersion, "SSL 2");
    assert_eq!(alert(&[22, 2]), Alert::ProtocolVersion);
    let versions: &[(&[u8], bool)] = &[
        (&[2, 3, 2], false),
        (&[4, 3, 1, 3, 0], false),
        (&[2, 3, 3], true),
        (&[4, 3, 2, 3, 4], true),
        (&[0], false),
    ];
    for (list, is_spoken) in versions {
        let bytes = with_extensions(&[(43, list), (10, b""), (13, b""), (51, b"")]);
        match peek(&bytes, &mut Vec::new()) {
            Ok(hello) => assert!(*is_spoken && hello.is_some(), "{list:?}"),
            Err(fault) => assert!(!is_spoken && fault.alert() == Some(Alert::ProtocolVersion), "{list:?}"),
        }
    }
    let mut old = with_extensions(&[]);
    old[RECORD_HEAD_BYTES + 5] = 2;
    assert_eq!(alert(&old), Alert::ProtocolVersion, "TLS 1.1 by its legacy version");
    let mut oldest = with_extensions(&[(43, &[2, 3, 3])]);
    oldest[RECORD_HEAD_BYTES + 5] = 0;
    assert_eq!(alert(&oldest), Alert::ProtocolVersion, "SSL 3 by its legacy version, whatever it offers");
}

#[test]
fn row_02_tls13_has_what_its_keys_are_made_of() {
    const VERSIONS: (u16, &[u8]) = (43, &[2, 3, 4]);
    let ticket = [&[0, 8, 0, 2][..], b"id", &[0; 4], &[0, 33, 32], &[0; 32]].concat();
    let all: [(u16, &[u8]); 5] = [VERSIONS, (10, b""), (13, b""), (51, b""), (41, &ticket)];
    let told = |numbers: &[u16]| {
        let extensions: Vec<_> = all.iter().filter(|(number, _)| numbers.contains(number)).copied().collect();
        peek(&with_extensions(&extensions), &mut Vec::new()).err().and_then(Fault::alert)
    };
    for good in [&[43, 10, 13, 51][..], &[43, 10, 13, 51, 41], &[43, 41], &[43, 10, 51, 41], &[13]] {
        assert_eq!(told(good), None, "{good:?}");
    }
    for bad in [&[43][..], &[43, 10, 13], &[43, 13, 51], &[43, 10, 51], &[43, 10, 13, 41], &[43, 51, 41]] {
        assert_eq!(told(bad), Some(Alert::MissingExtension), "{bad:?}");
    }
}

#[test]
fn row_04_what_is_too_long_is_refused_by_its_length() {
    assert_eq!(alert(&[22, 3, 1, 0x40, 1]), Alert::RecordOverflow);
    assert_eq!(alert(&[22, 3, 1, 0x40, 0, 1, 0, 0x40, 1]), Alert::DecodeError, "a hello of more than 16 KiB");
    assert_eq!(alert(&[22, 3, 1, 0, 0]), Alert::DecodeError, "an empty record");
    let many = |count: u16| -> Vec<u8> {
        let extensions: Vec<(u16, &[u8])> = (0..count).map(|place| (0x5000 + place, &b""[..])).collect();
        with_extensions(&extensions)
    };
    assert!(peek(&many(64), &mut Vec::new()).is_ok());
    assert_eq!(alert(&many(65)), Alert::DecodeError);
    assert_eq!(alert(&many(1_000)), Alert::DecodeError);
}

#[test]
fn row_09_names_are_read_or_refused() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    let good: &[(&str, Option<&str>)] = &[
        ("example.org", Some("example.org")),
        ("EXAMPLE.org.", Some("EXAMPLE.org")),
        ("a_b-c.example", Some("a_b-c.example")),
        (&longest, Some(&longest)),
        ("192.0.2.1", None),
        ("2001:db8::1", None),
    ];
    for (name, expected) in good {
        let list = name_list(name.as_bytes());
        let bytes = with_extensions(&[(0, &list)]);
        let mut joined = Vec::new();
        let hello = peek(&bytes, &mut joined).expect("good").expect("whole");
        assert_eq!(hello.server_name, *expected, "{name}");
    }
    let long = "x.".repeat(150);
    for name in
        [&long[..], &"a".repeat(64), "", ".", "a..b", "a b", "a/b", "a\0b", "\u{e9}.org", "*.example.org"]
    {
        let list = name_list(name.as_bytes());
        assert_eq!(alert(&with_extensions(&[(0, &list)])), Alert::IllegalParameter, "{name:?}");
    }
}

#[test]
fn extensions_that_are_faulty_are_refused() {
    type Extension<'a> = (u16, &'a [u8]);
    let faulty: &[(&[Extension<'_>], Alert)] = &[
        (&[(0, b"\0\x05\0")], Alert::DecodeError),
        (&[(16, b"\0\0")], Alert::DecodeError),
        (&[(16, b"\0\x01\0")], Alert::DecodeError),
        (&[(41, b"\0\x01\0")], Alert::DecodeError),
        (&[(9, b""), (9, b"")], Alert::IllegalParameter),
    ];
    for (extensions, expected) in faulty {
        assert_eq!(alert(&with_extensions(extensions)), *expected, "{extensions:?}");
    }
}

#[test]
fn tickets_of_both_versions_are_found() {
    let ticket = |extensions: &[(u16, &[u8])]| {
        let bytes = with_extensions(extensions);
        peek(&bytes, &mut Vec::new()).expect("good").expect("whole").ticket.map(<[u8]>::to_vec)
    };
    assert_eq!(ticket(&[(35, b"")]), None);
    assert_eq!(ticket(&[(35, b"old")]).as_deref(), Some(&b"old"[..]));
    let identities = b"\0\x0a\0\x03new\0\0\0\0\xff";
    assert_eq!(ticket(&[(35, b"old"), (41, identities)]).as_deref(), Some(&b"new"[..]));
}

/// What rustls reads: name and protocols, or nothing if it refuses.
fn rustls_reads(mut bytes: &[u8]) -> Option<(Option<String>, Vec<Vec<u8>>)> {
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut bytes).ok()?;
    let accepted = acceptor.accept().ok()??;
    let hello = accepted.client_hello();
    let protocols = hello.alpn().into_iter().flatten().map(<[u8]>::to_vec).collect();
    Some((hello.server_name().map(str::to_owned), protocols))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever is changed in a hello: if rustls reads it, we read the same, or had refused it.
    #[test]
    fn rustls_reads_the_same(
        changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4),
        name in "[a-z]{1,9}\\.[a-z]{2,5}",
    ) {
        let mut bytes = hello_of(&name, &[b"h2", b"http/1.1"]);
        let is_changed = !changes.is_empty();
        for (place, value) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = value;
        }
        let mut joined = Vec::new();
        let ours = peek(&bytes, &mut joined);
        if let Some((name, protocols)) = rustls_reads(&bytes)
            && let Ok(Some(hello)) = ours
        {
            // rustls gives names in small letters, and keeps a dot at their end.
            let name = name.map(|name| name.trim_end_matches('.').to_owned());
            prop_assert_eq!(hello.server_name.map(str::to_ascii_lowercase), name);
            prop_assert_eq!(hello.protocols().map(<[u8]>::to_vec).collect::<Vec<_>>(), protocols);
        }
        prop_assert!(is_changed || matches!(ours, Ok(Some(_))));
    }

    #[test]
    fn garbage_is_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        is_handshake in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if is_handshake && bytes.len() > 6 {
            bytes[..6].copy_from_slice(&[22, 3, 1, 0, 150, 1]);
        }
        let _ = peek(&bytes, &mut Vec::new());
    }
}
