//! TLS towards servers: a connection that this side has made, bytes in and bytes out.
//!
//! This module owns whom such a connection believes and what it shows (rustls does the work). It must never
//! give a byte to a server whose certificate is not good, unless whoever made the settings has said so.

mod fault;
mod record_ends;
mod unchecked;

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

pub use self::fault::{OutgoingFault, OutgoingSettingsFault};
use self::record_ends::RecordEnds;
use self::unchecked::AnyServer;
use crate::clock::WallTime;

/// Servers whose sessions are kept to be resumed.
const SESSIONS_MAX: usize = 256;

/// Bytes of a server's answer that are opened at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Whom connections to servers believe.
#[derive(Debug, Clone, Copy)]
pub enum OutgoingTrust<'a> {
    /// Servers for which one of these certificates vouches, each in its binary form (DER).
    Roots(&'a [Vec<u8>]),
    /// Servers for which one of the certificates in this text vouches (PEM).
    Authorities(&'a [u8]),
    /// Every server, whoever it is.
    Anything,
}

/// Settings of connections to servers; their sessions are resumed among them.
pub struct OutgoingTls {
    config: Arc<ClientConfig>,
    time: Arc<WallTime>,
}

/// A connection to a server.
pub struct OutgoingSession {
    connection: ClientConnection,
    records: RecordEnds,
}

impl OutgoingTls {
    /// Connections that believe these servers and speak one of these protocols (RFC 7301). `identity`: a
    /// chain of certificates and its key, both as PEM, for servers that ask for one.
    ///
    /// # Errors
    /// No certificate is there that could vouch for a server; the chain or its key is not good.
    pub fn new(
        trust: OutgoingTrust<'_>,
        identity: Option<(&[u8], &[u8])>,
        protocols: &[&[u8]],
    ) -> Result<Self, OutgoingSettingsFault> {
        let time = Arc::new(WallTime::default());
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_details(Arc::clone(&provider), Arc::clone(&time) as _)
            .with_safe_default_protocol_versions()
            .map_err(|_| OutgoingSettingsFault::NoSuites)?;
        let builder = match trust {
            OutgoingTrust::Roots(roots) => {
                let mut store = RootCertStore::empty();
                store.add_parsable_certificates(roots.iter().map(|root| CertificateDer::from(root.clone())));
                builder.with_root_certificates(expect_some(store)?)
            }
            OutgoingTrust::Authorities(pem) => builder.with_root_certificates(authorities(pem)?),
            OutgoingTrust::Anything => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer::new(provider)))
            }
        };
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
                let chain = chain.map_err(|_| OutgoingSettingsFault::BadChain)?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| OutgoingSettingsFault::BadKey)?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|_| OutgoingSettingsFault::KeyOfAnother)?
            }
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Ok(Self { config: Arc::new(config), time })
    }

    /// A connection to a server that must prove this name, a host's or an address; it is `unix_s` seconds
    /// after 1970. What it says first is appended to `output`.
    ///
    /// # Errors
    /// No certificate can have such a name.
    pub fn connect(
        &self,
        name: &str,
        unix_s: u64,
        output: &mut Vec<u8>,
    ) -> Result<OutgoingSession, OutgoingFault> {
        self.time.set(unix_s);
        let name = ServerName::try_from(name.to_owned()).map_err(|_| OutgoingFault::BadName)?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        let connection = connection.map_err(OutgoingFault::of)?;
        let mut session = OutgoingSession { connection, records: RecordEnds::default() };
        // The caller bounds what it sends before there are keys.
        session.connection.set_buffer_limit(None);
        session.push(output);
        Ok(session)
    }
}

/// Whether a certificate can have such a name: that of a host, or an address.
#[must_use]
pub fn is_certificate_name(name: &str) -> bool {
    ServerName::try_from(name).is_ok()
}

impl OutgoingSession {
    /// Takes bytes of the server. What they say is appended to `plain`, what has to be sent to `output`,
    /// which is to be sent whatever the result is.
    ///
    /// # Errors
    /// The connection is to be closed after the output was sent.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        plain: &mut Vec<u8>,
        output: &mut Vec<u8>,
    ) -> Result<(), OutgoingFault> {
        self.records.pass(bytes);
        let mut result = Ok(());
        while !bytes.is_empty() && result.is_ok() {
            let mut piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            let whole = piece.len();
            // Reading from a slice does not fail; nothing is taken behind the server's end.
            let taken = self.connection.read_tls(&mut piece).unwrap_or(0);
            debug_assert_eq!(whole - piece.len(), taken);
            result = self.connection.process_new_packets().map(drop).map_err(OutgoingFault::of);
            self.take_plain(plain);
            if taken == 0 {
                break;
            }
            bytes = &bytes[taken..];
        }
        self.push(output);
        result
    }

    /// Seals bytes for the server. Before the handshake is over they are kept, and go with its end.
    pub fn send(&mut self, plain: &[u8], output: &mut Vec<u8>) {
        // Writing into memory does not fail, and there is no limit.
        let _ = self.connection.writer().write_all(plain);
        self.push(output);
    }

    /// Whether the server has proved who it is, and bytes go their way.
    #[must_use]
    pub fn is_established(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// Whether some of a record has come, and not all of it: what it says belongs to whatever was asked
    /// before.
    #[must_use]
    pub fn is_amid_record(&self) -> bool {
        self.records.is_amid()
    }

    /// Says that nothing more will be sent.
    pub fn close(&mut self, output: &mut Vec<u8>) {
        self.connection.send_close_notify();
        self.push(output);
    }

    /// Whether the server has said that it sends no more. An end of the connection without that may have been
    /// made by anybody on the way (RFC 8446, section 6.1).
    pub fn has_ended(&mut self) -> bool {
        self.connection.process_new_packets().is_ok_and(|state| state.peer_has_closed())
    }

    fn take_plain(&mut self, plain: &mut Vec<u8>) {
        let mut piece = [0; PIECE_BYTES];
        // An error says that there is nothing more for now, or the server's end.
        while let Ok(length @ 1..) = self.connection.reader().read(&mut piece) {
            plain.extend_from_slice(&piece[..length]);
        }
    }

    fn push(&mut self, output: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Memory takes all that is written into it.
            if self.connection.write_tls(output).is_err() {
                return;
            }
        }
    }
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, OutgoingSettingsFault> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| OutgoingSettingsFault::BadAuthority)?;
        store.add(certificate).map_err(|_| OutgoingSettingsFault::BadAuthority)?;
    }
    expect_some(store)
}

fn expect_some(store: RootCertStore) -> Result<RootCertStore, OutgoingSettingsFault> {
    if store.is_empty() { Err(OutgoingSettingsFault::NoAuthority) } else { Ok(store) }
}
