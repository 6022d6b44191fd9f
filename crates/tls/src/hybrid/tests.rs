//! The group by vectors of others, against itself, with faulty shares, and in whole handshakes of rustls.
use shake::{ExtendableOutput as _, Shake128, Update as _, XofReader as _};

use super::*;
use crate::trial::Trial;

/// Bytes of a key of X25519.
const CLASSICAL_BYTES: usize = 32;

/// A hundred random keys, secrets and faulty ciphertexts, whose hash is that which Go's `crypto/mlkem` has
/// (`TestAccumulated`), and with it other implementations that take part in C2SP's vectors.
#[test]
fn a_hundred_exchanges_of_mlkem_are_those_of_others() {
    let mut source = Shake128::default().finalize_xof();
    let mut seen = Shake128::default();
    for _ in 0..100 {
        let (mut seed, mut message, mut stranger) = (Seed::default(), B32::default(), Ciphertext::default());
        source.read(&mut seed);
        let key = DecapsulationKey::from_seed(seed);
        let share = key.encapsulation_key().to_bytes();
        seen.update(&share);
        source.read(&mut message);
        let (ciphertext, secret) = encapsulate(&share, &message).expect("a good key");
        seen.update(&ciphertext);
        seen.update(&secret);
        assert_eq!(key.decapsulate(&ciphertext), *secret);
        source.read(&mut stranger);
        seen.update(&key.decapsulate(&stranger));
    }
    let mut hash = [0; 32];
    seen.finalize_xof().read(&mut hash);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, "1114b1b6699ed191734fa339376afa7e285c9e6acf6ff0177d346696ce564415");
}

#[test]
fn both_sides_have_one_secret_whose_first_half_is_of_mlkem() {
    let client = Hybrid::new().start().expect("random numbers");
    assert_eq!(client.pub_key().len(), MLKEM_KEY_BYTES + CLASSICAL_BYTES);
    let server = Hybrid::new().start_and_complete(client.pub_key()).expect("a good share");
    assert_eq!(server.pub_key.len(), MLKEM_CIPHERTEXT_BYTES + CLASSICAL_BYTES);
    let secret = client.complete(&server.pub_key).expect("a good share");
    assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    assert_eq!(secret.secret_bytes().len(), 64);
    // Each half by its own means.
    let key = DecapsulationKey::from_seed(Seed::default());
    let classical = X25519.start().expect("random numbers");
    let share = [&key.encapsulation_key().to_bytes()[..], classical.pub_key()].concat();
    let server = Hybrid::new().start_and_complete(&share).expect("a good share");
    let (ciphertext, of_server) = server.pub_key.split_at(MLKEM_CIPHERTEXT_BYTES);
    let (first, second) = server.secret.secret_bytes().split_at(CLASSICAL_BYTES);
    assert_eq!(key.decapsulate(ciphertext.try_into().expect("its length"))[..], *first);
    assert_eq!(classical.complete(of_server).expect("a good share").secret_bytes(), second);
}

/// Shares of a client that are no shares.
fn faulty_shares() -> Vec<Vec<u8>> {
    let good = Hybrid::new().start().expect("random numbers").pub_key().to_vec();
    let with = |place: std::ops::Range<usize>, byte: u8| {
        let mut share = good.clone();
        share[place].fill(byte);
        share
    };
    vec![
        Vec::new(),
        good[..MLKEM_KEY_BYTES].to_vec(),
        good[..good.len() - 1].to_vec(),
        [&good[..], &[0]].concat(),
        // The halves the other way round.
        [&good[MLKEM_KEY_BYTES..], &good[..MLKEM_KEY_BYTES]].concat(),
        // A coefficient of 4 095, above the modulus 3 329.
        with(0..2, 0xff),
        // A point of small order, which makes a secret of zeros (RFC 7748, section 6.1).
        with(MLKEM_KEY_BYTES..good.len(), 0),
    ]
}

#[test]
fn faulty_shares_are_refused() {
    for (place, share) in faulty_shares().iter().enumerate() {
        let refused = Hybrid::new().start_and_complete(share);
        assert_eq!(refused.err(), Some(FAULTY_SHARE), "share {place}");
    }
    for length in [0, MLKEM_CIPHERTEXT_BYTES, MLKEM_CIPHERTEXT_BYTES + 31, MLKEM_CIPHERTEXT_BYTES + 33] {
        let client = Hybrid::new().start().expect("random numbers");
        assert_eq!(client.complete(&vec![9; length]).err(), Some(FAULTY_SHARE), "{length} bytes");
    }
}

/// A client's group that sends this share.
#[derive(Debug)]
struct Sent(Vec<u8>);

struct ActiveSent(Vec<u8>);

impl SupportedKxGroup for Sent {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(ActiveSent(self.0.clone())))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

impl ActiveKeyExchange for ActiveSent {
    fn complete(self: Box<Self>, _: &[u8]) -> Result<SharedSecret, Error> {
        Err(FAULTY_SHARE)
    }

    fn pub_key(&self) -> &[u8] {
        &self.0
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// A handshake of a client that knows these groups, with pieces of at most `piece` bytes: the number of the
/// group that was agreed on, or what the server answered at its end.
fn shake_hands(groups: &[&'static dyn SupportedKxGroup], piece: usize) -> Result<Option<u16>, Vec<u8>> {
    try_groups(&Trial::new(), groups, piece)
}

fn try_groups(
    trial: &Trial,
    groups: &[&'static dyn SupportedKxGroup],
    piece: usize,
) -> Result<Option<u16>, Vec<u8>> {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.kx_groups = groups.to_vec();
    trial.shake_hands(trial.client(provider), piece).map(|shaken| shaken.agreed.group_number)
}

#[test]
fn clients_that_have_the_group_get_it_and_others_get_theirs() {
    let hybrid = Hybrid::new();
    let p384 = rustls::crypto::ring::kx_group::SECP384R1;
    for (groups, expected) in [
        (&[hybrid, X25519][..], 0x11ec),
        (&[hybrid], 0x11ec),
        (&[X25519, hybrid], 0x1d),
        (&[X25519], 0x1d),
        (&[p384], 0x18),
    ] {
        for piece in [usize::MAX, 100, 1] {
            assert_eq!(shake_hands(groups, piece), Ok(Some(expected)), "{groups:?}, {piece}");
        }
    }
}

#[test]
fn a_group_that_is_off_is_as_unknown() {
    let trial = Trial::new();
    trial.context.offer_hybrid(false);
    let hybrid = Hybrid::new();
    assert_eq!(try_groups(&trial, &[hybrid, X25519], usize::MAX), Ok(Some(0x1d)), "it is asked to retry");
    let refused = try_groups(&trial, &[hybrid], usize::MAX).expect_err("nothing in common");
    assert_eq!(refused[refused.len() - 7..], [21, 3, 3, 0, 2, 2, 40]);
    trial.context.offer_hybrid(true);
    assert_eq!(try_groups(&trial, &[hybrid], usize::MAX), Ok(Some(0x11ec)));
}

#[test]
fn a_faulty_share_gets_illegal_parameter() {
    // The client at hand sends no empty share.
    for (place, share) in faulty_shares().into_iter().enumerate().skip(1) {
        let group: &'static dyn SupportedKxGroup = Box::leak(Box::new(Sent(share)));
        let answers = shake_hands(&[group], usize::MAX).expect_err("refused");
        assert_eq!(answers[answers.len() - 7..], [21, 3, 3, 0, 2, 2, 47], "share {place}");
    }
}
