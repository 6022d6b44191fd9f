//! An application by its servers.
//!
//! It must never let one application be spoken to in two ways.

use crate::node::{Node, ValueKind};
use crate::syntax::text::Server;
use crate::syntax::{Complaint, Distinct, Many, Syntax};
use crate::units::{Application, Wire, WiredServer};

/// Servers of one application: as `Distinct`, checked as a list.
#[derive(Debug)]
pub struct Servers;

impl Syntax for Servers {
    type Value = Application;

    fn word() -> String {
        Many::<Server>::word()
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Application> {
        let servers = Distinct::<Server>::read(node, complaints)?;
        let wire = servers.first().map_or(Wire::Http, |first| first.wire);
        if let Some(other) = servers.iter().position(|server| server.wire != wire) {
            complaints.push(mixed(place_of(node, other), &servers[0], &servers[other]));
            return None;
        }
        Some(Application { wire, servers: servers.into_iter().map(|server| server.address).collect() })
    }

    fn write(value: &Application) -> Node {
        Node::new(ValueKind::List(value.words().map(|server| Node::text(server.to_string())).collect()))
    }
}

fn place_of(node: &Node, index: usize) -> Option<usize> {
    match &node.kind {
        ValueKind::List(items) => items.get(index).and_then(|item| item.place),
        _ => node.place,
    }
}

fn mixed(place: Option<usize>, first: &WiredServer, other: &WiredServer) -> Complaint {
    let spoken = |server: &WiredServer| match server.wire {
        Wire::Http => "HTTP",
        Wire::Https => "HTTPS",
        Wire::FastCgi => "FastCGI",
    };
    let reason = format!(
        "{first} and {other} are not servers of one application: with one {} is spoken, with the other {}",
        spoken(first),
        spoken(other)
    );
    Complaint { place, found: String::new(), word: String::new(), reason, is_explained: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let mut complaints = Vec::new();
        let application = Servers::read(&Node::text(text), &mut complaints);
        match (application, &complaints[..]) {
            (Some(application), []) => Ok(application.name()),
            (None, [complaint, ..]) => Err(complaint.to_string()),
            (application, _) => panic!("{application:?}: {complaints:?}"),
        }
    }

    #[test]
    fn servers_by_http_or_by_fastcgi() {
        for (text, name) in [
            ("127.0.0.1:8000, 9000", "127.0.0.1:8000 127.0.0.1:9000"),
            ("fastcgi:/run/php/php-fpm.sock", "fastcgi:/run/php/php-fpm.sock"),
            ("fastcgi:unix:/run/a.sock,fastcgi:9000", "fastcgi:/run/a.sock fastcgi:127.0.0.1:9000"),
            (
                "https://app.internal/, https://10.0.0.5:8443",
                "https://app.internal:443 https://10.0.0.5:8443",
            ),
            ("https://[::1],https://[::1]:8443", "https://[::1]:443 https://[::1]:8443"),
            ("fastcgi:[::1]:9000,fastcgi:php:9000", "fastcgi:[::1]:9000 fastcgi:php:9000"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(name));
        }
        for text in [
            "fastcgi:",
            "fastcgi://127.0.0.1:9000",
            "fastcgi:http://a:1",
            "fastcgi:0",
            "fastcgi:///run/a.sock",
        ] {
            let fault = read(text).expect_err(text);
            assert!(fault.contains("fastcgi:/run/php/php-fpm.sock"), "{text}: {fault}");
        }
        for text in
            ["https://", "https://8443", "https://a/b", "https://unix:/run/a.sock", "https://http://a"]
        {
            let fault = read(text).expect_err(text);
            assert!(fault.contains("https://app.internal"), "{text}: {fault}");
        }
        let fault = read("8000,fastcgi:9000").expect_err("mixed");
        assert!(fault.contains("127.0.0.1:8000 and fastcgi:127.0.0.1:9000"), "{fault}");
    }
}
