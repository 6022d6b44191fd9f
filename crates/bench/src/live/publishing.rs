//! Publications by hand, for scenarios that do not measure them.
//!
//! It must never be timed.
use std::net::SocketAddr;

use super::fan_server::{FanOut, TOKEN, TOPIC};
use crate::client::{HttpClient, Reply};
use crate::setup::ServerKind;

/// Publishes a value to the topic that readers share.
///
/// # Errors
/// It was not taken.
pub(super) fn publish(server: &FanOut, value: &str) -> Result<Reply, String> {
    match server.kind {
        ServerKind::Nginx => post(server.address(), &format!("/pub?id={TOPIC}"), "text/plain", value),
        _ => {
            let line = format!("{{\"topic\":\"{TOPIC}\",\"data\":\"{value}\"}}");
            post(server.address(), "/publish", "application/json", &line)
        }
    }
}

/// Sends a body to a path.
///
/// # Errors
/// It was not taken.
pub(super) fn post(address: SocketAddr, path: &str, kind: &str, body: &str) -> Result<Reply, String> {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let reply = HttpClient::connect(address)?.ask(&request)?;
    if (200..300).contains(&reply.status) {
        return Ok(reply);
    }
    let said = String::from_utf8_lossy(&reply.body).trim().to_owned();
    Err(format!("a publication was answered {}: {said}", reply.status))
}
