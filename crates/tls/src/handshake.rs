//! A handshake at work: bytes of the peer in, answers out, and at its end an open connection.
//!
//! It owns the bound of what a peer may make us keep. rustls does the work; it is given one record at a time,
//! so that it never sees what follows the handshake. It must never go on after a fault. Order of calls:
//! [`Handshake::feed`] until it says [`HandshakeProgress::Done`], then [`Handshake::finish`].
mod found;

use std::net::IpAddr;
use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ConnectionTrafficSecrets, HandshakeKind, NamedGroup};
use zeroize::Zeroize;

use crate::alert::{Alert, Fault};
use crate::awake::{Awake, content};
use crate::challenge::ACME_TLS;
use crate::client::{Asking, ClientIdentity, Proof};
use crate::configs::HTTP2;
use crate::context::TlsContext;
use crate::direction::Direction;
use crate::facts::{self, HandshakeFacts};
use crate::hello::{self, ClientHello};
use crate::limits::{
    EXPANSION_13_BYTES_MAX, HANDSHAKE_BYTES_MAX, HANDSHAKE_HELD_BYTES, HELLO_RECORDS_MAX, RECORD_HEAD_BYTES,
    RECORD_PLAIN_BYTES_MAX, SECRET_BYTES_MAX,
};
use crate::secret::Secret;
use crate::suite::Suite;
use found::{NO_CERTIFICATE, fault_of};

/// A connection whose handshake is not over. It is large; whoever has many keeps them boxed and few.
pub struct Handshake {
    context: Arc<TlsContext>,
    /// Made once the ClientHello was looked at.
    connection: Option<UnbufferedServerConnection>,
    /// Records that rustls is not done with, and the beginning of the next.
    received: Vec<u8>,
    /// Bytes of the record at the end of `received` that came so far.
    begun: usize,
    total: usize,
    hello_records: u32,
    facts: HandshakeFacts,
    server_name: Option<Box<str>>,
    /// What the client is asked for, if that is anything.
    asking: Option<Arc<Asking>>,
}

/// How far a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeProgress {
    /// More bytes of the peer are needed.
    Pending,
    /// The handshake is over: [`Handshake::finish`] gives the open connection.
    Done,
}

/// What a handshake agreed upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The name the client asked for, as [`ClientHello::server_name`].
    pub server_name: Option<Box<str>>,
    /// The protocol chosen: one of those offered, or that of an authority's check.
    pub protocol: Option<&'static [u8]>,
    /// Version and cipher.
    pub suite: Suite,
    /// The number of the suite (IANA, "TLS Cipher Suites").
    pub suite_number: u16,
    /// The number of the group of the key exchange (IANA, "TLS Supported Groups"); none if TLS 1.2 was
    /// resumed.
    pub group_number: Option<u16>,
    /// Whether a ticket took the place of certificate and signature.
    pub is_resumed: bool,
    /// The client's identity, if it was asked and has a certificate: shown now, or when its ticket was made.
    pub client: Option<Arc<ClientIdentity>>,
}

impl Agreed {
    /// Whether HTTP/2 is spoken from now on (RFC 9113, section 3.2).
    #[must_use]
    pub fn speaks_http2(&self) -> bool {
        self.protocol == Some(HTTP2)
    }

    /// Whether this was the check of an authority, after which nothing is spoken (RFC 8737).
    #[must_use]
    pub fn is_challenge(&self) -> bool {
        self.protocol == Some(ACME_TLS)
    }

    /// Whether the keys were exchanged by X25519MLKEM768.
    #[must_use]
    pub fn is_hybrid(&self) -> bool {
        self.group_number == Some(u16::from(NamedGroup::X25519MLKEM768))
    }
}

impl Handshake {
    /// A handshake of a client that connected to this address of ours, if that is known.
    #[must_use]
    pub fn new(context: Arc<TlsContext>, local: Option<IpAddr>) -> Self {
        Self {
            context,
            connection: None,
            received: Vec::new(),
            begun: 0,
            total: 0,
            hello_records: 0,
            facts: HandshakeFacts { local, ..HandshakeFacts::default() },
            server_name: None,
            asking: None,
        }
    }

