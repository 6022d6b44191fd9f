//! Requests of a trusted proxy: its word goes on, and our hop behind it.

use crate::relay_writing::fields_of;
use crate::requests::written;

/// The field lines of a GET from a trusted proxy, without Host and Via.
fn trusted(fields: &str) -> Vec<String> {
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let text = written(&request, |way| way.trusts = true);
    let lines = fields_of(text.as_bytes());
    lines.into_iter().filter(|line| !line.starts_with("Host") && !line.starts_with("Via")).collect()
}

#[test]
fn a_proxy_that_says_nothing() {
    let expected = [
        "X-Forwarded-For: 192.0.2.7",
        "X-Real-IP: 192.0.2.7",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: a",
    ];
    assert_eq!(trusted(""), expected);
}

#[test]
fn hops_are_added_behind() {
    let fields = "X-Forwarded-For: 198.51.100.1\r\nx-forwarded-for: 203.0.113.5\r\n";
    let lines = trusted(fields);
    assert!(lines.contains(&"X-Forwarded-For: 198.51.100.1, 203.0.113.5, 192.0.2.7".to_owned()), "{lines:?}");
    // The last address is the one that the proxy itself saw.
    assert!(lines.contains(&"X-Real-IP: 203.0.113.5".to_owned()), "{lines:?}");
    let lines = trusted("X-Forwarded-For: unknown\r\n");
    assert!(lines.contains(&"X-Real-IP: 192.0.2.7".to_owned()), "{lines:?}");

    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let text = written(&request, |way| (way.trusts, way.client) = (true, None));
    assert!(text.contains("\r\nX-Forwarded-For: 198.51.100.1, 203.0.113.5\r\n"), "{text}");
}

#[test]
fn what_it_says_stays() {
    let said = [
        "X-Real-IP: 198.51.100.1",
        "X-Forwarded-Proto: http",
        "X-Forwarded-Host: outer.example",
        "X-Forwarded-Port: 8080",
    ];
    let lines = trusted(&format!("{}\r\n", said.join("\r\n")));
    assert_eq!(lines, [&said[..], &["X-Forwarded-For: 192.0.2.7"]].concat());
}

#[test]
fn forwarded_goes_on_if_it_is_there() {
    let lines = trusted("Forwarded: for=198.51.100.1\r\n");
    let element = "Forwarded: for=198.51.100.1, for=192.0.2.7;proto=https;host=\"a\"";
    assert!(lines.contains(&element.to_owned()), "{lines:?}");
    let request = "GET / HTTP/1.0\r\nForwarded: for=b\r\n\r\n";
    for (client, expected) in [
        (None, "for=b, for=unknown;proto=https"),
        (Some("2001:db8::1"), "for=b, for=\"[2001:db8::1]\";proto=https"),
    ] {
        let client = client.map(|address| address.parse().expect("an address"));
        let text = written(request, |way| (way.trusts, way.client) = (true, client));
        assert!(text.contains(&format!("\r\nForwarded: {expected}\r\n")), "{text}");
    }
}

#[test]
fn other_fields_are_not_its_to_say_either() {
    let fields = "X_Forwarded_For: 198.51.100.1\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n\
        X-HTTP-Method-Override: DELETE\r\nProxy: http://evil.example\r\nClient-Cert: :MIIB:\r\n\
        Connection: x-forwarded-proto\r\nX-Forwarded-Proto: http\r\n";
    assert_eq!(trusted(fields), trusted(""));
}
