//! Behind a proxy that a test plays: PROXY headers and X-Forwarded-For, believed or not.

use super::caller::{Caller, ENGINES, ip, serve};

const V1: &[u8] = b"PROXY TCP4 203.0.113.9 192.0.2.1 56324 80\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\xc0\0\x02\x01\xdc\x04\0\x50";
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

#[test]
fn the_client_is_the_one_the_header_names() {
    for io in ENGINES {
        let arguments = ["--io", io, "--proxy-protocol", "on", "--client-connections", "1"];
        let served = serve("127.0.0.1:0", &arguments);
        let call = |header: &[u8]| {
            let mut caller = Caller::from(ip("127.0.0.1"), served.address());
            caller.send(header);
            let status = caller.status();
            (status, caller)
        };
        let held = [call(V1)];
        assert_eq!(held[0].0, 200);
        assert_eq!(call(V2).0, 429, "the same client, by the other version");
        assert_eq!(call(b"PROXY TCP4 203.0.113.10 192.0.2.1 56324 80\r\n").0, 200, "another");
        let looks = [call(LOCAL), call(LOCAL), call(b"PROXY UNKNOWN\r\n")];
        assert!(looks.iter().all(|look| look.0 == 200), "the proxy itself is nobody's client");
    }
}

#[test]
fn a_header_comes_in_pieces() {
    for io in ENGINES {
        let served = serve("127.0.0.1:0", &["--io", io, "--proxy-protocol", "on"]);
        for header in [V1, V2] {
            let mut caller = Caller::from(ip("127.0.0.1"), served.address());
            for byte in header {
                caller.send(&[*byte]);
                std::thread::yield_now();
            }
            assert_eq!(caller.status(), 200);
            assert_eq!(caller.status(), 200, "only the first request has one before it");
        }
    }
}

#[test]
fn without_a_header_it_is_closed_unanswered() {
    for io in ENGINES {
        let arguments = ["--io", io, "--proxy-protocol", "on", "--header-timeout", "1s"];
        let served = serve("127.0.0.1:0", &arguments);
        let mut plain = Caller::from(ip("127.0.0.1"), served.address());
        assert!(plain.ask("/a.txt", "").is_none());
        let mut broken = Caller::from(ip("127.0.0.1"), served.address());
        broken.send(b"PROXY TCP4 nobody\r\n");
        assert!(broken.receive().is_none());
        let mut slow = Caller::from(ip("127.0.0.1"), served.address());
        slow.send(&V1[..20]);
        assert!(slow.receive().is_none(), "the header's deadline ends it");
        let mut caller = Caller::from(ip("127.0.0.1"), served.address());
        caller.send(V1);
        let status = caller.ask(super::caller::STATUS, "").expect("the status page");
        let status: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
        assert_eq!(status["clients"]["proxy_faults"], 2);
        assert_eq!(status["timeouts"]["header"], 1);
    }
}

#[test]
fn only_trusted_proxies_may_introduce() {
    for io in ENGINES {
        let arguments = ["--io", io, "--proxy-protocol", "on", "--trusted-proxies", "127.0.0.2,10.0.0.0/8"];
        let served = serve("127.0.0.1:0", &arguments);
        for (source, expected) in [("127.0.0.2", 200), ("127.0.0.1", 0)] {
            let mut caller = Caller::from(ip(source), served.address());
            caller.send(V1);
            assert_eq!(caller.status(), expected, "from {source}");
        }
    }
}

#[test]
fn forwarded_clients_have_rates_of_their_own_and_proxies_no_limit_of_connections() {
    let arguments =
        ["--client-rate", "1/s", "--client-connections", "1", "--trusted-proxies", "127.0.0.2,10.0.0.0/8"];
    let served = serve("127.0.0.1:0", &arguments);
    let mut proxy: Vec<Caller> = (0..4).map(|_| Caller::from(ip("127.0.0.2"), served.address())).collect();
    for (place, caller) in proxy.iter_mut().enumerate() {
        let field = format!("X-Forwarded-For: 198.51.100.{place}, 10.0.0.7\r\n");
        assert_eq!(caller.ask("/a.txt", &field).unwrap().status, 200, "each is a client of its own");
    }
    let field = "X-Forwarded-For: 198.51.100.99\r\n";
    let statuses: Vec<u16> =
        proxy.iter_mut().map(|caller| caller.ask("/a.txt", field).unwrap().status).collect();
    assert_eq!(statuses[0], 200);
    assert!(statuses[1..].contains(&429), "one client, whichever connection it comes by: {statuses:?}");
    // Anybody can write the field.
    let mut liar = Caller::from(ip("127.0.0.3"), served.address());
    let lies = (0..20).map(|place| format!("X-Forwarded-For: 198.51.100.1{place}\r\n"));
    let statuses: Vec<u16> = lies.map(|lie| liar.ask("/a.txt", &lie).unwrap().status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
}
