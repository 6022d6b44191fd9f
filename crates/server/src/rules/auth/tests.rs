//! Tests of credentials, with hashes made by other programs: `argon2` and `htpasswd -B`.

use super::*;
use crate::content::testing::Folder;

/// `echo -n secret | argon2 somesalt -id -t 1 -k 8 -p 1 -e`
const ARGON2: &str = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A";
/// `htpasswd -nbB -C 4 x sesame`
const BCRYPT: &str = "$2y$04$o47T2XpOSOc..qW12xHpD.sjWFiDuFL6WcZB6Tz0JB4aDm2Ls9AZa";

/// `openssl passwd -apr1 -salt saltsalt password`
const APR1: &str = "$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/";
/// `htpasswd -nbs x password`
const SHA: &str = "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=";

fn config(users: &[(&str, &str)]) -> BasicAuth {
    let users = users.iter().map(|&(name, hash)| (name.to_owned(), hash.to_owned())).collect();
    BasicAuth { realm: "a \"place\"".to_owned(), users, users_file: None }
}

fn field(text: &[u8]) -> Vec<u8> {
    format!("Basic {}", STANDARD.encode(text)).into_bytes()
}

#[test]
fn credentials_are_checked() {
    let auth =
        Auth::new(&config(&[("anna", ARGON2), ("bert", BCRYPT), ("carl", APR1), ("dora", SHA)])).unwrap();
    for (text, good) in [
        ("anna:secret", true),
        ("bert:sesame", true),
        ("anna:sesame", false),
        ("bert:secret", false),
        ("anna:", false),
        (":secret", false),
        ("Anna:secret", false),
        ("nobody:secret", false),
        ("anna:secret ", false),
        ("anna:sec\0ret", false),
        ("carl:password", true),
        ("carl:sesame", false),
        ("dora:password", true),
        ("dora:", false),
    ] {
        assert_eq!(auth.verify(&field(text.as_bytes()), 7), good.then_some(7), "{text:?}");
    }
    assert_eq!(auth.verify(&field(b"anna:secret"), 9), Some(7), "remembered since then");
    assert_eq!(auth.verify(&field(b"anna:secret"), 7 + CREDENTIALS_KEPT_S), Some(7 + CREDENTIALS_KEPT_S));
    assert_eq!(auth.challenge(), "WWW-Authenticate: Basic realm=\"a \\\"place\\\"\", charset=\"UTF-8\"\r\n");
}

#[test]
fn a_refusal_costs_the_same_for_every_name() {
    let users = [("anna", ARGON2), ("bert", BCRYPT), ("carl", APR1), ("dora", SHA), ("emil", APR1)];
    for users in [&users[..], &users[..1], &users[2..3], &users[1..4], &users[3..]] {
        let auth = Auth::new(&config(users)).unwrap();
        let costs = |name: &str| {
            let mut costs: Vec<String> = auth.tried(name.as_bytes()).map(cost).collect();
            costs.sort_unstable();
            costs
        };
        let stranger = costs("nobody");
        assert!(!stranger.is_empty());
        for (name, hash) in users {
            assert_eq!(costs(name), stranger, "{name} of {users:?}");
            assert_eq!(auth.tried(name.as_bytes()).next(), Some(*hash));
        }
    }
}

#[test]
fn costs_of_hashes() {
    let salted = "$apr1$salt$yAAkm4libquA.ZWLHbSBq/";
    let dearer = ARGON2.replace("m=8", "m=16");
    let all = [ARGON2, &dearer, BCRYPT, APR1, salted, SHA];
    for (place, hash) in all.iter().enumerate() {
        assert!(all[..place].iter().all(|other| cost(other) != cost(hash)), "{hash}");
    }
    assert_eq!(cost(BCRYPT), cost(&BCRYPT.replace("$2y$", "$2b$")));
    assert_eq!(cost(APR1), cost("$apr1$8sFt66rZ$cY86jKpdqWFRY4SsYwfun0"));
    assert_eq!(cost(SHA), cost("{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="));
}

