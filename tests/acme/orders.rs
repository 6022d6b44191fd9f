//! Certificates that are given: by a request, by a handshake, renewed, kept over a restart.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::world::{EAB_NAME, NAME, World, text, until};

#[test]
fn a_name_gets_a_certificate_by_a_request_and_goes_on_with_it_after_a_restart() {
    for backend in ["epoll", "uring"] {
        let Some(mut world) = World::with_authority() else { return };
        let arguments = ["--io", backend, "--acme-challenge", "http-01"];
        let Some(server) = world.serve(&arguments) else { continue };
        world.await_certificate();
        assert_eq!(world.issued(), 1);
        let serial = world.serial();
        // Plain HTTP is led to HTTPS, and a stranger who asks for a token gets no answer of a challenge.
        for path in ["/a", "/.well-known/acme-challenge/stranger"] {
            assert!(world.ask_plainly(path).starts_with("HTTP/1.1 308 "), "{}", world.ask_plainly(path));
        }
        // No other user can read the key.
        let folder = world.path("state/acme/certificates");
        let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(format!("{NAME}.pem")))), (0o700, 0o600));
        drop(server);
        world.stop_authority();
        let _server = world.serve(&arguments).expect("it was to be had before");
        assert_eq!((world.visit().stdout, world.serial()), (b"content".to_vec(), serial));
    }
}

#[test]
fn a_name_is_proved_by_a_handshake() {
    let Some(world) = World::with_authority() else { return };
    let _server = world.serve(&["--acme-challenge", "tls-alpn-01"]).expect("a server");
    world.await_certificate();
    assert_eq!(world.issued(), 1);
}

#[test]
fn an_account_is_bound_to_one_that_the_authority_knows() {
    let Some(world) = World::with_strict_authority() else { return };
    let unbound = world.serve(&[]).expect("a server");
    until("it is refused", || world.log().contains("the authority refuses (externalAccountRequired): "));
    drop(unbound);
    fs::remove_dir_all(world.path("state")).expect("the waits are forgotten");
    let file = world.path("eab.key").display().to_string();
    let arguments = ["--acme-eab-key-id", EAB_NAME, "--acme-eab-key-file", &file];
    let _server = world.serve(&arguments).expect("a server");
    world.await_certificate();
}

#[test]
fn a_certificate_is_listed_and_renewed_while_it_serves() {
    let Some(world) = World::with_authority() else { return };
    let _server = world.serve(&[]).expect("a server");
    world.await_certificate();
    let before = world.serial();
    let table = text(&world.certificates(&[]));
    assert!(table.contains(NAME) && table.contains("89 days") && table.contains("obtained"), "{table}");
    assert_eq!(text(&world.certificates(&["renew", NAME])), format!("{NAME}: renewed\n"));
    until("the new one is served", || world.serial() != before);
    assert_eq!((world.visit().stdout, world.issued()), (b"content".to_vec(), 2));
    let listed: serde_json::Value =
        serde_json::from_str(&text(&world.certificates(&["--json"]))).expect("JSON");
    let one = &listed["certificates"][0];
    assert_eq!((one["name"].as_str(), one["failures"].as_u64()), (Some(NAME), Some(0)), "{listed}");
    assert!(one["renew_unix_s"].as_u64() < one["not_after_unix_s"].as_u64(), "{listed}");
    let unknown = world.certificates(&["renew", "other.example"]);
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(!unknown.status.success() && said.contains("no certificate of that name"), "{said}");
}
