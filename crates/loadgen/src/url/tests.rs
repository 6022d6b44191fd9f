//! Tables of URLs, right and wrong.

use super::*;

#[test]
fn urls_that_can_be_loaded() {
    let cases = [
        ("http://127.0.0.1:8080/", "127.0.0.1", 8080, "/", "127.0.0.1:8080"),
        ("http://localhost", "localhost", 80, "/", "localhost"),
        ("https://localhost", "localhost", 443, "/", "localhost"),
        ("HTTPS://[::1]:80/x", "::1", 80, "/x", "[::1]:80"),
        ("https://a:443/", "a", 443, "/", "a"),
        ("http://a:443/", "a", 443, "/", "a:443"),
        ("HTTP://Example.com:80/A", "Example.com", 80, "/A", "Example.com"),
        ("http://a_b-c.d:65535?q=1/2", "a_b-c.d", 65535, "/?q=1/2", "a_b-c.d:65535"),
        ("http://[::1]:81/x?y", "::1", 81, "/x?y", "[::1]:81"),
        ("http://[::1]", "::1", 80, "/", "[::1]"),
        ("[fe80::1]/x", "fe80::1", 80, "/x", "[fe80::1]"),
        ("localhost:8080", "localhost", 8080, "/", "localhost:8080"),
        ("127.0.0.1/a%20b", "127.0.0.1", 80, "/a%20b", "127.0.0.1"),
        ("h/p?u=http://x/", "h", 80, "/p?u=http://x/", "h"),
        ("h/{{random 1 9}}/{{pick a b}}", "h", 80, "/{{random 1 9}}/{{pick a b}}", "h"),
    ];
    for (text, host, port, target, authority) in cases {
        let url: Url = text.parse().expect(text);
        assert_eq!((&*url.host, url.port, &*url.target), (host, port, target), "{text}");
        assert_eq!(url.authority(), authority);
        assert_eq!(url.secure, text.to_ascii_lowercase().starts_with("https://"), "{text}");
        assert_eq!(url.to_string().parse::<Url>(), Ok(url), "{text}");
    }
}

#[test]
fn faults() {
    let cases = [
        ("ftp://a/", "`ftp` in `ftp://a/` is not a scheme that can be loaded: http and https are"),
        ("", "`` names no host"),
        ("/path", "`/path` names no host"),
        ("http:///path", "`http:///path` names no host"),
        ("http://:80/", "`http://:80/` names no host"),
        ("http://u:p@a/", "user and password in a URL are not sent: give a field Authorization instead"),
        ("u@a", "user and password in a URL are not sent: give a field Authorization instead"),
        ("http://a/#top", "`/#top`: what follows `#` is never sent to a server: leave it out"),
        ("http://a#top", "`/#top`: what follows `#` is never sent to a server: leave it out"),
        ("http://a:/", "the port `` of `http://a:/` is not a number from 1 to 65535"),
        ("http://a:0/", "the port `0` of `http://a:0/` is not a number from 1 to 65535"),
        ("http://a:65536/", "the port `65536` of `http://a:65536/` is not a number from 1 to 65535"),
        ("http://a:+1/", "the port `+1` of `http://a:+1/` is not a number from 1 to 65535"),
        ("http://a:1:2/", "the port `1:2` of `http://a:1:2/` is not a number from 1 to 65535"),
        ("http://[::1]8/", "the port `8` of `http://[::1]8/` is not a number from 1 to 65535"),
        ("http://[::1/", "the bracket in `http://[::1/` is not closed by `]`"),
        ("http://[::g]/", "`[::g]` is not an IPv6 address"),
        ("http://::1/", "an IPv6 address in a URL stands in brackets: `[::1]`"),
        ("http://a b/", "`a b` is not a host's name: ` ` cannot stand in one"),
        ("http://a%20b/", "`a%20b` is not a host's name: `%` cannot stand in one"),
        ("http://\u{fc}/", "`\u{fc}` is not a host's name: `\u{fc}` cannot stand in one"),
        ("http://a/b c", "`/b c`: a space in a path is written `%20`"),
        (
            "http://a/%",
            "`/%`: a percent sign stands before two hexadecimal digits, and is itself written `%25`",
        ),
        (
            "http://a/%2g",
            "`/%2g`: a percent sign stands before two hexadecimal digits, and is itself written `%25`",
        ),
        ("http://a/\u{fc}", "`\u{fc}` in `/\u{fc}` cannot be sent as it is: write `%C3%BC`"),
        ("http://a/\n", "`/\\n`: a control character cannot stand in a path"),
        ("http://a/{{pick a#b}}", "`a#b`: what follows `#` is never sent to a server: leave it out"),
        (
            "http://a/{{x}}",
            "the URL's path, character 2: `{{x}}` is not known: known are serial, thread, connection, \
             unix_ms, random LOWEST HIGHEST, and pick with its choices",
        ),
    ];
    for (text, sentence) in cases {
        assert_eq!(text.parse::<Url>().expect_err(text).to_string(), sentence);
    }
}

#[test]
fn addresses_and_names_are_resolved() {
    let url = |text: &str| text.parse::<Url>().expect(text);
    assert_eq!(resolve(&url("http://[::1]:81/")), Ok("[::1]:81".parse().expect("an address")));
    assert_eq!(resolve(&url("127.0.0.1:82")), Ok("127.0.0.1:82".parse().expect("an address")));
    let local = resolve_all(&url("localhost:83")).expect("every machine knows it");
    assert!(local.iter().all(|address| address.ip().is_loopback() && address.port() == 83), "{local:?}");
    // RFC 6761: this name never has an address.
    let fault = resolve(&url("nothing.invalid")).expect_err("the name does not exist").to_string();
    assert!(fault.starts_with("the name `nothing.invalid` cannot be resolved to an address: "), "{fault}");
}
