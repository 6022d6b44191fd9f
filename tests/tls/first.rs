//! Bytes that the server sends first and last: before it is asked, and behind what is under way. And answers
//! that come before the bodies of their requests.

use std::fs;
use std::path::Path;
use std::process::Command;

use staunch_tests::process::is_installed;

use crate::world::{BACKENDS, House, curl, python, run, text};

#[test]
fn the_server_speaks_first() {
    if !is_installed("python3") {
        return;
    }
    let house = House::new();
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        text(python(&house, &secured, &["first"]));
    }
}

#[test]
fn a_last_word_comes_behind_an_answer_under_way() {
    if !is_installed("python3") {
        return;
    }
    let house = House::new();
    house.write_file("large", 8_000_000);
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        text(python(&house, &secured, &["last_word"]));
    }
}

#[test]
fn curl_gets_early_answers() {
    if !is_installed("curl") {
        return;
    }
    let house = House::new();
    house.write_file("5000", 5_000);
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &[]) else { continue };
        for (size, times) in [(3, 10), (60_000, 10), (200_000, 3), (2_000_000, 3)] {
            fs::write(house.path("body"), vec![b'x'; size]).expect("a file");
            for _ in 0..times {
                let mut command = curl(&house);
                command.args(["--http2", "-w", "%{http_version} %{response_code}", "-o", "/dev/null"]);
                command.arg("--data-binary").arg(format!("@{}", house.path("body").display()));
                let told = text(run(command.arg(secured.url("/5000"))));
                assert_eq!(told, "2 405", "{backend}: {size} bytes");
            }
        }
    }
}

/// The connection would stay open for an hour, so nothing but the end of each stream ends it.
#[test]
fn node_sees_early_answers_end() {
    if !is_installed("node") {
        return;
    }
    let house = House::new();
    house.write_file("5000", 5_000);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tls/early.mjs");
    for backend in BACKENDS {
        let Some(secured) = house.serve(backend, &["--keep-alive=1h"]) else { continue };
        let mut command = Command::new("node");
        text(run(command.arg(&script).arg(secured.url("")).arg(house.path("ca.pem"))));
    }
}
