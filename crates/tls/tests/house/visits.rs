//! Handshakes of clients with certificates: a client of rustls comes to a house that asks for them.
#![allow(dead_code)]

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, Error, RootCertStore, SupportedProtocolVersion,
};
use staunch_tls::{Agreed, CertificatePolicy, ClientAuthority, Fault, SitePolicy};

use crate::clients::{Authority, Shown};
use crate::house::{House, Side, now};

pub(crate) const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;
pub(crate) const TLS12: &SupportedProtocolVersion = &rustls::version::TLS12;
pub(crate) const VERSIONS: [&SupportedProtocolVersion; 2] = [TLS13, TLS12];

/// A client that shows this certificate, or none.
pub(crate) fn client(
    house: &House,
    version: &'static SupportedProtocolVersion,
    shown: Option<&Shown>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(house.authority.certificate_pem().as_bytes()).expect("PEM");
    roots.add(root).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("a version of ring's")
        .with_root_certificates(roots);
    Arc::new(match shown {
        None => builder.with_no_client_auth(),
        Some(shown) => {
            let chain = shown.chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
            let key = PrivatePkcs8KeyDer::from(shown.key.clone()).into();
            builder.with_client_auth_cert(chain, key).expect("a key that fits")
        }
    })
}

/// How a handshake went: what was agreed upon, or why it was refused and which alert the client got.
pub(crate) fn shake(
    house: &House,
    config: &Arc<ClientConfig>,
    name: &str,
) -> Result<Agreed, (Fault, AlertDescription)> {
    let name = name.to_owned().try_into().expect("a name");
    let mut client = ClientConnection::new(Arc::clone(config), name).expect("a client");
    let mut side = Side::new(&house.context);
    loop {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).expect("memory");
        }
        let result = side.receive(&bytes);
        let mut answers = &std::mem::take(&mut side.output)[..];
        while !answers.is_empty() {
            client.read_tls(&mut answers).expect("memory");
            match (client.process_new_packets(), result) {
                (Ok(_), _) => {}
                (Err(Error::AlertReceived(alert)), Err(fault)) => return Err((fault, alert)),
                (Err(error), result) => panic!("{error}, {result:?}"),
            }
        }
        assert_eq!(result, Ok(()), "a fault without an alert");
        if let (Some(agreed), false) = (&side.agreed, client.is_handshaking()) {
            return Ok(agreed.clone());
        }
    }
}

pub(crate) fn policy(authority: ClientAuthority, is_required: bool) -> CertificatePolicy {
    CertificatePolicy { number: 7, authority: Arc::new(authority), is_required }
}

/// Asks the clients of all names.
pub(crate) fn ask(house: &House, policy: Option<CertificatePolicy>) {
    house.context.ask_clients(&[SitePolicy { hosts: Vec::new(), is_default: true, clients: policy }]);
}

pub(crate) fn read(authority: &Authority, lists: Option<&str>) -> ClientAuthority {
    ClientAuthority::read(authority.pem().as_bytes(), lists.map(str::as_bytes), now())
        .expect("a good authority")
}
