//! Keys of how the server meets the network: addresses, workers, deadlines, pressure, single clients.

use crate::group::group;
use crate::syntax::choice::{IoWay, OnOff};
use crate::syntax::text::{
    Block, ByteRate, Count, CountOrNone, Cpus, Listen, Mode, PrefixIpv6, Rate, Size, Time,
};
use crate::syntax::{Many, OrAuto, OrOff};

group! {
    /// Addresses, workers, processors.
    Network, "Network", |_| None;

    /// Address and port, or a port alone; may be given several times
    /// A port alone means every address of this host, IPv4 and IPv6 (IPv4 alone where there is no IPv6, and
    /// for port 0). Port 0 takes a free one, which the start-up block names. `fd:NAME` takes a socket that
    /// systemd hands over. `unix:/PATH` makes a socket file, for a proxy on this host: it replaces what a
    /// server left that was killed, but never one at which somebody listens, and is removed at the end.
    /// Peers of a file have the address `unix:` in logs, `allow`, `deny` and `trusted_proxies`; no other
    /// block holds them, not even `::/0`.
    listen: Many<Listen> = Some("127.0.0.1:8080"), Values, reload, "[\"127.0.0.1:8080\", \"[::1]:8080\"]";
    /// Mode of socket files: who may connect
    /// Digits as for chmod(1). Whoever may write to the file may connect; `0660` is for the server's user and
    /// group.
    socket_mode: Mode = Some("0666"), Value, restart, "\"0660\"";
    /// How many workers: auto is one a processor
    workers: OrAuto<Count> = Some("auto"), Value, restart, "4";
    /// Processors to run on, such as 0,2-5: auto is all that are allowed
    cpus: OrAuto<Cpus> = Some("auto"), Value, restart, "\"0,2-5\"";
    /// Leave processor 0 to the network card's interrupts
    leave_cpu0: OnOff = Some("off"), Switch, restart, "true";
    /// Way to the network; auto: io_uring if it works
    /// With `auto`, io_uring is taken where every operation it needs works, and else epoll.
    io: IoWay = Some("auto"), Value, restart, "\"epoll\"";
    /// Most connections; auto is what the host allows
    /// What its file descriptors or its memory allow; the start-up block says which.
    max_connections: OrAuto<Count> = Some("auto"), Value, restart, "100000";
    /// Expect the PROXY protocol first on each connection
    /// Versions 1 and 2. With it on, a connection that does not begin so is closed.
    proxy_protocol: OnOff = Some("off"), Value, reload, "true";
    /// Speak HTTP/2 to those who begin with it
    /// A connection that begins with the preface of HTTP/2 speaks that (RFC 9113); all others speak HTTP/1.1.
    /// Over TLS it is offered in the handshake (ALPN). With it off the preface is answered 505. A reload is
    /// for new connections.
    http2: OnOff = Some("on"), Value, reload, "false";
    /// Serve what khttpd, loaded with `hand_over`, does not
    /// khttpd serves the files of the site on its addresses, and hands over every connection with another
    /// method, a body, an Upgrade or one of its `hand_over` paths: one site on one port. It must be loaded
    /// with `hand_over` and serve the same folder, and the server must be allowed to open `/dev/khttpd`. Both
    /// are checked at the start. `listen` goes on as it is.
    behind_khttpd: OnOff = Some("off"), Switch, restart, "true";
    /// Proxies whose word about a client's address is believed
    /// Their X-Forwarded-For is followed from the right to the first address that is none of these. With
    /// `proxy_protocol` on, only they may use it; an empty list lets everybody. `unix:` is who comes by a
    /// socket file.
    trusted_proxies: Many<Block> = Some(""), Values, reload, "[\"10.0.0.0/8\", \"fd00::/8\"]";
}

group! {
    /// How long things may take, and how fast they must go.
    Deadlines, "Deadlines", |_| None;

    /// Most time between two requests of a connection
    keep_alive: Time = Some("15s"), Value, reload, "\"60s\"";
    /// Most time for a request to be complete
    header_timeout: Time = Some("15s"), Value, reload, "\"10s\"";
    /// Most time for a TLS handshake
    handshake_timeout: Time = Some("10s"), Value, restart, "\"5s\"";
    /// Most time for the next bytes of a request's body
    body_timeout: Time = Some("15s"), Value, reload, "\"30s\"";
    /// Most time for a peer to take more of its answer
    send_timeout: Time = Some("30s"), Value, reload, "\"60s\"";
    /// Slowest mean rate of a body after body_timeout (10 s at least); 0 is any
    /// A slow phone finishes, somebody who sends a byte now and then to hold a connection does not.
    body_rate_min: ByteRate = Some("100"), Value, reload, "\"1KiB/s\"";
    /// Slowest mean rate of an answer; 0 is any
    /// What the peer acknowledges counts, after the first send_timeout.
    send_rate_min: ByteRate = Some("100"), Value, reload, "\"1KiB/s\"";
}

group! {
    /// What gives way first when there is too much to do.
    Pressure, "Pressure", |_| None;

    /// Answer 503 to a request that has waited longer
    /// Work for somebody who has gone is wasted: what waited longer than this is not worked on.
    patience: OrOff<Time> = Some("1s"), Value, reload, "\"500ms\"";
    /// Close idle connections beyond; auto: 80 %
    /// 80 % of `max_connections`.
    soft_connections: OrAuto<Count> = Some("auto"), Value, reload, "80000";
    /// Connections kept to say 503 to those beyond: auto is 1 %, 8 to 256
    reserved_connections: OrAuto<CountOrNone> = Some("auto"), Value, restart, "64";
    /// Most memory that peers may make it hold: auto is an eighth of memory
    /// Answers that nobody reads, and input that has to wait for them. Beyond it the connections that hold
    /// most are closed. A limit of the control group or of the process counts as memory.
    memory_budget: OrAuto<Size> = Some("auto"), Value, restart, "\"64MiB\"";
}

group! {
    /// What a single client may have.
    Clients, "Clients", |_| None;

    /// Most connections of a client at a time
    client_connections: OrOff<Count> = Some("off"), Value, reload, "100";
    /// Most requests of a client in a time; beyond, 429
    /// One second's worth may come at once.
    client_rate: OrOff<Rate> = Some("off"), Value, reload, "\"100/s\"";
    /// Leading bits of an IPv6 address that make a client
    /// A household or a host is usually given 64 bits to choose from, so single addresses mean nothing.
    client_prefix_ipv6: PrefixIpv6 = Some("64"), Value, reload, "56";
    /// Count what the limits for clients would refuse, but serve it
    dry_run: OnOff = Some("off"), Switch, reload, "true";
}
