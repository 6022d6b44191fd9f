//! The record layer of an open connection, and its cipher alone: for counting instructions.
//!
//! The cases open records of so many bytes of content (`open`), seal them (`seal`), or do with ring alone
//! what these ask of the cipher (`open-cipher`, `seal-cipher`): the difference is what the record layer adds.
//! Callgrind knows the functions by their names. They must never ask the time. Order: shake hands, make what
//! is to be opened, count.

use std::hint::black_box;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use staunch_tls::{
    Awake, CertificatePair, CertificateStore, Handshake, HandshakeProgress, LocalAuthority, Tickets,
    TlsContext, WallTime,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Of the content of an answer so much stands apart, as its head.
const HEAD_BYTES: usize = 200;
/// What a record adds to its content in the cipher: the content's type. Beside it stands the record's head.
const TYPE_BYTES: usize = 1;
const BESIDE: [u8; 5] = [23, 3, 3, 0, 0];

/// Opens or seals so many records.
pub(crate) fn run(case: &str, bytes: usize, count: usize) -> Result<()> {
    if !(HEAD_BYTES..=16_384).contains(&bytes) {
        return Err("BYTES are 200 to 16384".into());
    }
    count_case(case, &vec![b'c'; bytes], count)
}

fn count_case(case: &str, content: &[u8], count: usize) -> Result<()> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_| "no key")?);
    let done = match case {
        "open" => {
            let (mut awake, mut client) = connection()?;
            open_records(&mut awake, &mut requests(&mut client, content, count)?)
        }
        "seal" => seal_answers(&mut connection()?.0, content, count),
        "open-cipher" => open_alone(&key, &mut sealed(&key, content, count)?),
        "seal-cipher" => seal_alone(&key, content, count),
        _ => return Err("there is no such case".into()),
    };
    if done == count { Ok(()) } else { Err(format!("{done} of {count}").into()) }
}

/// Opens each of the records, which came one at a time.
#[inline(never)]
fn open_records(awake: &mut Awake, records: &mut [Vec<u8>]) -> usize {
    let mut output = Vec::new();
    let mut opened = 0;
    for record in records {
        let place = awake.open(black_box(record), &mut output);
        opened += usize::from(place.is_ok_and(|place| place.taken == record.len()));
    }
    opened
}

/// Seals an answer so often, into memory that is used again.
#[inline(never)]
fn seal_answers(awake: &mut Awake, content: &[u8], count: usize) -> usize {
    let mut output = Vec::new();
    let (head, body) = content.split_at(HEAD_BYTES);
    let mut sealed = 0;
    for _ in 0..count {
        output.clear();
        sealed += usize::from(awake.seal(black_box(&[head, body]), &mut output).is_ok());
        black_box(&output);
    }
    sealed
}

/// What the cipher does of `open_records`.
#[inline(never)]
fn open_alone(key: &LessSafeKey, records: &mut [Vec<u8>]) -> usize {
    let mut opened = 0;
    for (number, record) in records.iter_mut().enumerate() {
        opened += usize::from(key.open_in_place(nonce(number), Aad::from(BESIDE), black_box(record)).is_ok());
    }
    opened
}

/// What the cipher does of `seal_answers`.
#[inline(never)]
fn seal_alone(key: &LessSafeKey, content: &[u8], count: usize) -> usize {
    let mut content = vec![b'c'; content.len() + TYPE_BYTES];
    let mut sealed = 0;
    for number in 0..count {
        let tag = key.seal_in_place_separate_tag(nonce(number), Aad::from(BESIDE), black_box(&mut content));
        sealed += usize::from(black_box(tag).is_ok());
    }
    sealed
}

fn nonce(number: usize) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Contents of requests, sealed.
fn sealed(key: &LessSafeKey, content: &[u8], count: usize) -> Result<Vec<Vec<u8>>> {
    let seal = |number| {
        let mut record = vec![b'c'; content.len() + TYPE_BYTES];
        let sealed = key.seal_in_place_append_tag(nonce(number), Aad::from(BESIDE), &mut record);
        sealed.map_err(|_| "sealing failed".into()).map(|()| record)
    };
    (0..count).map(seal).collect()
}

/// Records as a client sends them, one a request.
fn requests(client: &mut ClientConnection, content: &[u8], count: usize) -> Result<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    for _ in 0..count {
        client.writer().write_all(content)?;
        let mut record = Vec::new();
        client.write_tls(&mut record)?;
        records.push(record);
    }
    Ok(records)
}

/// Both ends of a connection whose handshake is over, with AES-128-GCM.
fn connection() -> Result<(Awake, ClientConnection)> {
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let authority = LocalAuthority::create(now_unix_s)?;
    let issued = authority.issue(&["localhost"], now_unix_s)?;
    let pair = CertificatePair::read(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes())?;
    let store = Arc::new(CertificateStore::new(&[Arc::new(pair)], false));
    let time = Arc::new(WallTime::new(now_unix_s));
    let tickets = Arc::new(Tickets::new(Arc::clone(&time))?);
    let context = Arc::new(TlsContext::new(store, tickets, time, &[b"http/1.1"]));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes())?)?;
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites = vec![rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut client = ClientConnection::new(Arc::new(config), "localhost".try_into()?)?;
    let mut server = Handshake::new(context, None);
    loop {
        let (mut bytes, mut answers) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut bytes)?;
        }
        let (taken, progress) = server.feed(&bytes, &mut answers);
        let progress = progress?;
        client.read_tls(&mut &answers[..])?;
        client.process_new_packets()?;
        if progress == HandshakeProgress::Pending {
            continue;
        }
        if taken < bytes.len() {
            return Err("the client said more than its part of the handshake".into());
        }
        return Ok((server.finish()?.0, client));
    }
}