    /// Takes bytes of the peer, as many as belong to the handshake, and says how many these were. Answers are
    /// appended to `output`, and are to be sent whatever the result is.
    ///
    /// # Errors
    /// The connection is to be closed after the output was sent.
    pub fn feed(&mut self, input: &[u8], output: &mut Vec<u8>) -> (usize, Result<HandshakeProgress, Fault>) {
        self.feed_asking(input, output, |_| Ok(()))
    }

    /// As [`Self::feed`]; `judge` sees the ClientHello before any key is touched, and may refuse it.
    ///
    /// # Errors
    /// As [`Self::feed`], and those of `judge`.
    pub fn feed_asking(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
        mut judge: impl FnMut(&ClientHello<'_>) -> Result<(), Fault>,
    ) -> (usize, Result<HandshakeProgress, Fault>) {
        let mut taken = 0;
        let result = loop {
            match self.record(input, &mut taken) {
                Ok(true) => {}
                Ok(false) => break Ok(HandshakeProgress::Pending),
                Err(fault) => break Err(self.refuse(fault, output)),
            }
            if self.connection.is_none() {
                match self.look(&mut judge) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(fault) => break Err(self.refuse(fault, output)),
                }
            }
            match self.work(output) {
                Ok(HandshakeProgress::Pending) => {}
                finished => break finished,
            }
        };
        (taken, result)
    }

    /// The open connection, and what was agreed upon. The memory of the handshake is given back.
    ///
    /// # Errors
    /// It is not over.
    pub fn finish(self) -> Result<(Awake, Agreed), Fault> {
        let Self { context, connection, facts, server_name, asking, .. } = self;
        let connection = connection.filter(|connection| !connection.is_handshaking()).ok_or(UNFINISHED)?;
        let number = connection.negotiated_cipher_suite().map_or(0, |suite| u16::from(suite.suite()));
        let suite = Suite::of(number).ok_or(UNFINISHED)?;
        let agreed = Agreed {
            server_name,
            protocol: match connection.alpn_protocol() {
                Some(ACME_TLS) => Some(ACME_TLS),
                name => name.and_then(|name| context.protocol(name)),
            },
            suite,
            suite_number: number,
            group_number: connection.negotiated_key_exchange_group().map(|group| u16::from(group.name())),
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            client: match (asking, connection.peer_certificates()) {
                (Some(asking), Some([certificate, ..])) => {
                    let until_unix_s = facts.verified_until_unix_s.ok_or(UNFINISHED)?;
                    let proof = Proof { authority: asking.authority, until_unix_s };
                    Some(ClientIdentity::of(certificate, asking.number, proof).ok_or(UNFINISHED)?.into())
                }
                _ => None,
            },
        };
        let (secrets, _) = connection.dangerous_into_kernel_connection().map_err(|_| UNFINISHED)?;
        let (sent, our_keys) = secrets.tx;
        let (received, peer_keys) = secrets.rx;
        let (ours, peers) = if suite.is_tls13() {
            (facts.server_secret, facts.client_secret)
        } else {
            (key_and_nonce(&our_keys), key_and_nonce(&peer_keys))
        };
        let writing = Direction::new(suite, ours.ok_or(UNFINISHED)?, sent);
        let reading = Direction::new(suite, peers.ok_or(UNFINISHED)?, received);
        debug_assert!(!suite.is_tls13() || writing.has_nonce_of(&key_and_nonce(&our_keys)));
        debug_assert!(!suite.is_tls13() || reading.has_nonce_of(&key_and_nonce(&peer_keys)));
        Ok((Awake::new(reading, writing), agreed))
    }

