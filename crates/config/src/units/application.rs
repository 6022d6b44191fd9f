//! Servers of applications as people write them.
//!
//! It must never look up a name.

use std::net::SocketAddr;
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

/// A server of an application by HTTP, as `server_address` reads it, by HTTPS (`https://` before such an
/// address, whose port is 443 unless it is written), or by FastCGI: `fastcgi:` before such an address, or
/// before the whole name of a socket file.
///
/// # Errors
/// A sentence that shows the right form.
pub fn wired_server(text: &str) -> Result<WiredServer, String> {
    if let Some(place) = text.strip_prefix("https://") {
        return Ok(WiredServer { wire: Wire::Https, address: secured_address(place)? });
    }
    let Some(place) = text.strip_prefix("fastcgi:") else {
        return Ok(WiredServer { wire: Wire::Http, address: server_address(text)? });
    };
    let address = match place.starts_with('/') && !place.starts_with("//") {
        true => socket_file(place).map(ServerAddress::Unix),
        false if place.contains("//") => Err(String::new()),
        false => server_address(place),
    };
    let address = address.map_err(|_| {
        "write an address such as fastcgi:127.0.0.1:9000, or a socket such as fastcgi:/run/php/php-fpm.sock"
    })?;
    Ok(WiredServer { wire: Wire::FastCgi, address })
}

fn secured_address(place: &str) -> Result<ServerAddress, String> {
    let place = place.strip_suffix('/').unwrap_or(place);
    // In `[::1]` colons are of the address.
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'));
    let whole = if has_port { place.to_owned() } else { format!("{place}:443") };
    let is_host = place.contains(|letter: char| !letter.is_ascii_digit()) && !place.starts_with("http");
    match server_address(&whole) {
        Ok(address @ (ServerAddress::Socket(_) | ServerAddress::Name(_))) if is_host => Ok(address),
        _ => {
            Err("write an address such as https://app.internal, https://10.0.0.5:8443 or https://[::1]:8443"
                .into())
        }
    }
}

/// The address of a server of an application: `127.0.0.1:8000`, `[::1]:8000`, `app.internal:8000`, a port of
/// this host (`8000`), or a socket file (`unix:/run/app.sock`). `http://` may stand before it.
///
/// # Errors
/// A sentence that shows the right form.
fn server_address(text: &str) -> Result<ServerAddress, String> {
    let plain = text.strip_prefix("http://").unwrap_or(text);
    let plain = plain.strip_suffix('/').unwrap_or(plain);
    match address(plain) {
        Ok(ListenAddress::Every(0)) => Err("port 0 is no port of a server".into()),
        Ok(ListenAddress::Every(port)) => {
            Ok(ServerAddress::Socket(SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port))))
        }
        Ok(ListenAddress::Socket(address)) if address.port() == 0 => {
            Err("port 0 is no port of a server".into())
        }
        Ok(ListenAddress::Socket(address)) => Ok(ServerAddress::Socket(address)),
        Ok(ListenAddress::Name(name)) if name.ends_with(":0") => Err("port 0 is no port of a server".into()),
        Ok(ListenAddress::Name(name)) => Ok(ServerAddress::Name(name)),
        Ok(ListenAddress::Unix(file)) => Ok(ServerAddress::Unix(file)),
        Ok(ListenAddress::Handed(_)) | Err(_) => Err(
            "write an address such as 127.0.0.1:8000, [::1]:8000, app.internal:8000, unix:/run/app.sock or a \
             port of this host such as 8000"
                .into(),
        ),
    }
}
