//! Servers of applications as people write them.
//!
//! It must never look up a name.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::{ListenAddress, address, socket_file};

/// Where a server of an application listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerAddress {
    /// An address and a port.
    Socket(SocketAddr),
    /// A name and a port, to be looked up at start and again: `app.internal:8000`.
    Name(String),
    /// The whole name of a socket file: `unix:/run/app.sock`.
    Unix(PathBuf),
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(formatter),
            Self::Name(name) => formatter.write_str(name),
            Self::Unix(file) => write!(formatter, "unix:{}", file.display()),
        }
    }
}

/// The language that is spoken with the servers of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// HTTP/1.1
    Http,
    /// HTTP/1.1 by TLS
    Https,
    /// FastCGI
    FastCgi,
}

/// A server of an application, as one word: `127.0.0.1:8000`, `fastcgi:/run/php/php-fpm.sock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WiredServer {
    /// The language that is spoken with it.
    pub wire: Wire,
    /// Where it listens.
    pub address: ServerAddress,
}

impl std::fmt::Display for WiredServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.wire, &self.address) {
            (Wire::Http, address) => address.fmt(formatter),
            (Wire::Https, address) => write!(formatter, "https://{address}"),
            (Wire::FastCgi, ServerAddress::Unix(file)) => write!(formatter, "fastcgi:{}", file.display()),
            (Wire::FastCgi, address) => write!(formatter, "fastcgi:{address}"),
        }
    }
}

/// An application: servers that answer the same, with all of which the same is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Application {
    /// The language that is spoken with them.
    pub wire: Wire,
    /// Where they listen.
    pub servers: Vec<ServerAddress>,
}

impl Application {
    /// The servers as words.
    pub fn words(&self) -> impl Iterator<Item = WiredServer> {
        self.servers.iter().map(|address| WiredServer { wire: self.wire, address: address.clone() })
    }

    /// The name of the application: its servers, as they are configured.
    pub fn name(&self) -> String {
        self.words().map(|server| server.to_string()).collect::<Vec<_>>().join(" ")
    }
}

/// How the address of a server is written, by the language that is spoken with it.
const FORMS: [(Wire, &str); 3] = [
    (
        Wire::Http,
        "write an address such as 127.0.0.1:8000, [::1]:8000, app.internal:8000, unix:/run/app.sock or a \
         port of this host such as 8000",
    ),
    (
        Wire::Https,
        "write an address such as https://app.internal, https://10.0.0.5:8443 or https://[::1]:8443",
    ),
    (
        Wire::FastCgi,
        "write an address such as fastcgi:127.0.0.1:9000, or a socket such as fastcgi:/run/php/php-fpm.sock",
    ),
];

/// A server of an application by HTTP, as `server_address` reads it, by HTTPS (`https://` before such an
/// address, whose port is 443 unless it is written), or by FastCGI: `fastcgi:` before such an address, or
/// before the whole name of a socket file.
///
/// # Errors
/// A sentence that says which part is wrong and shows the right form.
pub fn wired_server(text: &str) -> Result<WiredServer, String> {
    let (wire, address) = if let Some(place) = text.strip_prefix("https://") {
        (Wire::Https, secured_address(place))
    } else if let Some(place) = text.strip_prefix("fastcgi:") {
        (Wire::FastCgi, script_address(place))
    } else {
        (Wire::Http, server_address(text.strip_prefix("http://").unwrap_or(text)))
    };
    let form = FORMS.iter().find(|(of, _)| *of == wire).map_or("", |(_, form)| form);
    let address = address.map_err(|fault| format!("{fault}: {form}"))?;
    Ok(WiredServer { wire, address })
}

fn script_address(place: &str) -> Result<ServerAddress, String> {
    if place.starts_with('/') && !place.starts_with("//") {
        return socket_file(place)
            .map(ServerAddress::Unix)
            .map_err(|_| "this is no name of a socket file".into());
    }
    server_address(place)
}

fn secured_address(place: &str) -> Result<ServerAddress, String> {
    let place = place.strip_suffix('/').unwrap_or(place);
    if place.starts_with("unix:") {
        return Err("no certificate has the name of a socket file".into());
    }
    if !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a certificate has the name of a host, and this is a port alone".into());
    }
    // In `[::1]` colons are of the address.
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let has_path = place.contains(['/', '?', '#']);
    server_address(&if has_port || has_path || place.is_empty() {
        place.into()
    } else {
        format!("{place}:443")
    })
}

