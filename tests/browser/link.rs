//! A slow link: a veth between the namespace of a server and that of a browser, of 12 Mbit/s towards the
//! browser.
//!
//! It owns both namespaces and every process in them. It must never change anything outside of them.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use staunch_tests::house::skipping::skip;

/// The server's end.
pub(crate) const SERVER: &str = "10.77.0.1";

/// A slow link between a server and a browser, each in a namespace.
pub(crate) struct Link {
    server: String,
    browser: String,
}

impl Link {
    /// Makes it. Nothing without the right to, or where the kernel has no queue of that kind.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("only root may make namespaces");
            return None;
        }
        let process = std::process::id();
        let link = Self { server: format!("staunch-ls-{process}"), browser: format!("staunch-lb-{process}") };
        let (server, browser) = (&link.server, &link.browser);
        must(&format!("ip netns add {server}; ip netns add {browser}"));
        must(&format!("ip -n {server} link add vs type veth peer name vb netns {browser}"));
        for (namespace, interface, address) in [(server, "vs", SERVER), (browser, "vb", "10.77.0.2")] {
            must(&format!(
                "ip netns exec {namespace} sysctl -qw net.ipv6.conf.all.disable_ipv6=1; \
                 ip -n {namespace} address add {address}/24 dev {interface}; \
                 ip -n {namespace} link set lo up; ip -n {namespace} link set {interface} up"
            ));
        }
        let shape = "tc qdisc add dev vs root tbf rate 12mbit burst 32kb latency 400ms";
        if !shell(&format!("ip netns exec {server} {shape}")) {
            skip("the kernel has no tbf (sch_tbf)");
            return None;
        }
        Some(link)
    }

    /// A command at the server's end.
    pub(crate) fn at_server(&self, program: impl AsRef<OsStr>) -> Command {
        within(&self.server, program)
    }

    /// A command at the browser's end.
    pub(crate) fn at_browser(&self, program: impl AsRef<OsStr>) -> Command {
        within(&self.browser, program)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.browser] {
            shell(&format!("ip netns del {namespace}"));
        }
    }
}

fn within(namespace: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

/// A line of the shell; whether it succeeds.
fn shell(line: &str) -> bool {
    let status = Command::new("sh").args(["-ec", line]).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn must(line: &str) {
    assert!(shell(line), "{line}");
}
