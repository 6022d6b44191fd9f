//! Clients that stay with a server.

use std::collections::BTreeSet;

use staunch_tests::house::waiting::until;

use crate::checks::{Checked, FAILS, WELL};
use crate::world::{ENGINES, Told as _, World};

const NAMES: [&str; 3] = ["one", "two", "three"];

fn proxy(io: &str, servers: &[Checked], further: &[&str]) -> World {
    let addresses: Vec<String> = servers.iter().map(|one| one.address.to_string()).collect();
    World::proxy(io, &addresses, further)
}

/// The answer to a request with these field lines.
fn ask(world: &World, lines: &str) -> staunch_tests::response::Response {
    world.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
}

/// The cookie that a client without one is given, as it sends it back.
fn cookie(world: &World) -> String {
    let response = ask(world, "");
    let line = response.value("set-cookie").expect("a cookie");
    let (pair, attributes) = line.split_once(';').expect("attributes");
    assert_eq!(attributes, " Path=/; HttpOnly; SameSite=Lax");
    let (name, value) = pair.split_once('=').expect("a pair");
    assert!(name == "staunch_sticky" && value.len() == 16, "{pair}");
    pair.to_owned()
}

#[test]
fn a_cookie_leads_to_the_same_server_in_whichever_process_and_no_further() {
    for io in ENGINES {
        let servers = NAMES.map(Checked::start);
        let arguments = ["--proxy-sticky", "cookie"];
        let (world, other) = (proxy(io, &servers, &arguments), proxy(io, &servers, &arguments));
        let cookies: Vec<String> = (0..24).map(|_| cookie(&world)).collect();
        let mut reached = BTreeSet::new();
        for cookie in &cookies {
            let field = format!("Cookie: a=1; {cookie}; b=2\r\n");
            let answers: BTreeSet<String> =
                [&world, &world, &other].map(|world| ask(world, &field).text()).into();
            assert_eq!(answers.len(), 1, "{io}: {answers:?}");
            assert!(ask(&world, &field).value("set-cookie").is_none(), "{io}: it has one");
            reached.extend(answers);
        }
        assert_eq!(reached.len(), 3, "{io}: clients are spread");
        // A cookie of a parent domain before ours is passed over.
        let field = format!("Cookie: staunch_sticky=old; {}\r\n", cookies[0]);
        assert!(ask(&world, &field).value("set-cookie").is_none(), "{io}: it has one");
        // A cookie that was made up is replaced, and what the application gets has none of ours.
        assert_eq!(ask(&world, "Cookie: staunch_sticky=10.0.0.1:80\r\n").values("set-cookie").count(), 1);
        let got: Vec<String> = servers
            .iter()
            .flat_map(|server| server.got.try_iter())
            .map(|head| String::from_utf8_lossy(&head).into_owned())
            .collect();
        assert!(got.iter().all(|head| !head.contains("staunch_sticky")), "{io}");
        assert!(got.iter().any(|head| head.contains("\r\nCookie: a=1; b=2\r\n")), "{io}");
    }
}

#[test]
fn a_client_goes_elsewhere_while_its_server_is_ill_and_comes_back() {
    for io in ENGINES {
        let servers = NAMES.map(Checked::start);
        let checks = ["--proxy-check", "/healthz", "--proxy-check-interval", "150ms"];
        let mut world = proxy(io, &servers, &[&["--proxy-sticky", "cookie"], &checks[..]].concat());
        let field = format!("Cookie: {}\r\n", cookie(&world));
        let first = ask(&world, &field).text();
        let index = NAMES.iter().position(|name| *name == first).expect("a server");
        servers[index].until_it_is(1.0, &mut world);
        servers[index].be(FAILS);
        until("it goes elsewhere", || {
            let response = ask(&world, &field);
            assert!(response.value("set-cookie").is_none(), "{io}: it keeps its cookie");
            response.text() != first
        });
        servers[index].be(WELL);
        until("it comes back", || (0..10).all(|_| ask(&world, &field).text() == first));
    }
}

#[test]
fn an_address_leads_to_the_same_server_in_whichever_process() {
    for io in ENGINES {
        let servers = NAMES.map(Checked::start);
        let arguments = ["--proxy-sticky", "client", "--trusted-proxies", "127.0.0.0/8"];
        let (world, other) = (proxy(io, &servers, &arguments), proxy(io, &servers, &arguments));
        let mut reached = BTreeSet::new();
        let of = |world: &World, client: &str| {
            let response = ask(world, &format!("X-Forwarded-For: {client}\r\n"));
            assert!(response.value("set-cookie").is_none(), "{io}");
            response.text()
        };
        for number in 0..24 {
            let client = format!("192.0.2.{number}");
            let answers: BTreeSet<String> = [&world, &world, &other].map(|world| of(world, &client)).into();
            assert_eq!(answers.len(), 1, "{io} {client}: {answers:?}");
            reached.extend(answers);
            let prefix: BTreeSet<String> =
                (0..4).map(|host| of(&world, &format!("2001:db8:0:{number:x}::{host}"))).collect();
            assert_eq!(prefix.len(), 1, "{io} {number}: a prefix is one client");
        }
        assert_eq!(reached.len(), 3, "{io}: clients are spread");
    }
}
