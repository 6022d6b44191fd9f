//! TLS for the clients of the benchmark: version 1.3, one cipher, one group, so that all servers do alike.
//!
//! It owns what a client offers. It must never be trusted with a secret: the certificate is compared with the
//! one that is known, and its signature is passed over, because to check it costs a client as much as the
//! server's whole part, and a server that waits for its client is paid for waking up.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, HandshakeKind,
    SignatureScheme, StreamOwned,
};

/// An open connection.
pub(super) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// What is spoken inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// Its name in a handshake (ALPN).
    fn name(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

/// Makes connections, and keeps the tickets of one client.
#[derive(Debug)]
pub(super) struct Dialer {
    config: Arc<ClientConfig>,
    protocol: Protocol,
}

/// A server that is silent for so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// Tickets that are kept: more than a server gives at a time.
const TICKETS: usize = 8;

impl Dialer {
    /// A client of servers with this certificate, in a PEM file, that resumes its sessions or not.
    ///
    /// # Errors
    /// A file that is no certificate.
    pub(super) fn new(certificate: &Path, protocol: Protocol, resumes: bool) -> Result<Self, String> {
        let known = CertificateDer::from_pem_file(certificate)
            .map_err(|error| format!("{}: {error}", certificate.display()))?;
        let mut provider = ring::default_provider();
        provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
        provider.kx_groups = vec![ring::kx_group::X25519];
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Known(known)))
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.name().to_vec()];
        config.resumption = match resumes {
            true => Resumption::in_memory_sessions(TICKETS).tls12_resumption(Tls12Resumption::Disabled),
            false => Resumption::disabled(),
        };
        Ok(Self { config: Arc::new(config), protocol })
    }

    /// Connects and shakes hands. Says whether a session was resumed.
    ///
    /// # Errors
    /// The connection or the handshake fails, or another protocol was agreed upon.
    pub(super) fn dial(&self, address: SocketAddr) -> Result<(TlsStream, bool), String> {
        let fault = |error: std::io::Error| format!("handshake with {address}: {error}");
        let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
        let mut session =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(|error| error.to_string())?;
        let mut socket = TcpStream::connect(address).map_err(fault)?;
        socket
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| socket.set_nodelay(true))
            .map_err(|error| error.to_string())?;
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(fault)?;
        }
        if session.alpn_protocol() != Some(self.protocol.name()) {
            return Err(format!("{address} does not speak {:?}", self.protocol));
        }
        let is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
        Ok((StreamOwned::new(session, socket), is_resumed))
    }
}

/// Takes one certificate alone.
#[derive(Debug)]
struct Known(CertificateDer<'static>);

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.0 {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
