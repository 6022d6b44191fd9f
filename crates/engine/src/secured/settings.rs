//! What secured listeners are built from.
//!
//! It must never hold what changes while the server runs: certificates and tickets are exchanged within the
//! context.

use std::fmt;
use std::sync::Arc;

use staunch_netio::ListenPlace;
use staunch_tls::TlsContext;

use crate::limits::HANDSHAKES_MAX;

/// Where TLS is spoken, and by what.
#[derive(Clone)]
pub struct TlsSettings {
    /// Certificates, tickets and protocols, the same for all workers.
    pub context: Arc<TlsContext>,
    /// Where to listen, beside the places of plain HTTP. Port 0 takes a free one.
    pub listen: Vec<ListenPlace>,
    /// How long a handshake may take as a whole, in milliseconds.
    pub handshake_ms: u32,
    /// Handshakes at work at a time, for each worker.
    pub handshakes_max: u32,
}

impl TlsSettings {
    /// Settings with the usual bounds.
    pub fn new(context: Arc<TlsContext>, listen: Vec<ListenPlace>) -> Self {
        Self { context, listen, handshake_ms: 10_000, handshakes_max: HANDSHAKES_MAX }
    }
}

/// The context holds keys, and shows none.
impl fmt::Debug for TlsSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsSettings").field("listen", &self.listen).finish_non_exhaustive()
    }
}
