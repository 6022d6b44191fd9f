//! HAProxy between client and server, sending PROXY headers of both versions, and X-Forwarded-For.
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use staunch_tests::house::ports::reserved_address;
use staunch_tests::house::waiting::until;
use staunch_tests::process::is_installed;

use super::caller::{Caller, ENGINES, Served, ip, serve};

/// HAProxy under test, ended on drop.
struct Proxy {
    child: Child,
    address: SocketAddr,
}

impl Proxy {
    /// Passes connections on to the server; `mode` and `option` are words of its configuration.
    fn start(served: &Served, mode: &str, option: &str) -> Self {
        let address = reserved_address();
        let configuration = format!(
            "defaults\n timeout connect 10s\n timeout client 10s\n timeout server 10s\n\
             listen all\n mode {mode}\n bind {address}\n {}\n server it {} {option}\n",
            if mode == "http" { "option forwardfor" } else { "" },
            served.address(),
        );
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f", "/dev/stdin"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().expect("haproxy");
        child.stdin.take().expect("a pipe").write_all(configuration.as_bytes()).expect("haproxy reads it");
        until("haproxy listens", || TcpStream::connect(address).is_ok());
        Self { child, address }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn its_headers_tell_the_client() {
    if !is_installed("haproxy") {
        return;
    }
    for (io, option) in ENGINES.iter().flat_map(|io| ["send-proxy", "send-proxy-v2"].map(|word| (io, word))) {
        let arguments = [
            "--io",
            io,
            "--proxy-protocol",
            "on",
            "--trusted-proxies",
            "127.0.0.1",
            "--client-connections",
            "1",
        ];
        let served = serve("127.0.0.1:0", &arguments);
        let proxy = Proxy::start(&served, "tcp", option);
        let mut first = Caller::from(ip("127.0.0.2"), proxy.address);
        assert_eq!(first.status(), 200, "{io} {option}");
        assert_eq!(Caller::from(ip("127.0.0.2"), proxy.address).status(), 429, "{io} {option}");
        assert_eq!(Caller::from(ip("127.0.0.3"), proxy.address).status(), 200, "{io} {option}");
        assert_eq!(first.status(), 200);
    }
}

#[test]
fn its_forwarded_for_tells_the_client() {
    if !is_installed("haproxy") {
        return;
    }
    let arguments = ["--trusted-proxies", "127.0.0.1", "--client-rate", "1/s", "--client-connections", "1"];
    let served = serve("127.0.0.1:0", &arguments);
    let proxy = Proxy::start(&served, "http", "");
    let mut caller = Caller::from(ip("127.0.0.2"), proxy.address);
    let statuses: Vec<u16> = (0..20).map(|_| caller.status()).collect();
    assert_eq!(statuses[0], 200);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(Caller::from(ip("127.0.0.3"), proxy.address).status(), 200, "another client");
}
