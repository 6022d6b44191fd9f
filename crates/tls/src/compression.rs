//! Chains of certificates, compressed for clients that can read them so (RFC 8879).
//!
//! It owns the codings, and the form in which a chain stands in a handshake. It must never be used by a
//! handshake but for what is prepared.
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustls::CertificateCompressionAlgorithm as Coding;
use rustls_pki_types::CertificateDer;

/// The level of Brotli that takes a tenth of a millisecond for a chain. Level 10 takes fifty times as long,
/// and saves another twentieth.
const BROTLI_QUALITY: i32 = 5;
/// Bits of Brotli's window. With 16 and less this level works thirty times as long.
const BROTLI_WINDOW_BITS: i32 = 18;

/// A chain as it stands in a message, and compressed.
pub(crate) struct CompressedChain {
    message: Vec<u8>,
    brotli: Option<Vec<u8>>,
    zlib: Option<Vec<u8>>,
}

impl CompressedChain {
    pub(crate) fn new(chain: &[CertificateDer<'_>]) -> Self {
        let message = message(chain);
        let is_smaller = |compressed: &Vec<u8>| compressed.len() < message.len();
        let [brotli, zlib] = [brotli(&message), zlib(&message)].map(|one| one.filter(is_smaller));
        Self { brotli, zlib, message }
    }

    /// What was prepared for this message, if it is the chain's.
    pub(crate) fn prepared(&self, message: &[u8], coding: Coding) -> Option<&[u8]> {
        let compressed = match coding {
            Coding::Brotli => self.brotli.as_deref(),
            Coding::Zlib => self.zlib.as_deref(),
            _ => None,
        };
        compressed.filter(|_| message == self.message)
    }
}

/// A `Certificate` message of a server (RFC 8446, section 4.4.2): no context, and to no certificate
/// extensions.
pub(crate) fn message(chain: &[CertificateDer<'_>]) -> Vec<u8> {
    let mut list = Vec::new();
    for certificate in chain {
        list.extend_from_slice(&length_of(certificate));
        list.extend_from_slice(certificate);
        list.extend_from_slice(&[0, 0]);
    }
    [&[0][..], &length_of(&list), &list].concat()
}

/// A length in three bytes. A chain that is read from files is far shorter than these can say.
fn length_of(bytes: &[u8]) -> [u8; 3] {
    let [_, length @ ..] = u32::try_from(bytes.len()).expect("a chain is short").to_be_bytes();
    length
}

fn brotli(message: &[u8]) -> Option<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW_BITS,
        size_hint: message.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &*message, &mut compressed, &parameters).ok()?;
    Some(compressed)
}

fn zlib(message: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(message).ok()?;
    encoder.finish().ok()
}
