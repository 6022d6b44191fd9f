//! Chains that clients get compressed, and those that they get as they are.
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::ZlibDecoder;
use rustls::compress::{CertDecompressor, DecompressionFailed};
use rustls_pki_types::CertificateDer;

use super::*;
use crate::compression::{CompressedChain, message};
use crate::trial::Trial;

/// A client's reader of one coding, which counts the bytes it was given.
#[derive(Debug)]
struct Reader {
    coding: Coding,
    bytes: AtomicUsize,
}

impl Reader {
    fn new(coding: Coding) -> &'static Self {
        Box::leak(Box::new(Self { coding, bytes: AtomicUsize::new(0) }))
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl CertDecompressor for Reader {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        self.bytes.fetch_add(input.len(), Ordering::Relaxed);
        let read = decompressed(self.coding, input);
        if read.len() != output.len() {
            return Err(DecompressionFailed);
        }
        output.copy_from_slice(&read);
        Ok(())
    }

    fn algorithm(&self) -> Coding {
        self.coding
    }
}

fn decompressed(coding: Coding, mut input: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    match coding {
        Coding::Brotli => brotli::BrotliDecompress(&mut input, &mut read).expect("good bytes"),
        _ => drop(ZlibDecoder::new(input).read_to_end(&mut read).expect("good bytes")),
    }
    read
}

/// Bytes that the server sends to a client with these readers.
fn answered_bytes(trial: &Trial, readers: &[&'static Reader]) -> usize {
    let mut client = trial.client(rustls::crypto::ring::default_provider());
    client.cert_decompressors = readers.iter().map(|reader| *reader as &dyn CertDecompressor).collect();
    trial.shake_hands(client, usize::MAX).map(|shaken| shaken.answered_bytes).expect("a handshake")
}

#[test]
fn clients_get_the_coding_that_they_know() {
    let trial = Trial::new();
    let plain = answered_bytes(&trial, &[]);
    for coding in [Coding::Brotli, Coding::Zlib] {
        let reader = Reader::new(coding);
        let bytes = answered_bytes(&trial, &[reader]);
        let read = reader.bytes();
        println!("{coding:?}: {plain} bytes of the server became {bytes}; the chain takes {read}");
        assert!(read > 0 && bytes < plain);
    }
    let (first, second) = (Reader::new(Coding::Zlib), Reader::new(Coding::Brotli));
    answered_bytes(&trial, &[first, second]);
    assert!(first.bytes() == 0 && second.bytes() > 0, "our order counts");
    let unknown = Reader::new(Coding::Zstd);
    answered_bytes(&trial, &[unknown]);
    assert_eq!(unknown.bytes(), 0, "it is sent as it is");
}

#[test]
fn a_chain_is_compressed_as_it_stands_in_the_message() {
    let chain = [vec![1; 300], vec![2; 70_000]].map(CertificateDer::from);
    let compressed = CompressedChain::new(&chain);
    let message = message(&chain);
    // No context; 70 310 bytes of certificates with their lengths and empty extensions.
    assert_eq!(message[..7], [0, 1, 0x12, 0xa6, 0, 1, 44]);
    assert_eq!((message.len(), &message[307..312]), (70_314, &[0, 0, 1, 0x11, 0x70][..]));
    for coding in [Coding::Brotli, Coding::Zlib] {
        let prepared = compressed.prepared(&message, coding).expect("bytes that repeat");
        assert_eq!(decompressed(coding, prepared), message);
        // A message with something else in it, such as a staple, is not what was prepared.
        assert!(compressed.prepared(&[&message[..], &[0]].concat(), coding).is_none());
    }
    assert!(compressed.prepared(&message, Coding::Zstd).is_none());
}

#[test]
fn what_does_not_get_smaller_is_sent_as_it_is() {
    let chain = [CertificateDer::from(vec![7])];
    let compressed = CompressedChain::new(&chain);
    assert!(compressed.prepared(&message(&chain), Coding::Brotli).is_none());
    assert!(compressed.prepared(&message(&chain), Coding::Zlib).is_none());
}
