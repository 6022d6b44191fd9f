//! What each server is told to speak TLS 1.3, and HTTP/2 with clients that ask for it; HAProxy does so only.
//!
//! It owns words of configurations. It must never weaken a server: its tickets, caches and buffers are its
//! own.

use std::path::Path;

use crate::pair::Pair;
use crate::setup::Setup;

/// nginx: words behind the address, and lines of the server.
pub(super) fn nginx(pair: Option<&Pair>) -> (&'static str, String) {
    let Some(Pair { certificate, key, .. }) = pair else { return ("", String::new()) };
    let lines = format!(
        "ssl_certificate \"{}\";\n        ssl_certificate_key \"{}\";\n        ssl_protocols TLSv1.3;",
        certificate.display(),
        key.display()
    );
    (" ssl http2", lines)
}

/// h2o: lines of the listener. Without an answer of OCSP, which it would ask for by another program.
pub(super) fn h2o(pair: Option<&Pair>) -> String {
    let Some(Pair { certificate, key, .. }) = pair else { return String::new() };
    format!(
        "\n  ssl:\n    certificate-file: \"{}\"\n    key-file: \"{}\"\n    minimum-version: TLSv1.2\n    \
         ocsp-update-interval: 0",
        certificate.display(),
        key.display()
    )
}

/// Caddy: the scheme, and lines of the site.
pub(super) fn caddy(pair: Option<&Pair>) -> (&'static str, String) {
    let Some(Pair { certificate, key, .. }) = pair else { return ("http", String::new()) };
    let line = format!("\n    tls \"{}\" \"{}\"", certificate.display(), key.display());
    ("https", line)
}

/// Ours: further words of the command. Its plain port, which nobody asks, is any that is free.
pub(super) fn staunch(pair: Option<&Pair>) -> Vec<String> {
    let Some(Pair { certificate, key, .. }) = pair else { return Vec::new() };
    let [certificate, key] = [certificate, key].map(|path| path.to_string_lossy().into_owned());
    let words = ["--listen", "127.0.0.1:0", "--tls-certificate", &certificate, "--tls-key", &key];
    words.map(str::to_owned).to_vec()
}

/// HAProxy: one thread, no log; it answers every path with the file, which it holds in memory, so that no
/// server stands behind it.
pub(super) fn haproxy(setup: &Setup<'_>, folder: &Path, port: u16, keep_alive_s: u32) -> Option<String> {
    let joined = setup.pair?.joined.display();
    let (address, connections, folder) = (setup.address, setup.connections_max, folder.display());
    let file = setup.directory.join(setup.file);
    Some(format!(
        r#"global
    nbthread 1
    maxconn {connections}
    pidfile "{folder}/haproxy.pid"
    ssl-default-bind-options ssl-min-ver TLSv1.3
defaults
    mode http
    timeout client {keep_alive_s}s
    timeout http-keep-alive {keep_alive_s}s
    timeout http-request {keep_alive_s}s
    timeout connect 5s
    timeout server 5s
frontend secured
    bind {address}:{port} backlog 4096 ssl crt "{joined}" alpn h2,http/1.1
    http-request return status 200 content-type text/plain file "{file}"
"#,
        file = file.display()
    ))
}
