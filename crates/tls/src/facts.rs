//! What a handshake and the callbacks of rustls tell each other while rustls works.
//!
//! rustls asks for a certificate, has a client's verified, and gives secrets through traits of a shared
//! configuration, which know nothing of the connection at work. It works on the thread that called it and
//! returns, so a value of that thread stands between. It must never keep anything after [`during`] returned.
use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::KeyLog;

use crate::compression::CompressedChain;
use crate::secret::Secret;

/// The facts of the handshake at work on this thread.
#[derive(Default)]
pub(crate) struct HandshakeFacts {
    /// The address that the client connected to.
    pub(crate) local: Option<IpAddr>,
    /// The chain that was chosen for the client.
    pub(crate) chain: Option<Arc<CompressedChain>>,
    /// Traffic secrets of TLS 1.3, once rustls has them.
    pub(crate) client_secret: Option<Secret>,
    pub(crate) server_secret: Option<Secret>,
    /// The last second in which what was verified of the client holds.
    pub(crate) verified_until_unix_s: Option<u64>,
}

thread_local! {
    static FACTS: RefCell<HandshakeFacts> = RefCell::default();
}

/// Calls `work` with the facts of one handshake.
pub(crate) fn during<T>(facts: &mut HandshakeFacts, work: impl FnOnce() -> T) -> T {
    let exchange =
        |facts: &mut HandshakeFacts| FACTS.with_borrow_mut(|current| std::mem::swap(current, facts));
    exchange(facts);
    let result = work();
    exchange(facts);
    result
}

/// The address that the client of the handshake at work connected to.
pub(crate) fn local() -> Option<IpAddr> {
    FACTS.with_borrow(|facts| facts.local)
}

/// What was verified of the client holds until this second.
pub(crate) fn set_verified_until(unix_s: u64) {
    FACTS.with_borrow_mut(|facts| facts.verified_until_unix_s = Some(unix_s));
}

/// The last second in which what was verified of the client holds: the end of time if that is nothing.
pub(crate) fn verified_until() -> u64 {
    FACTS.with_borrow(|facts| facts.verified_until_unix_s.unwrap_or(u64::MAX))
}

/// Notes the chain that was chosen for the client of the handshake at work.
pub(crate) fn choose_chain(chain: &Arc<CompressedChain>) {
    FACTS.with_borrow_mut(|facts| facts.chain = Some(Arc::clone(chain)));
}

/// The chain that was chosen for the client of the handshake at work.
pub(crate) fn chain() -> Option<Arc<CompressedChain>> {
    FACTS.with_borrow(|facts| facts.chain.clone())
}

/// Takes the traffic secrets from rustls. Nothing is written anywhere.
#[derive(Debug)]
pub(crate) struct SecretTaker;

impl KeyLog for SecretTaker {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        FACTS.with_borrow_mut(|facts| match label {
            "CLIENT_TRAFFIC_SECRET_0" => facts.client_secret = Secret::new(secret),
            "SERVER_TRAFFIC_SECRET_0" => facts.server_secret = Secret::new(secret),
            _ => {}
        });
    }

    fn will_log(&self, label: &str) -> bool {
        label.ends_with("_TRAFFIC_SECRET_0")
    }
}