    /// Memory that it takes, in bytes: a little more than what rustls holds, which cannot be asked.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let connection = if self.connection.is_some() { HANDSHAKE_HELD_BYTES } else { 0 };
        size_of::<Self>() + self.received.capacity() + connection
    }

    /// Moves bytes of one record from the input. `false`: it is not whole yet.
    fn record(&mut self, input: &[u8], taken: &mut usize) -> Result<bool, Fault> {
        loop {
            let wanted = self.wanted()?;
            if wanted == 0 {
                self.begun = 0;
                return Ok(true);
            }
            let rest = &input[*taken..];
            let count = wanted.min(rest.len());
            if self.total + count > HANDSHAKE_BYTES_MAX {
                return Err(Fault::Refused(Alert::DecodeError, "a handshake of more than 64 KiB"));
            }
            self.received.extend_from_slice(&rest[..count]);
            self.begun += count;
            self.total += count;
            *taken += count;
            if count < wanted {
                // A head that is wrong already is refused now, as it would be in one piece with the rest.
                return self.wanted().map(|_| false);
            }
        }
    }

    /// How many bytes of the current record are missing: of its head, then of the whole.
    fn wanted(&self) -> Result<usize, Fault> {
        let record = &self.received[self.received.len() - self.begun..];
        if self.connection.is_none() && !record.is_empty() {
            hello::check_head(record)?;
        }
        let Some(head) = record.first_chunk::<RECORD_HEAD_BYTES>() else {
            return Ok(RECORD_HEAD_BYTES - record.len());
        };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if length > RECORD_PLAIN_BYTES_MAX + EXPANSION_13_BYTES_MAX {
            return Err(Fault::Refused(
                Alert::RecordOverflow,
                "a record with more than 2^14 bytes of content",
            ));
        }
        Ok(RECORD_HEAD_BYTES + length - record.len())
    }

    /// Looks at the ClientHello, and makes the connection of rustls if it may go on. `false`: it is not
    /// whole.
    fn look(&mut self, judge: &mut impl FnMut(&ClientHello<'_>) -> Result<(), Fault>) -> Result<bool, Fault> {
        self.hello_records += 1;
        if self.hello_records > HELLO_RECORDS_MAX {
            return Err(Fault::Refused(Alert::DecodeError, "a ClientHello in more than 256 records"));
        }
        let mut joined = Vec::new();
        let Some(hello) = hello::peek(&self.received, &mut joined)? else { return Ok(false) };
        judge(&hello)?;
        if self.context.challenges().answers(&hello) {
            self.connection = Some(self.context.challenged().map_err(|_| UNFINISHED)?);
            return Ok(true);
        }
        if let Some(name) = hello.server_name {
            if !self.context.certificates().has(name) {
                return Err(Fault::Refused(Alert::UnrecognizedName, "no certificate for the name asked for"));
            }
            self.server_name = Some(name.into());
        }
        self.asking = self.context.asking(hello.server_name);
        let connection = self.context.connection(hello.ticket.is_some(), self.asking.as_deref());
        self.connection = Some(connection.map_err(|_| UNFINISHED)?);
        Ok(true)
    }

    /// Lets rustls work on what came, and takes its answers.
    fn work(&mut self, output: &mut Vec<u8>) -> Result<HandshakeProgress, Fault> {
        let Some(connection) = &mut self.connection else { return Ok(HandshakeProgress::Pending) };
        let received = &mut self.received;
        let (result, was_told) = facts::during(&mut self.facts, || {
            let result = drive(connection, received, output);
            match result {
                // rustls would say `access_denied`. Nothing is sealed yet when a certificate is chosen.
                Err(NO_CERTIFICATE) => output.extend_from_slice(&Alert::HandshakeFailure.plain_record()),
                Err(_) => return (result, take_alert(connection, received, output)),
                Ok(_) => {}
            }
            (result, true)
        });
        if let (Err(Fault::Refused(alert, _)), false) = (result, was_told) {
            self.tell(alert, output);
        }
        result
    }

    /// Tells the peer of a fault for which rustls has no alert: in the clear, or sealed as the first record
    /// of the key that holds behind our Finished (RFC 8446, section 5).
    fn tell(&mut self, alert: Alert, output: &mut Vec<u8>) {
        let suite = self.connection.as_ref().and_then(|connection| connection.negotiated_cipher_suite());
        let suite = suite.and_then(|suite| Suite::of(u16::from(suite.suite())));
        let Some((suite, secret)) = suite.zip(self.facts.server_secret.take()) else {
            return output.extend_from_slice(&alert.plain_record());
        };
        let mut writing = Direction::new(suite, secret, 0);
        let start = writing.begin(content::ALERT, alert.bytes().len(), output);
        output.extend_from_slice(&alert.bytes());
        // A key that is new has records left.
        let _ = writing.seal(content::ALERT, start, output);
    }

    /// Answers a fault that was found before rustls was asked.
    fn refuse(&self, fault: Fault, output: &mut Vec<u8>) -> Fault {
        if let Some(alert) = fault.alert() {
            output.extend_from_slice(&alert.plain_record());
        }
        fault
    }
}

