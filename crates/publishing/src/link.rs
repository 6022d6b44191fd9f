//! A connection to a server: plain, or by TLS 1.3 and 1.2.
//!
//! A target owns the authorities that are believed. It must never send a request to a server whose name they
//! did not vouch for: a secret is among its fields.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};

/// Time that a server may take to connect, or to take or give the next bytes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, and how it is spoken to.
#[derive(Debug)]
pub(super) struct LinkTarget {
    /// Host and port.
    pub(super) authority: String,
    security: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl LinkTarget {
    /// The server of a URL. By https its certificate is verified by the system's authorities, or by those of
    /// a file.
    ///
    /// # Errors
    /// The URL is none of http or https with a host, or there are no authorities.
    pub(super) fn new(url: &str, authorities: Option<&Path>) -> Result<Self, String> {
        let broken = || format!("--to {url}: a host and a port, such as http://127.0.0.1:8080");
        let (scheme, rest) = url.split_once("://").ok_or_else(broken)?;
        let host = rest.trim_end_matches('/');
        if host.is_empty() || host.contains(['/', '@', ' ', '?', '#']) {
            return Err(broken());
        }
        let port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(broken()),
        };
        let named = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        let name = named.map_or(host, |(name, _)| name);
        let security = match scheme {
            "https" => Some((config(authorities)?, server_name(url, name)?)),
            _ => None,
        };
        let authority = if named.is_some() { host.to_owned() } else { format!("{host}:{port}") };
        Ok(Self { authority, security })
    }

    /// Connects, by each address of the name until one answers.
    ///
    /// # Errors
    /// No address answers; or ([`ErrorKind::InvalidData`]) TLS fails, as for a certificate that is not
    /// believed.
    pub(super) fn connect(&self) -> io::Result<ServerLink> {
        let mut fault = io::Error::other("no address is known for this name");
        // A name such as localhost has several, and a server may listen at one of them.
        for address in self.authority.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(socket) => return self.prepared(socket),
                Err(error) => fault = error,
            }
        }
        Err(fault)
    }

    fn prepared(&self, mut socket: TcpStream) -> io::Result<ServerLink> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        let Some((config, name)) = &self.security else { return Ok(ServerLink::Plain(socket)) };
        let mut wall = ClientConnection::new(Arc::clone(config), name.clone()).map_err(invalid)?;
        while wall.is_handshaking() {
            wall.complete_io(&mut socket)?;
        }
        Ok(ServerLink::Secured(Box::new(Secured { wall, socket })))
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(super) enum ServerLink {
    Plain(TcpStream),
    Secured(Box<Secured>),
}

/// A connection by TLS.
#[derive(Debug)]
pub(super) struct Secured {
    wall: ClientConnection,
    socket: TcpStream,
}

impl Read for ServerLink {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Secured(secured) => secured.read(buffer),
        }
    }
}

impl Read for Secured {
    /// Reads even when what is to be sent is not sent yet: a server may answer before it has read all.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.wall.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if self.wall.read_tls(&mut self.socket)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.wall.process_new_packets().map_err(invalid)?;
        }
    }
}

impl Write for ServerLink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Secured(secured) => {
                let count = secured.wall.writer().write(bytes)?;
                while secured.wall.wants_write() {
                    secured.wall.write_tls(&mut secured.socket)?;
                }
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn server_name(url: &str, name: &str) -> Result<ServerName<'static>, String> {
    let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    ServerName::try_from(name).map_err(|_| format!("--to {url}: no certificate can have this name"))
}

fn config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let roots = match authorities {
        Some(file) => roots_of(file).map_err(|why| format!("--cacert {}: {why}", file.display()))?,
        None => system_roots()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(format!(
            "no authority is trusted on this system{why}: install ca-certificates, or name one by \
             --cacert FILE"
        ));
    }
    Ok(roots)
}

fn roots_of(file: &Path) -> Result<RootCertStore, String> {
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("no certificate (`BEGIN CERTIFICATE`) in the file".to_owned());
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_by_their_urls() {
        let authority = |url| LinkTarget::new(url, None).map(|target| target.authority);
        assert_eq!(authority("http://a"), Ok("a:80".to_owned()));
        assert_eq!(authority("http://[::1]:8080/"), Ok("[::1]:8080".to_owned()));
        for url in ["a:80", "ftp://a", "http://", "http://a/b", "http://u@a"] {
            assert!(authority(url).is_err_and(|said| said.contains("such as http://")), "{url}");
        }
    }

    #[test]
    fn authorities_that_are_none() {
        let file = |name: &str, text: &str| {
            let path = std::env::temp_dir().join(format!("staunch-link-{}-{name}", std::process::id()));
            std::fs::write(&path, text).expect("a file");
            path
        };
        let said =
            |path: &Path| LinkTarget::new("https://a", Some(path)).map(drop).expect_err("no authority");
        let (empty, broken) = (
            file("empty", "text"),
            file("broken", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"),
        );
        assert!(said(&empty).contains("no certificate"), "{}", said(&empty));
        assert!(said(&broken).contains("--cacert"), "{}", said(&broken));
        assert!(said(Path::new("/nowhere/at/all")).contains("No such file"));
        [empty, broken].iter().for_each(|path| std::fs::remove_file(path).expect("it is there"));
    }
}
