//! HTTP to the authority: one request, one answer, over TLS alone.
//!
//! The client blocks its thread. It must never follow a redirect, which could lead anywhere, and never read
//! more of an answer than [`ANSWER_BYTES_MAX`].

use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use staunch_netio::named_file::read_file;
use ureq::Agent;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::fault::{AcmeFault, plain};
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_TIME_MAX, ROOTS_BYTES_MAX};

/// The parts of an HTTP answer that ACME needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebAnswer {
    pub(crate) status: u16,
    /// `Replay-Nonce` (RFC 8555, section 6.5.1).
    pub(crate) nonce: Option<String>,
    /// `Location`: the URL of the account or order that was made.
    pub(crate) location: Option<String>,
    /// `Retry-After`, as it came: seconds or a date.
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// An HTTP request to the authority.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WebRequest<'a> {
    Get,
    Head,
    /// POST of a signed request, as JSON.
    Post(&'a str),
}

/// Carries requests to the authority: over the network, or to a script of a test.
pub(crate) trait Wire {
    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// [`AcmeFault::Unreachable`].
    fn ask(&mut self, url: &str, request: WebRequest<'_>) -> Result<WebAnswer, AcmeFault>;
}

/// The client that asks over the network.
pub(crate) struct Web(Agent);

impl Web {
    /// A client that trusts the authorities of this file (PEM) and no other, or else those of the system.
    ///
    /// # Errors
    /// The file cannot be read, or the system has none.
    pub(crate) fn new(roots: Option<&Path>) -> Result<Self, AcmeFault> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::Specific(Arc::new(read_roots(roots)?)))
            .unversioned_rustls_crypto_provider(provider)
            .build();
        let config = Agent::config_builder()
            .timeout_global(Some(ANSWER_TIME_MAX))
            .http_status_as_error(false)
            .https_only(true)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("staunch/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Ok(Self(config.new_agent()))
    }
}

impl Wire for Web {
    fn ask(&mut self, url: &str, request: WebRequest<'_>) -> Result<WebAnswer, AcmeFault> {
        let sent = match request {
            WebRequest::Get => self.0.get(url).call(),
            WebRequest::Head => self.0.head(url).call(),
            WebRequest::Post(body) => {
                self.0.post(url).header("Content-Type", "application/jose+json").send(body)
            }
        };
        let unreachable = |error: ureq::Error| AcmeFault::Unreachable(plain(&format!("{url}: {error}")));
        take(sent.map_err(unreachable)?).map_err(unreachable)
    }
}

fn take(mut response: Response<ureq::Body>) -> Result<WebAnswer, ureq::Error> {
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
    let field = |name: &str| text_of(response.headers(), name);
    Ok(WebAnswer {
        status: response.status().as_u16(),
        nonce: field("replay-nonce"),
        location: field("location"),
        retry_after: field("retry-after"),
        body,
    })
}

fn text_of(fields: &HeaderMap, name: &str) -> Option<String> {
    fields.get(name)?.to_str().ok().map(str::to_owned)
}

/// The root certificates by which the ACME authority's own certificate is trusted.
fn read_roots(file: Option<&Path>) -> Result<Vec<Certificate<'static>>, AcmeFault> {
    let Some(file) = file else { return system_roots() };
    let blame = |why: String| AcmeFault::Here(format!("acme_authority: {}: {why}", file.display()));
    let text = read_file(file, ROOTS_BYTES_MAX).map_err(|error| blame(error.to_string()))?;
    let all: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| blame(error.to_string()))?;
    if all.is_empty() {
        return Err(blame("no certificate (`BEGIN CERTIFICATE`) in the file".into()));
    }
    Ok(all.iter().map(|one| Certificate::from_der(one).to_owned()).collect())
}

fn system_roots() -> Result<Vec<Certificate<'static>>, AcmeFault> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        let text = format!("no certificate of an authority is trusted here{why}: install ca-certificates");
        return Err(AcmeFault::Here(text));
    }
    Ok(found.certs.iter().map(|one| Certificate::from_der(one).to_owned()).collect())
}
