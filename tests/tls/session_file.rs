//! Sessions as OpenSSL keeps them in files, and visits by them.
//!
//! It owns the little of DER (X.690) that is needed to look at a ticket and to change it. It must never
//! accept what it does not know.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::world::{House, run, text};

/// Tags of a session file (OpenSSL's `SSL_SESSION_ASN1`): a sequence, and in it `ticket [10] EXPLICIT OCTET
/// STRING`.
const SEQUENCE: u8 = 0x30;
const OCTETS: u8 = 0x04;
const TICKET: u8 = 0xaa;

/// What a visit comes with and what it keeps: names of files of the house.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sessions<'a> {
    pub(crate) given: Option<&'a str>,
    pub(crate) kept: Option<&'a str>,
}

/// Asks for `/a` by openssl, in this version (`-tls1_3`). Whether a session was resumed.
#[track_caller]
pub(crate) fn visit(house: &House, address: SocketAddr, version: &str, sessions: Sessions<'_>) -> bool {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address.to_string(), "-servername", "localhost", version]);
    command.args(["-ign_eof", "-verify_return_error", "-CAfile"]).arg(house.path("ca.pem"));
    for (flag, name) in [("-sess_in", sessions.given), ("-sess_out", sessions.kept)] {
        command.args(name.map(|name| [flag.into(), house.path(name).into_os_string()]).into_iter().flatten());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("openssl starts");
    let mut typed = child.stdin.take().expect("a pipe");
    typed.write_all(b"GET /a HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("it reads");
    let output = child.wait_with_output().expect("openssl ends");
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("HTTP/1.1 200 OK"), "{said}");
    let (is_resumed, is_full) = (said.contains("\nReused, TLSv1."), said.contains("\nNew, TLSv1."));
    assert!(is_resumed != is_full, "{said}");
    is_resumed
}

/// The ticket in a file of a session.
pub(crate) fn ticket(house: &House, name: &str) -> Vec<u8> {
    let session = read(&house.path(name));
    let mut found = None;
    with_ticket(&session, |ticket| {
        found = Some(ticket.to_vec());
        ticket.to_vec()
    });
    found.expect("the session has a ticket")
}

/// Writes the session of one file to another, with a changed ticket.
pub(crate) fn change_ticket(house: &House, from: &str, to: &str, change: impl FnMut(&[u8]) -> Vec<u8>) {
    let der = house.path("session.der");
    fs::write(&der, with_ticket(&read(&house.path(from)), change)).expect("a file");
    let mut command = Command::new("openssl");
    command.args(["sess_id", "-inform", "DER", "-in"]).arg(&der).arg("-out").arg(house.path(to));
    text(run(&mut command));
}

fn read(file: &Path) -> Vec<u8> {
    let output = run(Command::new("openssl").args(["sess_id", "-outform", "DER", "-in"]).arg(file));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn with_ticket(session: &[u8], mut change: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let [(SEQUENCE, fields)] = elements(session)[..] else { panic!("a session is one sequence") };
    let mut changed = Vec::new();
    for (tag, content) in elements(fields) {
        if tag == TICKET {
            let [(OCTETS, ticket)] = elements(content)[..] else { panic!("a ticket is a string of bytes") };
            changed.extend(element(TICKET, &element(OCTETS, &change(ticket))));
        } else {
            changed.extend(element(tag, content));
        }
    }
    element(SEQUENCE, &changed)
}

/// Tags and contents, one after the other.
fn elements(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    while let [tag, first, rest @ ..] = bytes {
        let (length, rest) = match *first {
            short @ ..=0x7f => (usize::from(short), rest),
            0x81 => (usize::from(rest[0]), &rest[1..]),
            0x82 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
            long => panic!("a length of {long:#x}"),
        };
        found.push((*tag, &rest[..length]));
        bytes = &rest[length..];
    }
    found
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("sessions are short").to_be_bytes();
    let head = match (high, low) {
        (0, ..=0x7f) => vec![tag, low],
        (0, _) => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [&head, content].concat()
}
