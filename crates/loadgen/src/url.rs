//! Targets as people write them: `https://host:port/path?query`, `[::1]:8080/x`, `localhost`.
//!
//! It owns what of them can be loaded, and resolving their names. It must never guess: what would not reach
//! the server as it was written is refused.

use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use crate::Fault;
use crate::template::Template;

/// A URL that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Name or address, an IPv6 address without its brackets.
    pub host: String,
    /// Whether it is spoken to by TLS.
    pub secure: bool,
    /// The port, that of the scheme (80, 443) if none was given.
    pub port: u16,
    /// Path and query, as they are sent; may hold variables.
    pub target: String,
}

/// The port of a scheme.
fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

impl Url {
    /// What the field Host says: the port only if it is not that of the scheme.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.secure) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority(), self.target)
    }
}

impl FromStr for Url {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let (secure, rest) = split_scheme(text)?;
        let (authority, target) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        let template = Template::parse(target.as_bytes(), "the URL's path")?;
        check_target(&template)?;
        let (host, port) = split_authority(text, authority)?;
        Ok(Self { host, secure, port: port.unwrap_or(default_port(secure)), target })
    }
}

/// Whether TLS is asked for, and what follows the scheme.
fn split_scheme(text: &str) -> Result<(bool, &str), Fault> {
    // A scheme stands in front of everything else; the same three characters may stand in a query.
    let found = text.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '#', '.', '@']));
    let Some((scheme, rest)) = found else { return Ok((false, text)) };
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok((false, rest)),
        "https" => Ok((true, rest)),
        _ => Err(Fault::new(format!(
            "`{scheme}` in `{text}` is not a scheme that can be loaded: http and https are"
        ))),
    }
}

/// The host, and the port if one is given.
fn split_authority(text: &str, authority: &str) -> Result<(String, Option<u16>), Fault> {
    if authority.contains('@') {
        let sentence = "user and password in a URL are not sent: give a field Authorization instead";
        return Err(Fault::new(sentence));
    }
    let (host, port) = if let Some(bracketed) = authority.strip_prefix('[') {
        let (address, after) = bracketed
            .split_once(']')
            .ok_or_else(|| Fault::new(format!("the bracket in `{text}` is not closed by `]`")))?;
        if address.parse::<Ipv6Addr>().is_err() {
            return Err(Fault::new(format!("`[{address}]` is not an IPv6 address")));
        }
        (address, after)
    } else {
        if authority.parse::<Ipv6Addr>().is_ok() {
            let sentence = format!("an IPv6 address in a URL stands in brackets: `[{authority}]`");
            return Err(Fault::new(sentence));
        }
        let host = authority.split(':').next().unwrap_or_default();
        check_host(text, host)?;
        authority.split_at(host.len())
    };
    Ok((host.to_owned(), parse_port(text, port)?))
}

fn check_host(text: &str, host: &str) -> Result<(), Fault> {
    if host.is_empty() {
        return Err(Fault::new(format!("`{text}` names no host")));
    }
    match host.chars().find(|character| !character.is_ascii_alphanumeric() && !"-._".contains(*character)) {
        Some(character) => Err(Fault::new(format!(
            "`{host}` is not a host's name: `{}` cannot stand in one",
            shown(character)
        ))),
        None => Ok(()),
    }
}

/// `after` is what follows the host: nothing, or a colon and the port.
fn parse_port(text: &str, after: &str) -> Result<Option<u16>, Fault> {
    if after.is_empty() {
        return Ok(None);
    }
    let digits = after.strip_prefix(':').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|digits| digits.parse().ok()).filter(|port| *port > 0);
    let given = after.strip_prefix(':').unwrap_or(after);
    match port {
        Some(port) => Ok(Some(port)),
        None => Err(Fault::new(format!("the port `{given}` of `{text}` is not a number from 1 to 65535"))),
    }
}

/// Whether what a template makes can stand in a request line (RFC 9112, section 3.2), and is meant to.
///
/// # Errors
/// The first character that cannot, and what to write instead.
pub fn check_target(target: &Template) -> Result<(), Fault> {
    target.texts().try_for_each(|text| check_target_text(&String::from_utf8_lossy(text)))
}

fn check_target_text(text: &str) -> Result<(), Fault> {
    let bytes = text.as_bytes();
    for (at, character) in text.char_indices() {
        let sentence = match character {
            '%' => match bytes.get(at + 1..at + 3) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => continue,
                _ => "a percent sign stands before two hexadecimal digits, and is itself written `%25`",
            },
            '#' => "what follows `#` is never sent to a server: leave it out",
            ' ' => "a space in a path is written `%20`",
            '!'..='~' => continue,
            character if character.is_ascii() => "a control character cannot stand in a path",
            character => {
                let encoded: String =
                    character.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
                return Err(Fault::new(format!(
                    "`{character}` in `{text}` cannot be sent as it is: write `{encoded}`"
                )));
            }
        };
        return Err(Fault::new(format!("`{}`: {sentence}", text.escape_debug())));
    }
    Ok(())
}

fn shown(character: char) -> String {
    character.escape_debug().collect()
}

/// All addresses of the URL's host, in the order in which they are to be tried; at least one. Asks the
/// system, so it may take seconds.
///
/// # Errors
/// The name is not known, or the system cannot tell.
pub fn resolve_all(url: &Url) -> Result<Vec<SocketAddr>, Fault> {
    let found: io::Result<Vec<SocketAddr>> =
        (url.host.as_str(), url.port).to_socket_addrs().map(Iterator::collect);
    match found {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(Fault::new(format!("the name `{}` has no address", url.host))),
        Err(error) => {
            Err(Fault::new(format!("the name `{}` cannot be resolved to an address: {error}", url.host)))
        }
    }
}

/// The address of the URL's host to connect to: of IPv4 if it has one, because a name with both is most often
/// `localhost`, where servers listen on IPv4.
///
/// # Errors
/// As [`resolve_all`].
pub fn resolve(url: &Url) -> Result<SocketAddr, Fault> {
    let addresses = resolve_all(url)?;
    Ok(*addresses.iter().find(|address| address.is_ipv4()).unwrap_or(&addresses[0]))
}

#[cfg(test)]
mod tests;
