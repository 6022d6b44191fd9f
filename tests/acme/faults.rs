//! What goes wrong, and is said: an authority that is away or refuses, a folder that cannot be used, a lock
//! that another holds, settings that cannot be meant.

use std::fs;
use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use staunch_tests::process::{Server, finish};

use crate::world::{BLOCKED, NAME, World, until};

#[test]
fn an_authority_that_is_away_at_the_start_is_asked_again() {
    let Some(mut world) = World::new() else { return };
    let _server = world.serve(&[]).expect("a server");
    let expected = format!("acme: {NAME}: the authority cannot be reached: ");
    until("it is said", || world.log().contains(&expected));
    // Meanwhile there is no certificate to show, and plain HTTP is answered.
    assert!(world.ask_plainly("/a").ends_with("content"));
    assert!(!world.visit().status.success());
    world.start_authority();
    world.await_certificate();
    assert!(world.log().contains(&format!("acme: {NAME}: a certificate of 127.0.0.1:")), "{}", world.log());
}

#[test]
fn a_refused_order_is_named_and_nothing_is_asked_at_once_again() {
    let Some(world) = World::with_authority() else { return };
    let _server = Server::spawn(&mut world.command(BLOCKED)).expect("a server");
    let expected = format!("acme: {BLOCKED}: the authority refuses (rejectedIdentifier): ");
    until("it is said", || world.log().contains(&expected));
    let listed = world.certificates(&[]);
    let table = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(table.contains("no certificates in "), "{table}");
    let record = fs::read_to_string(world.path(&format!("state/acme/records/{BLOCKED}.json")));
    let record: serde_json::Value = serde_json::from_str(&record.expect("a file")).expect("JSON");
    let wait = record["not_before_unix_s"].as_u64().zip(record["attempted_unix_s"].as_u64());
    assert!(wait.is_some_and(|(next, last)| (60..=66).contains(&(next - last))), "{record}");
}

#[test]
fn a_folder_that_cannot_be_used_is_named_and_the_server_serves() {
    let Some(world) = World::with_authority() else { return };
    fs::write(world.path("state"), "no folder").expect("a file");
    let _server = world.serve(&[]).expect("a server");
    let expected = format!("acme: {NAME}: {}", world.path("state/acme").display());
    until("it is said", || world.log().contains(&expected));
    assert!(world.ask_plainly("/a").ends_with("content"));
    assert_eq!(world.issued(), 0, "nothing is ordered that cannot be kept");
}

#[test]
fn a_locked_store_is_waited_for() {
    let Some(world) = World::with_authority() else { return };
    fs::create_dir_all(world.path("state/acme")).expect("a folder");
    let lock = File::create(world.path("state/acme/lock")).expect("a file");
    flock(&lock, FlockOperation::LockExclusive).expect("nobody else has it");
    let _server = world.serve(&[]).expect("a server");
    until("it is said", || world.log().contains("another server orders with "));
    assert_eq!(world.issued(), 0);
    drop(lock);
    world.await_certificate();
}

#[test]
fn what_cannot_be_got_is_refused_at_the_start() {
    let Some(world) = World::new() else { return };
    for (name, expected) in [
        ("*.example.org", "a wildcard is proved by DNS (dns-01), which is not spoken here"),
        ("", "there is none: write `name`, or `hosts` of a site"),
    ] {
        let finished = finish(&mut world.command(name));
        assert_eq!(finished.status.code(), Some(78), "{name}: {}", finished.stderr);
        assert!(finished.stderr.contains(expected), "{name}: {}", finished.stderr);
    }
}
