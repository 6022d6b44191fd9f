//! Tokens that hold, and each way in which one does not.

use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::*;
use crate::limits::{TOKEN_LEEWAY_S, TOKENS_REFUSED_REMEMBERED_MAX};
use crate::name::TopicName;

const SECRET: &[u8] = b"a secret that has at least 32 bytes";
const NOW_S: u64 = 1_000_000;

fn issuer(keys: Vec<Key>) -> Issuer {
    Issuer { name: "us".into(), audience: "hub".into(), keys, mercure_compatibility: false }
}

fn claims() -> Value {
    json!({"iss": "us", "aud": "hub", "exp": NOW_S + 60, "authorization_details": [
        {"type": "https://mercure.rocks/authorization-detail", "actions": ["publish", "subscribe"],
         "topics": [{"match": "a"}, {"match": "u.>", "match_type": "dotted"}]},
        {"type": "another", "actions": 7},
    ]})
}

fn with(member: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[member] = value;
    claims
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn signed_by(header: Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let signed = format!("{}.{}", part(&header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn hmac(secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
}

fn hs256(header: Value, claims: &Value) -> String {
    signed_by(header, claims, |message| hmac(SECRET, message))
}

fn plain() -> Value {
    json!({"alg": "HS256", "typ": "at+jwt"})
}

fn check(token: &str) -> Result<Granted, TokenFault> {
    verify(token.as_bytes(), &[issuer(vec![Key::secret(SECRET).unwrap()])], NOW_S)
}

#[test]
fn what_is_granted() {
    let granted = check(&hs256(plain(), &claims())).unwrap();
    let name = |text| TopicName::new(text).unwrap();
    for grants in [&granted.publish, &granted.subscribe] {
        assert!(grants.cover(&name("a")) && grants.cover(&name("u.1.x")) && !grants.cover(&name("b")));
    }
    assert_eq!(granted.ends_at_s, NOW_S + 60 + TOKEN_LEEWAY_S);
    let nothing = check(&hs256(plain(), &with("authorization_details", json!([])))).unwrap();
    assert!(nothing.publish.is_empty() && nothing.subscribe.is_empty());
}

#[test]
fn each_way_in_which_a_token_does_not_hold() {
    let detail = |detail: Value| with("authorization_details", json!([detail]));
    let kind = "https://mercure.rocks/authorization-detail";
    let table = [
        (hs256(json!({"alg": "HS256", "typ": "id+jwt"}), &claims()), TokenFault::Type),
        (hs256(json!({"alg": "HS256", "typ": "secevent+jwt"}), &claims()), TokenFault::Type),
        (hs256(json!({"alg": "none"}), &claims()), TokenFault::Algorithm),
        (hs256(json!({"alg": "HS512"}), &claims()), TokenFault::Algorithm),
        (hs256(json!({"alg": "HS256", "crit": ["b64"]}), &claims()), TokenFault::Algorithm),
        (signed_by(plain(), &claims(), |message| hmac(&[0; 32], message)), TokenFault::Signature),
        (signed_by(plain(), &claims(), |_| Vec::new()), TokenFault::Signature),
        (hs256(plain(), &with("iss", json!("them"))), TokenFault::Issuer),
        (hs256(plain(), &with("iss", Value::Null)), TokenFault::Issuer),
        (hs256(plain(), &with("aud", json!("shop"))), TokenFault::Audience),
        (hs256(plain(), &with("aud", json!(["shop"]))), TokenFault::Audience),
        (hs256(plain(), &with("aud", Value::Null)), TokenFault::Audience),
        (hs256(plain(), &with("exp", json!(NOW_S - TOKEN_LEEWAY_S))), TokenFault::Expired),
        (hs256(plain(), &with("exp", json!(-1))), TokenFault::Expired),
        (hs256(plain(), &with("exp", Value::Null)), TokenFault::Expired),
        (hs256(plain(), &with("nbf", json!(NOW_S + TOKEN_LEEWAY_S + 1))), TokenFault::Early),
        (hs256(plain(), &detail(json!({"type": kind}))), TokenFault::Grants),
        (
            hs256(plain(), &detail(json!({"type": kind, "actions": ["own"], "topics": []}))),
            TokenFault::Grants,
        ),
        (
            hs256(
                plain(),
                &detail(json!({"type": kind, "actions": ["publish"], "topics": [{"match": "$x"}]})),
            ),
            TokenFault::Grants,
        ),
        (hs256(plain(), &json!([])), TokenFault::Form),
        ("a.b".to_owned(), TokenFault::Form),
        ("".to_owned(), TokenFault::Form),
        ("é.é.é".to_owned(), TokenFault::Form),
        (format!("{}=", hs256(plain(), &claims())), TokenFault::Form),
        ("x".repeat(TOKEN_BYTES_MAX + 1), TokenFault::Form),
    ];
    for (token, fault) in table {
        assert_eq!(check(&token), Err(fault), "{token}");
    }
    let audiences = with("aud", json!(["shop", "hub"]));
    assert!(check(&hs256(json!({"alg": "HS256"}), &audiences)).is_ok());
}

#[test]
fn a_claim_of_mercure_0_is_taken_where_that_is_wanted() {
    let old = json!({"exp": NOW_S + 1, "mercure": {"publish": ["*"], "subscribe": ["a"]}});
    let token = hs256(json!({"alg": "HS256", "typ": "JWT"}), &old);
    assert_eq!(check(&token), Err(TokenFault::Issuer));
    let mut issuer = issuer(vec![Key::secret(SECRET).unwrap()]);
    issuer.mercure_compatibility = true;
    let compatible = [issuer];
    let granted = verify(token.as_bytes(), &compatible, NOW_S).unwrap();
    let name = |text| TopicName::new(text).unwrap();
    assert!(granted.publish.cover(&name("anything")) && granted.subscribe.cover(&name("a")));
    assert!(!granted.subscribe.cover(&name("b")));
    // The tokens of its documentation have no end.
    let endless = |claims: Value| verify(hs256(plain(), &claims).as_bytes(), &compatible, NOW_S);
    let granted = endless(json!({"mercure": {"publish": ["a"]}})).unwrap();
    assert!(granted.ends_at_s == 0 && !granted.has_ended(u64::MAX));
    assert_eq!(endless(with("exp", Value::Null)), Err(TokenFault::Expired), "those of today have one");
    for exp in [json!(0), json!(-1), json!(NOW_S - TOKEN_LEEWAY_S)] {
        let past = endless(json!({"exp": exp, "mercure": {"publish": ["a"]}}));
        assert_eq!(past, Err(TokenFault::Expired), "one that is said counts");
    }
    let mut memory = TokenMemory::default();
    memory.remember(b"endless", std::sync::Arc::new(granted));
    assert!(matches!(memory.find(b"endless", u64::MAX), Some(KnownToken::Good(_))));
}

#[test]
fn what_libraries_write_unasked_and_clocks_that_differ_are_taken() {
    for kind in ["JWT", "jwt", "application/at+jwt", "AT+JWT"] {
        assert!(check(&hs256(json!({"alg": "HS256", "typ": kind}), &claims())).is_ok(), "{kind}");
    }
    let late = check(&hs256(plain(), &with("exp", json!(NOW_S - TOKEN_LEEWAY_S + 1)))).unwrap();
    assert!(!late.has_ended(NOW_S) && late.has_ended(NOW_S + 1));
    assert!(check(&hs256(plain(), &with("nbf", json!(NOW_S + TOKEN_LEEWAY_S)))).is_ok());
    assert_eq!(check(&hs256(plain(), &with("exp", json!(1e300)))).unwrap().ends_at_s, u64::MAX);
}

#[test]
fn what_is_made_is_taken_and_nothing_else_is_made() {
    let ours = issuer(vec![Key::secret(SECRET).unwrap()]);
    let making = |publish: &[&str], subscribe: &[&str]| {
        let [publish, subscribe] =
            [publish, subscribe].map(|all| all.iter().map(|&one| one.to_owned()).collect());
        make(&Making { publish, subscribe, now_s: NOW_S, holds_s: 60 }, &ours)
    };
    let granted = check(&making(&["scores", "u.7.>"], &["*"]).unwrap()).unwrap();
    let name = |text| TopicName::new(text).unwrap();
    assert!(granted.publish.cover(&name("u.7.x")) && !granted.publish.cover(&name("u.8.x")));
    assert!(granted.publish.cover(&name("scores")) && granted.subscribe.cover(&name("anything")));
    assert_eq!(making(&["$x"], &[]), Err(TokenFault::Grants));
    let public = Issuer { keys: Vec::new(), ..ours.clone() };
    assert_eq!(make(&Making::default(), &public), Err(TokenFault::Algorithm));
    assert_eq!(
        make(&Making { now_s: NOW_S, ..Making::default() }, &ours).map(|_| ()),
        Ok(()),
        "it ends soon"
    );
    let names: std::collections::HashSet<&str> = TokenFault::ALL.iter().map(|fault| fault.name()).collect();
    assert_eq!(names.len(), TokenFault::ALL.len());
}

/// RFC 7515, appendix A.2 and A.3, and RFC 8037, appendix A: their keys, and their signatures where the
/// payload can be chosen.
#[test]
fn keys_of_every_algorithm() {
    let signing = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let x = URL_SAFE_NO_PAD.encode(signing.public_key());
    let ed = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "ed"});
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let ec_key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap();
    let (ex, ey) = ec_key.public_key().as_ref()[1..].split_at(32);
    let [ex, ey] = [ex, ey].map(|half| URL_SAFE_NO_PAD.encode(half));
    let ec = json!({"kty": "EC", "crv": "P-256", "x": ex, "y": ey, "use": "sig"});
    let other = json!({"kty": "EC", "crv": "P-521"});
    let set = json!({"keys": [ed, ec, other, {"kty": "oct", "use": "enc"}]}).to_string();
    let keys = read_keys(set.as_bytes()).unwrap();
    let names: Vec<&str> = keys.iter().map(Key::algorithm).collect();
    assert_eq!(names, ["EdDSA", "ES256"]);
    let issuers = [issuer(keys)];
    let check = |token: String| verify(token.as_bytes(), &issuers, NOW_S).map(|_| ());
    let ed_sign = |message: &[u8]| signing.sign(message).as_ref().to_vec();
    assert_eq!(check(signed_by(json!({"alg": "EdDSA"}), &claims(), ed_sign)), Ok(()));
    assert_eq!(check(signed_by(json!({"alg": "EdDSA", "kid": "ed"}), &claims(), ed_sign)), Ok(()));
    let another = json!({"alg": "EdDSA", "kid": "other"});
    assert_eq!(check(signed_by(another, &claims(), ed_sign)), Err(TokenFault::Algorithm));
    let ec_sign = |message: &[u8]| ec_key.sign(&random, message).unwrap().as_ref().to_vec();
    assert_eq!(check(signed_by(json!({"alg": "ES256"}), &claims(), ec_sign)), Ok(()));
    assert_eq!(check(signed_by(json!({"alg": "ES256"}), &claims(), ed_sign)), Err(TokenFault::Signature));
    // A secret made of a public key's bytes signs nothing: the key is not one of HS256.
    let confused = signed_by(json!({"alg": "HS256"}), &claims(), |message| hmac(x.as_bytes(), message));
    assert_eq!(check(confused), Err(TokenFault::Algorithm));
}

/// RFC 7515, appendix A.2.
#[test]
fn a_signature_by_rsa() {
    let modulus = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJ\
                   PMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0\
                   LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uD\
                   Zlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2\
                   PAcDTW9gb54h4FRWyuXpoQ";
    let set = json!({"keys": [{"kty": "RSA", "n": modulus, "e": "AQAB"}]}).to_string();
    let keys = read_keys(set.as_bytes()).unwrap();
    let signed = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9\
                  leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF\
                     5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK\
                     5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqt\
                     FZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB\
                     p0igcN_IoypGlUPQGe77Rw";
    let token = format!("{signed}.{signature}");
    let mut joe = issuer(keys);
    joe.name = "joe".into();
    // The signature holds; what the example lacks for us is an audience.
    assert_eq!(verify(token.as_bytes(), &[joe.clone()], 1), Err(TokenFault::Audience));
    let changed = token.replace("cC4h", "cC4i");
    assert_eq!(verify(changed.as_bytes(), &[joe], 1), Err(TokenFault::Signature));
}

#[test]
fn keys_that_cannot_be_used() {
    assert_eq!(Key::secret(&[0; 31]).err(), Some(KeyFault::ShortSecret));
    let set = |key: Value| read_keys(json!({"keys": [key]}).to_string().as_bytes()).err();
    assert_eq!(set(json!({"kty": "oct", "k": "c2hvcnQ"})), Some(KeyFault::ShortSecret));
    assert_eq!(set(json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"})), Some(KeyFault::ShortRsa));
    assert_eq!(
        set(json!({"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"})),
        Some(KeyFault::Broken(1))
    );
    // 32 bytes each, but no point of the curve.
    let half = URL_SAFE_NO_PAD.encode([7; 32]);
    assert_eq!(set(json!({"kty": "EC", "crv": "P-256", "x": half, "y": half})), Some(KeyFault::Broken(1)));
    let rsa = |bits: usize, last: u8, exponent: &str| {
        let mut modulus = vec![0xff; bits / 8];
        modulus.push(last);
        modulus.remove(0);
        // A zero before the number is the sign of ASN.1, which some programs leave there.
        modulus.insert(0, 0);
        set(json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode(modulus), "e": exponent}))
    };
    assert_eq!(rsa(2048, 0xff, "AQAB"), None);
    assert_eq!(rsa(2040, 0xff, "AQAB"), Some(KeyFault::ShortRsa));
    assert_eq!(rsa(8200, 0xff, "AQAB"), Some(KeyFault::LongRsa));
    assert_eq!(rsa(2048, 0xfe, "AQAB"), Some(KeyFault::Broken(1)), "even");
    for exponent in ["", "AQ", "AA", "Ag", "A____w"] {
        let is_good = exponent == "A____w";
        assert_eq!(rsa(2048, 0xff, exponent), (!is_good).then_some(KeyFault::Broken(1)), "{exponent}");
    }
    assert_eq!(set(json!({"kty": "OKP", "crv": "Ed25519", "x": "AQAB"})), Some(KeyFault::Broken(1)));
    assert_eq!(set(json!({"kty": "OKP", "crv": "X25519", "x": "AQAB"})), Some(KeyFault::Empty));
    assert!(matches!(read_keys(b"{}"), Err(KeyFault::NoSet(_))));
    assert!(matches!(read_keys(b"-----BEGIN PUBLIC KEY-----"), Err(KeyFault::NoSet(_))));
}

#[test]
fn a_token_is_checked_once() {
    let mut memory = TokenMemory::default();
    let token = hs256(plain(), &claims());
    let granted = std::sync::Arc::new(check(&token).unwrap());
    assert_eq!(memory.find(token.as_bytes(), NOW_S), None);
    memory.remember(token.as_bytes(), granted.clone());
    assert_eq!(memory.find(token.as_bytes(), NOW_S), Some(KnownToken::Good(granted)));
    assert_eq!(memory.find(token.as_bytes(), NOW_S + 60 + TOKEN_LEEWAY_S), None, "not longer than it holds");
    assert_eq!(memory.find(b"another", NOW_S), None);
    for (fault, is_known) in
        [(TokenFault::Signature, true), (TokenFault::Early, false), (TokenFault::Expired, true)]
    {
        let token = format!("{fault:?}");
        memory.refuse(token.as_bytes(), fault, NOW_S);
        let refused = is_known.then_some(KnownToken::Refused(fault));
        assert_eq!(memory.find(token.as_bytes(), NOW_S + 1000), refused, "{fault:?}");
    }
    assert_eq!(memory.find(b"Expired", NOW_S - 1), None, "the clock was put back");
    for number in 0..=TOKENS_REFUSED_REMEMBERED_MAX as u64 {
        memory.refuse(&number.to_be_bytes(), TokenFault::Form, NOW_S);
    }
    assert_eq!(memory.find(b"Signature", NOW_S), None, "the oldest gives way");
    assert_eq!(memory.find(&[0; 8], NOW_S), None);
}
