//! The first bytes of a secured connection, whole and in pieces: the same is made of them, or both are
//! refused; and no more of them is kept than may be.
//!
//! The first byte says how large the pieces are. It must never judge a handshake: rustls does.
#![cfg_attr(fuzzing, no_main)]

use std::sync::{Arc, LazyLock};

use staunch_tls::{
    CertificatePair, CertificateStore, Fault, Handshake, HandshakeProgress, LocalAuthority, Tickets,
    TlsContext, WallTime, hello,
};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

const NOW_UNIX_S: u64 = 1_795_000_000;
/// See `staunch_tls::limits`: what a peer may make a handshake keep, and what rustls takes.
const HELD_BYTES_MAX: usize = 160 * 1024;

static CONTEXT: LazyLock<Arc<TlsContext>> = LazyLock::new(|| {
    let authority = LocalAuthority::create(NOW_UNIX_S).expect("an authority");
    let issued = authority.issue(&["localhost"], NOW_UNIX_S).expect("a local name");
    let pair = CertificatePair::read(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes());
    let store = Arc::new(CertificateStore::new(&[Arc::new(pair.expect("a pair"))], true));
    let time = Arc::new(WallTime::new(NOW_UNIX_S));
    let tickets = Arc::new(Tickets::new(Arc::clone(&time)).expect("random numbers"));
    Arc::new(TlsContext::new(store, tickets, time, &[b"h2", b"http/1.1"]))
});

/// What became of the bytes: how it ended, and whether the ClientHello was seen.
fn run(bytes: &[u8], piece_bytes: usize) -> (Result<HandshakeProgress, Fault>, bool) {
    let mut handshake = Handshake::new(Arc::clone(&CONTEXT), None);
    let (mut output, mut seen) = (Vec::new(), false);
    let mut last = Ok(HandshakeProgress::Pending);
    for piece in bytes.chunks(piece_bytes) {
        let (taken, result) = handshake.feed_asking(piece, &mut output, |hello| {
            seen = true;
            assert!(hello.server_name.is_none_or(|name| name.len() <= 253));
            assert!(hello.protocols().count() <= bytes.len());
            Ok(())
        });
        assert!(taken <= piece.len());
        assert!(handshake.held_bytes() <= HELD_BYTES_MAX);
        last = result;
        if last != Ok(HandshakeProgress::Pending) {
            break;
        }
        assert_eq!(taken, piece.len());
    }
    (last, seen)
}

pub(crate) fn judge(input: &[u8]) {
    let Some((&piece_bytes, bytes)) = input.split_first() else { return };
    let peeked = hello::peek(bytes, &mut Vec::new()).map(|hello| hello.is_some());
    let whole = run(bytes, usize::MAX);
    let pieces = run(bytes, usize::from(piece_bytes).max(1));
    assert!(pieces == whole || pieces.0.is_err() && whole.0.is_err(), "{pieces:?} {whole:?}");
    // What is seen whole was seen by the peek, if it has not refused something behind it.
    assert!(!whole.1 || peeked == Ok(true), "{peeked:?}");
}
