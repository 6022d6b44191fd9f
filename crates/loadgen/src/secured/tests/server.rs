//! A server of rustls that answers a few paths, a thread a connection.
//!
//! It must never be part of the program.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Length of the body at `/big`.
pub(super) const BIG_BYTES: usize = 1_000_000;

/// Behaviour of a server towards a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Handshakes and answers.
    Answers,
    /// Answers without TLS.
    Plain,
    /// Closes when the first bytes have come.
    Closes,
    /// Takes what comes and says nothing.
    Silent,
    /// Handshakes with a certificate whose time is over.
    Expired,
}

pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    /// A file with its certificate, which is its own authority.
    pub(super) authority: PathBuf,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.authority);
    }
}

impl TestServer {
    /// A server for `localhost` that speaks these versions.
    pub(super) fn start(manner: Manner, versions: &[&'static SupportedProtocolVersion]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("staunch-loadgen-{}-{number}.pem", std::process::id());
        let (certificate, key) = make_pair(&name, manner);
        let authority = std::env::temp_dir().join(name);
        fs::write(&authority, pem(certificate.der())).expect("a file");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("known versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let config = Arc::new(config);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let config = Arc::clone(&config);
                // A client that goes away ends its thread by an error.
                thread::spawn(move || serve(stream, manner, config));
            }
        });
        Self { address, authority }
    }
}

/// A certificate as text (RFC 7468).
fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// A certificate for `localhost` with a subject of its own, signed by its own key.
fn make_pair(subject: &str, manner: Manner) -> (rcgen::Certificate, PrivateKeyDer<'static>) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    if manner == Manner::Expired {
        params.not_after = rcgen::date_time_ymd(2000, 1, 1);
    }
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
}

fn serve(mut stream: TcpStream, manner: Manner, config: Arc<ServerConfig>) -> std::io::Result<()> {
    if !matches!(manner, Manner::Answers | Manner::Expired) {
        let mut first = [0; 4096];
        if stream.read(&mut first)? == 0 {
            return Ok(());
        }
        if manner == Manner::Plain {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")?;
        }
        if manner == Manner::Silent {
            // Until the client goes away.
            while stream.read(&mut first)? > 0 {}
        }
        return Ok(());
    }
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    while let Some((path, body)) = read_request(&mut stream)? {
        let answer = match path.as_str() {
            "/big" => sized(&vec![b'b'; BIG_BYTES]),
            "/echo" => sized(&body),
            "/ended" | "/cut" => b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec(),
            _ => sized(b"ok"),
        };
        let stream = stream.get_mut();
        stream.write_all(&answer)?;
        if path == "/ended" {
            stream.conn.send_close_notify();
        }
        stream.flush()?;
        if matches!(path.as_str(), "/ended" | "/cut") {
            return Ok(());
        }
    }
    Ok(())
}

fn sized(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Path and body of the next request; nothing when the client has ended.
fn read_request(stream: &mut impl BufRead) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(digits) = line.strip_prefix("Content-Length: ") {
            length = digits.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((path, body)))
}
