//! How rustls gets the compressed chain of the handshake at work.
//!
//! It must never compress: what is not prepared is sent as it is.
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustls::compress::{CertCompressor, CompressionCache, CompressionFailed, CompressionLevel};
use rustls::{CertificateCompressionAlgorithm as Coding, ServerConfig};

use crate::facts;

/// Has handshakes of this configuration send prepared chains, in the coding that is ours first.
pub(crate) fn offer(config: &mut ServerConfig) {
    config.cert_compressors = vec![&Prepared(Coding::Brotli), &Prepared(Coding::Zlib)];
    config.cert_compression_cache = Arc::new(CompressionCache::Disabled);
}

/// Gives rustls what was prepared of the chain that the handshake at work has chosen.
#[derive(Debug)]
struct Prepared(Coding);

impl CertCompressor for Prepared {
    fn compress(&self, message: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let chain = facts::chain().ok_or(CompressionFailed)?;
        chain.prepared(&message, self.0).map(<[u8]>::to_vec).ok_or(CompressionFailed)
    }

    fn algorithm(&self) -> Coding {
        self.0
    }
}