#[test]
fn forms_of_the_field() {
    for (value, good) in [
        ("Basic YTpi", true),
        ("basic YTpi", true),
        ("BASIC  YTpi ", true),
        ("Basic", false),
        ("Basic YTpi YTpi", false),
        ("Basic YQ==", false),
        ("Basic ?", false),
        ("Bearer YTpi", false),
        ("BasicYTpi", false),
        ("", false),
    ] {
        assert_eq!(credentials(value.as_bytes()).is_some(), good, "{value:?}");
    }
}

#[test]
fn tags_tell_credentials_apart_and_are_secret() {
    let one = Auth::new(&config(&[("anna", ARGON2)])).unwrap();
    let other = Auth::new(&config(&[("anna", ARGON2)])).unwrap();
    assert_eq!(one.tag(b"a"), one.tag(b"a"));
    assert_ne!(one.tag(b"a"), one.tag(b"b"));
    assert_ne!(one.tag(b"a"), other.tag(b"a"));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut remembered = Remembered::default();
    for tag in 0..3 * CREDENTIALS_KEPT_MAX as u128 {
        remembered.add(tag, 0);
        assert!(remembered.0.len() <= CREDENTIALS_KEPT_MAX);
    }
}

#[test]
fn hashes_that_are_none() {
    for (hash, words) in [
        ("secret", "neither argon2id"),
        ("$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAA", "neither argon2id"),
        ("$argon2id$x", "form $argon2id"),
        (
            "$argon2id$v=19$m=4194304,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A",
            "more than",
        ),
        (
            "$argon2id$v=19$m=8,t=1000,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A",
            "more than",
        ),
        ("$2y$04$short", "form $2b"),
        ("$2y$31$o47T2XpOSOc..qW12xHpD.sjWFiDuFL6WcZB6Tz0JB4aDm2Ls9AZa", "cost is 31"),
        ("{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "neither argon2id"),
        ("{SHA}W6ph5Mm5Pz8", "form $apr1$SALT$HASH or {SHA}HASH"),
    ] {
        let fault = Auth::new(&config(&[("anna", hash)])).unwrap_err();
        assert!(fault.contains("user anna") && fault.contains(words), "{fault}");
        assert!(!fault.contains(hash), "{fault}");
    }
    assert!(Auth::new(&config(&[("a:b", BCRYPT)])).unwrap_err().contains("\"a:b\" is no user's name"));
}

#[test]
fn files_of_users() {
    let folder = Folder::new();
    folder.write("good", format!("# people\n\nanna:{ARGON2}\n bert:{BCRYPT}\n").as_bytes());
    folder.write("bad", format!("anna:{ARGON2}\nbert\n").as_bytes());
    folder.write("worse", b"anna:plain\n");
    let with = |name: &str| {
        let users_file = Some(folder.path().join(name));
        with_users_file(&BasicAuth { users_file, ..config(&[("carl", BCRYPT)]) })
    };
    let names = with("good").unwrap().users.into_keys().collect::<Vec<_>>();
    assert_eq!(names, ["anna", "bert", "carl"]);
    assert!(with("bad").unwrap_err().ends_with("bad:2: write NAME:HASH"));
    assert!(with("worse").unwrap_err().contains("worse:1: the hash is neither"));
    assert!(with("none").unwrap_err().contains("none: No such file"));
}

#[test]
fn new_hashes_are_good_for_their_password_alone() {
    use super::super::hashing::{Hashing, hash_password};
    let salt = *b"0123456789abcdef";
    for hashing in [Hashing::Argon2id, Hashing::Bcrypt { cost: 4 }] {
        let hash = hash_password(b"sesame", hashing, salt).unwrap();
        let auth = Auth::new(&config(&[("anna", &hash)])).unwrap();
        assert_eq!(auth.verify(&field(b"anna:sesame"), 7), Some(7), "{hash}");
        assert_eq!(auth.verify(&field(b"anna:sesam"), 7), None, "{hash}");
        assert!(hash_password(b"", hashing, salt).is_err());
    }
    let bcrypt = |password: &[u8], cost| hash_password(password, Hashing::Bcrypt { cost }, salt);
    assert!(bcrypt(&[b'a'; 73], 4).unwrap_err().contains("argon2id"));
    assert!(bcrypt(&[b'a'; 72], 4).is_ok());
    assert!(bcrypt(b"sesame", 3).is_err() && bcrypt(b"sesame", 16).is_err());
}