const UNFINISHED: Fault = Fault::Refused(Alert::InternalError, "the handshake is not over");

/// Steps through what rustls wants until it needs more bytes or is done.
fn drive(
    connection: &mut UnbufferedServerConnection,
    received: &mut Vec<u8>,
    output: &mut Vec<u8>,
) -> Result<HandshakeProgress, Fault> {
    loop {
        let UnbufferedStatus { discard, state } = connection.process_tls_records(received);
        let step = match state {
            Err(error) => Some(Err(fault_of(&error))),
            Ok(ConnectionState::EncodeTlsData(mut answer)) => {
                append(output, |space| answer.encode(space));
                None
            }
            Ok(ConnectionState::TransmitTlsData(transmit)) => {
                transmit.done();
                None
            }
            Ok(ConnectionState::BlockedHandshake) => Some(Ok(HandshakeProgress::Pending)),
            Ok(ConnectionState::WriteTraffic(_)) => Some(Ok(HandshakeProgress::Done)),
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Some(Err(Fault::PeerAlert(0))),
            Ok(_) => Some(Err(Fault::Refused(Alert::UnexpectedMessage, "data before the handshake is over"))),
        };
        received.drain(..discard);
        match step {
            None => {}
            Some(Ok(HandshakeProgress::Done)) if !received.is_empty() => {
                return Err(Fault::Refused(
                    Alert::UnexpectedMessage,
                    "a message behind the end of the handshake",
                ));
            }
            Some(result) => return result,
        }
    }
}

/// Takes what rustls has to say of a fault: answers that were ready before, and an alert, if it has one. It
/// is asked with the bytes that are left, for it remembers where messages stand in them; and not once more
/// behind the alert, for then it would read on. Whether there was one.
fn take_alert(
    connection: &mut UnbufferedServerConnection,
    received: &mut Vec<u8>,
    output: &mut Vec<u8>,
) -> bool {
    loop {
        let UnbufferedStatus { discard, state } = connection.process_tls_records(received);
        let Ok(ConnectionState::EncodeTlsData(mut answer)) = state else { return false };
        let start = output.len();
        append(output, |space| answer.encode(space));
        received.drain(..discard);
        if is_alert(&output[start..]) {
            return true;
        }
    }
}

/// Whether a record of rustls is an alert: by its type (RFC 8446, section 5.1), or sealed by TLS 1.3, where
/// no other is as short: two bytes, the type within, and a tag of 16.
fn is_alert(record: &[u8]) -> bool {
    matches!(record, [21, ..] | [23, _, _, 0, 19, ..])
}

/// Appends what `encode` writes once it has the space it asks for.
fn append(output: &mut Vec<u8>, mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) {
    let start = output.len();
    let mut length = 0;
    while let Err(EncodeError::InsufficientSize(size)) = encode(&mut output[start..]) {
        if size.required_size <= length {
            return;
        }
        length = size.required_size;
        output.resize(start + length, 0);
    }
}

/// Key and nonce as TLS 1.2 keeps them.
fn key_and_nonce(secrets: &ConnectionTrafficSecrets) -> Option<Secret> {
    let (key, nonce) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key.as_ref(), iv.as_ref()),
        _ => return None,
    };
    let mut bytes = [0; SECRET_BYTES_MAX];
    let length = key.len() + nonce.len();
    bytes.get_mut(..key.len())?.copy_from_slice(key);
    bytes.get_mut(key.len()..length)?.copy_from_slice(nonce);
    let secret = Secret::new(&bytes[..length]);
    bytes.zeroize();
    secret
}
