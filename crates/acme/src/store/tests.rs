//! Files of the store: rights, wholeness, names that lead nowhere else, the lock.

use std::os::unix::fs::PermissionsExt as _;

use staunch_tls::{CertificateRequest, LocalAuthority};

use super::*;
use crate::record::AttemptOutcome;

const NOW: u64 = 1_795_000_000;
const DIRECTORY: &str = "https://acme.example/dir";

fn store(name: &str) -> Store {
    let path = std::env::temp_dir().join(format!("staunch-acme-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    Store::new(path.join("acme"))
}

fn remove(store: &Store) {
    fs::remove_dir_all(store.folder().parent().expect("a folder")).expect("ours");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn what_is_kept_is_read_again_and_nobody_elses() {
    let store = store("kept");
    store.prepare().expect("folders");
    let issued = LocalAuthority::create(NOW).expect("made").issue(&["localhost"], NOW).expect("issued");
    store.keep("localhost", issued.certificate_pem.as_bytes(), &issued.key_pem).expect("kept");
    let (pair, chain) = store.pair("localhost").expect("readable").expect("there");
    assert!(pair.covers("localhost") && chain == issued.certificate_pem.as_bytes());
    let record =
        NameRecord { outcome: AttemptOutcome::Failed("no".into()), failures: 3, ..NameRecord::default() };
    store.keep_record("localhost", &record).expect("kept");
    assert_eq!(store.record("localhost").expect("readable"), record);
    let (url, key) = store.account(DIRECTORY).expect("made");
    assert_eq!(url, None);
    store.keep_account(DIRECTORY, Some("https://acme.example/1"), &key).expect("kept");
    let (url, again) = store.account(DIRECTORY).expect("readable");
    assert_eq!((url.as_deref(), again.authorize("t")), (Some("https://acme.example/1"), key.authorize("t")));
    assert_eq!(store.names().expect("readable"), ["localhost"]);
    for file in [store.certificate_file("localhost"), store.account_file(DIRECTORY)] {
        assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
    }
    remove(&store);
}

#[test]
fn what_is_not_there_is_nothing_and_what_is_damaged_is_named() {
    let store = store("damaged");
    assert!(store.names().expect("none").is_empty() && store.pair("a").expect("none").is_none());
    assert_eq!(store.record("a").expect("none"), NameRecord::default());
    store.prepare().expect("folders");
    let request = CertificateRequest::new("a").expect("a key");
    store.keep("a", b"nonsense", &request.key_pem).expect("kept");
    let fault = store.pair("a").err().expect("no pair").to_string();
    assert!(fault.contains("certificates/a.pem: no certificate"), "{fault}");
    fs::create_dir_all(store.account_file(DIRECTORY).parent().expect("a folder")).expect("made");
    fs::write(store.account_file(DIRECTORY), "{").expect("written");
    let fault = store.account(DIRECTORY).err().expect("no account").to_string();
    assert!(fault.contains("account.json: EOF"), "{fault}");
    remove(&store);
}

#[test]
fn names_lead_nowhere_else() {
    for (name, expected) in [
        ("Example.org", "example.org"),
        ("../../etc/passwd", "_.._.._etc_passwd"),
        ("::1", "__1"),
        (".", "_."),
        ("a\0b", "a_b"),
    ] {
        assert_eq!(file_name(name), expected);
    }
    assert_eq!(authority("https://acme.example:14000/dir"), "at-acme.example_14000_dir");
}

#[test]
fn the_lock_is_one_processs_and_ends_with_it() {
    let store = store("lock");
    store.prepare().expect("folders");
    let lock = store.try_lock().expect("a file").expect("free");
    assert!(store.try_lock().expect("a file").is_none());
    drop(lock);
    assert!(store.try_lock().expect("a file").is_some());
    remove(&store);
}

#[test]
fn a_wish_is_taken_once() {
    let store = store("wish");
    store.prepare().expect("folders");
    store.ask_for_renewal("example.org").expect("written");
    assert!(!store.take_wish("example.net"));
    assert!(store.take_wish("example.org") && !store.take_wish("example.org"));
    remove(&store);
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let store = store("file");
    fs::create_dir_all(store.folder().parent().expect("a folder")).expect("made");
    fs::write(store.folder(), "a file").expect("written");
    let fault = store.prepare().expect_err("no folder").to_string();
    assert!(fault.contains("/acme: "), "{fault}");
    remove(&store);
}
