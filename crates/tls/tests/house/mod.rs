//! What the tests of whole connections share: a context with certificates of a local authority, and one
//! secured connection as a server holds it, which falls asleep whenever it can.
#![allow(dead_code)]

use std::sync::Arc;

use staunch_tls::{
    Agreed, Asleep, Awake, CertificatePair, CertificateStore, Fault, Handshake, HandshakeProgress,
    LocalAuthority, Tickets, TlsContext, WallTime,
};

/// Seconds since 1970 at which the tests play: the machine's own, because clients of other programs have no
/// other.
pub(crate) fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("the clock stands after 1970").as_secs()
}

/// A context, and what a client needs to trust it.
pub(crate) struct House {
    pub(crate) context: Arc<TlsContext>,
    pub(crate) authority: LocalAuthority,
    pub(crate) store: Arc<CertificateStore>,
}

/// A house whose one certificate is for `localhost`, `*.house.local` and 127.0.0.1.
pub(crate) fn house() -> House {
    let authority = LocalAuthority::create(now()).expect("an authority");
    let pair = pair(&authority, &["localhost", "*.house.local", "127.0.0.1"]);
    let store = Arc::new(CertificateStore::new(&[pair], false));
    House { context: context(&store), authority, store }
}

/// A pair for these names, signed by the authority.
pub(crate) fn pair(authority: &LocalAuthority, names: &[&str]) -> Arc<CertificatePair> {
    let issued = authority.issue(names, now()).expect("local names");
    let pair = CertificatePair::read(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes());
    Arc::new(pair.expect("a good pair"))
}

/// A context with these certificates and tickets of its own.
pub(crate) fn context(store: &Arc<CertificateStore>) -> Arc<TlsContext> {
    let time = Arc::new(WallTime::new(now()));
    let tickets = Arc::new(Tickets::new(Arc::clone(&time)).expect("random numbers"));
    Arc::new(TlsContext::new(Arc::clone(store), tickets, time, &[b"h2", b"http/1.1"]))
}

/// A server's side of one connection.
pub(crate) struct Side {
    state: State,
    kept: Vec<u8>,
    /// What the peer sent.
    pub(crate) plain: Vec<u8>,
    /// What is to be sent to the peer.
    pub(crate) output: Vec<u8>,
    pub(crate) agreed: Option<Agreed>,
    pub(crate) is_end: bool,
    pub(crate) oddities: u32,
}

enum State {
    Shaking(Box<Handshake>),
    Asleep(Box<Asleep>),
    Awake(Box<Awake>),
    Over,
}

impl Side {
    pub(crate) fn new(context: &Arc<TlsContext>) -> Self {
        Self {
            state: State::Shaking(Box::new(Handshake::new(Arc::clone(context), None))),
            kept: Vec::new(),
            plain: Vec::new(),
            output: Vec::new(),
            agreed: None,
            is_end: false,
            oddities: 0,
        }
    }

    /// Bytes came. Afterwards the connection sleeps if it can.
    pub(crate) fn receive(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        if let State::Shaking(handshake) = &mut self.state {
            let (taken, progress) = handshake.feed(bytes, &mut self.output);
            if progress? == HandshakeProgress::Pending {
                assert_eq!(taken, bytes.len());
                return Ok(());
            }
            bytes = &bytes[taken..];
            let State::Shaking(handshake) = std::mem::replace(&mut self.state, State::Over) else {
                unreachable!()
            };
            let (awake, agreed) = handshake.finish()?;
            self.state = State::Awake(Box::new(awake));
            self.agreed = Some(agreed);
        }
        self.kept.extend_from_slice(bytes);
        self.awake(|awake, kept, output| awake.open(kept, output)).map(|opened| {
            self.plain.extend_from_slice(&self.kept[opened.plain]);
            self.kept.drain(..opened.taken);
            self.is_end |= opened.is_end;
            self.oddities += opened.oddities;
        })
    }

    pub(crate) fn seal(&mut self, pieces: &[&[u8]]) {
        self.awake(|awake, _, output| awake.seal(pieces, output)).expect("the key is fresh");
    }

    pub(crate) fn close(&mut self) {
        self.awake(|awake, _, output| {
            awake.close(output);
            Ok(())
        })
        .expect("closing never fails");
    }

    /// Asks for a new key of the peer's, and changes ours.
    pub(crate) fn change_key(&mut self) {
        self.awake(|awake, _, output| awake.change_key(true, output)).expect("the key is fresh");
    }

    /// Works with the connection awake, and lets it sleep again if it can.
    fn awake<T>(
        &mut self,
        work: impl FnOnce(&mut Awake, &mut [u8], &mut Vec<u8>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut awake = match std::mem::replace(&mut self.state, State::Over) {
            State::Awake(awake) => awake,
            State::Asleep(asleep) => Box::new(Awake::wake(&asleep)),
            State::Shaking(_) | State::Over => panic!("the connection is not open"),
        };
        let result = work(&mut awake, &mut self.kept, &mut self.output);
        self.state = match awake.sleep() {
            Some(asleep) => State::Asleep(Box::new(asleep)),
            None => State::Awake(awake),
        };
        result
    }
}
