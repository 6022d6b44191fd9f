//! Whole handshakes in memory with a client of rustls, for tests of what the two sides offer each other.
//!
//! It owns an authority, a context of one certificate and the time. It must never go on after the handshake.
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::{
    Agreed, CertificatePair, CertificateStore, Handshake, HandshakeProgress, LocalAuthority, Tickets,
    TlsContext, WallTime,
};

const NOW_UNIX_S: u64 = 1_795_000_000;

/// A server that clients can try.
pub(crate) struct Trial {
    authority: LocalAuthority,
    time: Arc<WallTime>,
    pub(crate) context: Arc<TlsContext>,
}

/// A handshake that is over.
pub(crate) struct Shaken {
    pub(crate) agreed: Agreed,
    /// Bytes that the server sent.
    pub(crate) answered_bytes: usize,
}

impl Trial {
    pub(crate) fn new() -> Self {
        let authority = LocalAuthority::create(NOW_UNIX_S).expect("an authority");
        let issued = authority.issue(&["localhost"], NOW_UNIX_S).expect("a local name");
        // A chain of two, as public authorities give.
        let chain = format!("{}{}", issued.certificate_pem, authority.certificate_pem());
        let pair = CertificatePair::read(chain.as_bytes(), issued.key_pem.as_bytes());
        let store = Arc::new(CertificateStore::new(&[Arc::new(pair.expect("a good pair"))], false));
        let time = Arc::new(WallTime::new(NOW_UNIX_S));
        let tickets = Arc::new(Tickets::new(Arc::clone(&time)).expect("random numbers"));
        let context = Arc::new(TlsContext::new(store, tickets, Arc::clone(&time), &[]));
        Self { authority, time, context }
    }

    /// A client that trusts the authority.
    pub(crate) fn client(&self, provider: CryptoProvider) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(self.authority.certificate_pem().as_bytes());
        roots.add(root.expect("PEM")).expect("a root");
        ClientConfig::builder_with_details(Arc::new(provider), Arc::clone(&self.time) as _)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("suites of the version")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// A handshake with this client, whose bytes come in pieces of at most `piece`; or what the server
    /// answered last when it refused.
    pub(crate) fn shake_hands(&self, client: ClientConfig, piece: usize) -> Result<Shaken, Vec<u8>> {
        let name = "localhost".try_into().expect("a name");
        let mut client = ClientConnection::new(Arc::new(client), name).expect("a client");
        let mut server = Handshake::new(Arc::clone(&self.context), None);
        let mut answered_bytes = 0;
        loop {
            let (mut sent, mut answers) = (Vec::new(), Vec::new());
            while client.wants_write() {
                client.write_tls(&mut sent).expect("memory");
            }
            assert!(!sent.is_empty(), "neither side goes on");
            let mut is_over = false;
            for part in sent.chunks(piece) {
                match server.feed(part, &mut answers).1 {
                    Ok(progress) => is_over = progress == HandshakeProgress::Done,
                    Err(_) => return Err(answers),
                }
            }
            answered_bytes += answers.len();
            if is_over {
                let (_, agreed) = server.finish().expect("it is over");
                return Ok(Shaken { agreed, answered_bytes });
            }
            let mut rest = &answers[..];
            while !rest.is_empty() {
                client.read_tls(&mut rest).expect("memory");
                client.process_new_packets().expect("the server's answer is good");
            }
        }
    }
}
