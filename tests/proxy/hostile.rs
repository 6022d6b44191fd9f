//! Clients, names and settings that would do harm to others: each was found by an attack.

use std::io::Write as _;

use staunch_tests::process::{binary, finish};
use staunch_tests::truth::Plan;

use crate::scripted::play;
use crate::world::{Client, ENGINES, World, application};

#[test]
fn a_name_that_leads_nowhere_is_502_and_harms_nobody() {
    for io in ENGINES {
        let (_truth, address) = application(Plan::default());
        let settings =
            format!("proxy = \"{address}\"\n[[path]]\nmatch = \"/typo*\"\nproxy = \"nosuch.invalid:9401\"\n");
        let (world, _tree) = World::serve(io, &settings);
        assert_eq!([world.get("/typo").status, world.get("/ok").status], [502, 200], "{io}");
    }
}

#[test]
fn clients_that_send_long_bodies_slowly_leave_the_places_to_others() {
    for io in ENGINES {
        let (_truth, address) = application(Plan::default());
        let mut world = World::proxy(io, &[address], &["--proxy-limit", "2", "--proxy-body-size", "16KiB"]);
        let slow: Vec<Client> = (0..8)
            .map(|_| {
                let mut client = Client::of(&world);
                client.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
                client.send(&[b'x'; 40_000]);
                client
            })
            .collect();
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
        assert_eq!(world.get("/ok").status, 200, "{io}");
        drop(slow);
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
    }
}

#[test]
fn requests_behind_each_other_are_all_given_up_with_their_client() {
    for io in ENGINES {
        let (truth, address) = application(Plan::default());
        let mut world = World::proxy(io, &[address], &["--proxy-limit", "1"]);
        let mut client = Client::of(&world);
        client.send(b"GET /ok HTTP/1.1\r\nHost: a\r\n\r\nGET /stall HTTP/1.1\r\nHost: a\r\n\r\n");
        drop(client);
        truth.await_counts(|counts| counts.connections_accepted > 0);
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
        assert_eq!(world.get("/ok").status, 200, "{io}");
    }
}

#[test]
fn a_trusted_proxy_is_believed_and_its_own_address_added() {
    let (address, got) = play(|application, _| {
        application.head();
        application.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let trusted = ["--trusted-proxies", "127.0.0.0/8"];
    let world = World::proxy("epoll", &[address.to_string()], &trusted);
    world.ask(
        "GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Proto: https\r\n\r\n",
    );
    let seen = String::from_utf8(got.recv().expect("a request")).expect("text");
    assert!(seen.contains("\r\nX-Forwarded-For: 198.51.100.1, 127.0.0.1\r\n"), "{seen}");
    assert!(seen.contains("\r\nX-Forwarded-Proto: https\r\n"), "{seen}");
    // A trusted proxy that names nobody is believed all the same.
    world.ask("GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\n\r\n");
    let seen = String::from_utf8(got.recv().expect("a request")).expect("text");
    assert!(seen.contains("\r\nX-Forwarded-Proto: https\r\n"), "{seen}");
}

#[test]
fn an_upgrade_that_would_pass_all_rules_is_not_passed_on() {
    let (address, got) = play(|application, _| {
        application.head();
        application.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    let world = World::proxy("uring", &[address.to_string()], &[]);
    world.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n");
    let seen = String::from_utf8(got.recv().expect("a request")).expect("text");
    assert!(!seen.contains("h2c") && !seen.contains("Upgrade"), "{seen}");
}

#[test]
fn two_applications_share_one_connection_that_there_may_be() {
    for io in ENGINES {
        let (_one, one) = application(Plan::default());
        let (_other, other) = application(Plan::default());
        let settings = format!(
            "workers = 1\nproxy_connections = 1\nproxy = \"{one}\"\n\
             [[path]]\nmatch = \"/chunked*\"\nproxy = \"{other}\"\n"
        );
        let tree = staunch_tests::tree::Tree::with(&[]).expect("a tree");
        std::fs::write(World::settings_file(&tree), settings).expect("a file");
        let mut command = std::process::Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--io", io, "--config"]);
        let world = World::of(command.arg(World::settings_file(&tree)));
        let mut client = Client::of(&world);
        for number in 0..20 {
            let path = if number % 2 == 0 { "/ok" } else { "/chunked" };
            client
                .stream
                .write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())
                .expect("sent");
            assert_eq!(client.read(false).status, 200, "{io} {number}");
        }
    }
}

#[test]
fn words_that_are_no_server_are_refused() {
    for words in [&["off"][..], &["127.0.0.1:0"], &["https://a.test/x"], &[]] {
        let mut command = std::process::Command::new(binary());
        let finished = finish(command.arg("proxy").args(words).args(["--listen", "127.0.0.1:0"]));
        assert_eq!(finished.status.code(), Some(2), "{words:?}: {}", finished.stderr);
    }
    let help = finish(std::process::Command::new(binary()).args(["proxy", "--help"])).stdout;
    let servers = help.split("SERVER").nth(2).expect("the help of the servers");
    assert!(!servers.split("Options:").next().expect("a part").contains("possible values"), "{help}");
}
