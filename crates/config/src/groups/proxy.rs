//! Keys of how requests are passed on to applications.

use crate::group::{Conflict, group};
use crate::syntax::choice::{OnOff, StickyWord};
use crate::syntax::text::{Count, FilePath, Size, Time, Words};
use crate::syntax::web::UrlPath;
use crate::syntax::{OrAuto, OrOff};

group! {
    /// How requests are passed on, to whichever application.
    Proxy, "Proxy", secured;

    /// Requests that a server of an application works on at once; auto finds out
    /// `auto` measures what more and fewer of them bring, and keeps the server at its peak. A number is that,
    /// whatever comes of it. `off` passes everything on at once.
    proxy_limit: OrOff<OrAuto<Count>> = Some("auto"), Value, restart, "8";
    /// How long clients wait for an answer of an application
    /// A request that could not be answered by then is refused at once (503, with `Retry-After`).
    proxy_patience: Time = Some("1s"), Value, restart, "\"5s\"";
    /// By what a client stays with one of several servers: cookie, client, off
    /// `cookie` gives each client a number in `staunch_sticky`, which the application does not see; `client`
    /// goes by its address (of IPv6 by `client_prefix_ipv6`). A server that is ill or has a full line is
    /// passed over.
    proxy_sticky: OrOff<StickyWord> = Some("off"), Value, restart, "\"cookie\"";
    /// Most time until a server of an application is connected
    proxy_connect_timeout: Time = Some("5s"), Value, restart, "\"1s\"";
    /// Most time until a server answers, and between two pieces of its answer
    proxy_answer_timeout: Time = Some("30s"), Value, restart, "\"2min\"";
    /// Most time between two pieces of a stream of events or of a WebSocket
    proxy_stream_timeout: Time = Some("1h"), Value, restart, "\"10min\"";
    /// Most time for which a connection to a server is kept that serves nobody
    proxy_keep_alive: Time = Some("60s"), Value, restart, "\"5s\"";
    /// Most time for which a FastCGI connection is kept that serves nobody
    /// `off` opens one for each request. A process of php-fpm belongs to its connection as long as that is
    /// there, so connections that are kept may leave none for other workers of this server.
    fastcgi_keep_alive: OrOff<Time> = Some("off"), Value, restart, "\"10s\"";
    /// Length of a body up to which all of it is read before a server is asked
    /// A slow client's body takes no place at the application so. A longer one is passed on as it comes.
    proxy_body_size: Size = Some("1MiB"), Value, restart, "\"64KiB\"";
    /// Path by which each server is asked how it is; `off` asks none
    /// An answer of 200 to 399 says that it is well. After three checks in a row that fail requests go to
    /// other servers, as long as there are any; after two that pass they come back.
    proxy_check: OrOff<UrlPath> = Some("off"), Value, restart, "\"/healthz\"";
    /// Time between two checks of a server, and for one of them
    proxy_check_interval: Time = Some("2s"), Value, restart, "\"10s\"";
    /// Time between two lookups of the names of servers
    /// Where a name fails it is looked up sooner, from 1s on.
    proxy_resolve_interval: Time = Some("30s"), Value, restart, "\"5s\"";
    /// Most memory for bodies that wait for slow clients: auto is an eighth
    /// Beyond it applications wait for their clients.
    proxy_memory: OrAuto<Size> = Some("auto"), Value, restart, "\"64MiB\"";
    /// Authorities of servers by https://, in PEM; auto: those of the system
    /// A server whose certificate none of them vouches for is not spoken to.
    proxy_tls_ca: OrAuto<FilePath> = Some("auto"), Value, restart, "\"/etc/staunch/app-ca.pem\"";
    /// Name in the certificates of servers by https://; auto: their address
    proxy_tls_name: OrAuto<Words> = Some("auto"), Value, restart, "\"app.internal\"";
    /// Believe servers by https:// whoever they are
    /// Whoever stands in the way to a server can read and change everything then.
    proxy_tls_insecure: OnOff = Some("off"), Switch, restart, "true";
    /// File with a certificate for servers by https:// that ask for one (PEM)
    proxy_tls_certificate: OrOff<FilePath> = Some("off"), Value, restart, "\"/etc/staunch/own.pem\"";
    /// Key of that certificate (PEM); off: same file
    proxy_tls_key: OrOff<FilePath> = Some("off"), Value, restart, "\"/etc/staunch/own.key\"";
    /// Most connections to servers of applications at a time
    proxy_connections: Count = Some("1024"), Value, restart, "4096";
}

/// Refuses what cannot be meant of servers by https://.
fn secured(proxy: &Proxy) -> Conflict {
    if proxy.proxy_tls_insecure && proxy.proxy_tls_ca.is_some() {
        let text = "no authority is asked where every server is believed: leave out one of the two";
        return Some(("proxy_tls_ca", text.into()));
    }
    None
}