/// The address of a server of an application: `127.0.0.1:8000`, `[::1]:8000`, `app.internal:8000`, a port of
/// this host (`8000`), or a socket file (`unix:/run/app.sock`).
///
/// # Errors
/// A sentence that names the part that is wrong.
fn server_address(text: &str) -> Result<ServerAddress, String> {
    let plain = text.strip_suffix('/').unwrap_or(text);
    match address(plain) {
        Ok(ListenAddress::Every(0)) => Err(no_port("0")),
        Ok(ListenAddress::Every(port)) => {
            Ok(ServerAddress::Socket(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
        }
        Ok(ListenAddress::Socket(address)) if address.port() == 0 => Err(no_port("0")),
        Ok(ListenAddress::Socket(address)) => Ok(ServerAddress::Socket(address)),
        Ok(ListenAddress::Name(name)) if name.ends_with(":0") => Err(no_port("0")),
        Ok(ListenAddress::Name(name)) => Ok(ServerAddress::Name(name)),
        Ok(ListenAddress::Unix(file)) => Ok(ServerAddress::Unix(file)),
        Ok(ListenAddress::Handed(_)) => Err("fd: names a socket that is listened at, and no server".into()),
        Err(_) => Err(fault(plain)),
    }
}

/// The part that is wrong of an address that is none.
fn fault(place: &str) -> String {
    if place.is_empty() {
        return "there is no address".into();
    }
    if let Some(file) = place.strip_prefix("unix:") {
        let is_whole = file.starts_with('/') && !file.ends_with('/');
        let fault = socket_file(file).err().filter(|_| is_whole);
        return fault.unwrap_or_else(|| "unix: stands before the whole name of a socket file".into());
    }
    if place.starts_with("//") {
        return "// stands behind http: and https: alone".into();
    }
    if place.starts_with('/') {
        return format!("a socket file is written as unix:{place}");
    }
    if let Some((scheme, _)) = place.split_once("://") {
        return format!("servers are spoken to by http://, https:// and fastcgi:, not by {scheme:?}");
    }
    if let Some(at) = place.find(['/', '?', '#']) {
        return format!("{:?} stands behind the port, and an address ends there", &place[at..]);
    }
    if let Some((_, host)) = place.rsplit_once('@') {
        return format!("a server is told no name and password before {host:?}");
    }
    match place.rsplit_once(':') {
        None if place.bytes().all(|byte| byte.is_ascii_digit()) => no_port(place),
        None => format!("{place:?} has no port"),
        Some((_, rest)) if rest.ends_with(']') => format!("{place:?} has no port"),
        Some((_, port)) if !port.parse::<u16>().is_ok_and(|port| port > 0) => no_port(port),
        Some((host, _)) if host.contains(':') && !host.starts_with('[') => {
            "an address of IPv6 stands in brackets".into()
        }
        Some((host, _)) => format!("{host:?} is neither a name of a host nor an address"),
    }
}

fn no_port(text: &str) -> String {
    format!("{text:?} is no port, which is a number from 1 to 65535")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_address_is_told_which_part_of_it_is_wrong() {
        for (text, said) in [
            ("", "there is no address: write an address such as 127.0.0.1:8000"),
            ("nonsense", "\"nonsense\" has no port: write"),
            ("[::1]", "\"[::1]\" has no port: write"),
            ("::1:8000", "an address of IPv6 stands in brackets: write"),
            ("127.0.0.1:0", "\"0\" is no port, which is a number from 1 to 65535: write"),
            ("127.0.0.1:70000", "\"70000\" is no port"),
            ("70000", "\"70000\" is no port"),
            ("app:http", "\"http\" is no port"),
            ("app:", "\"\" is no port"),
            ("a b:80", "\"a b\" is neither a name of a host nor an address: write"),
            ("http://app:80/x?y", "\"/x?y\" stands behind the port, and an address ends there: write"),
            ("ftp://app:80", "not by \"ftp\": write"),
            ("me:secret@app:80", "before \"app:80\": write"),
            ("/run/app.sock", "a socket file is written as unix:/run/app.sock: write"),
            ("unix:app.sock", "unix: stands before the whole name of a socket file: write"),
            ("fd:web", "fd: names a socket that is listened at, and no server: write"),
            (
                "https://app/x",
                "\"/x\" stands behind the port, and an address ends there: write an address such \
              as https://",
            ),
            ("https://8443", "this is a port alone: write an address such as https://"),
            ("https://unix:/a", "no certificate has the name of a socket file: write"),
            ("https://app:0", "\"0\" is no port"),
            ("fastcgi:app", "\"app\" has no port: write an address such as fastcgi:"),
            ("fastcgi:/run/", "this is no name of a socket file: write an address such as fastcgi:"),
            (
                "fastcgi://app:9000",
                "// stands behind http: and https: alone: write an address such as fastcgi:",
            ),
        ] {
            let fault = wired_server(text).expect_err(text);
            assert!(fault.contains(said), "{text}: {fault}");
        }
    }

    #[test]
    fn right_addresses_are_read() {
        for (text, written) in [
            ("8000", "127.0.0.1:8000"),
            ("http://app.internal:8000/", "app.internal:8000"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("https://app.internal", "https://app.internal:443"),
            ("https://[::1]", "https://[::1]:443"),
            ("https://10.0.0.5:8443/", "https://10.0.0.5:8443"),
            ("fastcgi:/run/php/php-fpm.sock", "fastcgi:/run/php/php-fpm.sock"),
            ("fastcgi:127.0.0.1:9000", "fastcgi:127.0.0.1:9000"),
        ] {
            assert_eq!(wired_server(text).map(|server| server.to_string()).as_deref(), Ok(written));
        }
    }
}
