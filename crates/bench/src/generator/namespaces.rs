//! Two network namespaces with a cable between them, for the length of a measurement.
//!
//! It owns them: they are gone when it is dropped. It must never touch an interface of the machine itself.

use std::process::Command;

/// The end of the cable that is flooded.
const SERVER_INTERFACE: &str = "vs";
/// The end of the cable that floods.
pub(super) const CLIENT_INTERFACE: &str = "vc";
/// Address of the flooded end.
pub(super) const SERVER_ADDRESS: &str = "10.0.0.1";

/// The hardware address that what is flooded carries.
const NOBODY: &str = "02:00:00:00:00:09";

/// Both namespaces.
#[derive(Debug)]
pub(super) struct Namespaces {
    server: String,
    /// Name of the one that floods.
    pub(super) client: String,
}

impl Namespaces {
    /// Makes them. What arrives at the server's end is thrown away right behind it, because it carries a
    /// hardware address that is nobody's: the subject is who sends, and often one processor does both. That
    /// end must take frames in bursts (`gro on`), or the fastest way is closed.
    ///
    /// # Errors
    /// The command that failed: usually a privilege or a tool is missing.
    pub(super) fn make() -> Result<Self, String> {
        let name = |end: &str| format!("staunch-bench-{}-{end}", std::process::id());
        let namespaces = Self { server: name("server"), client: name("client") };
        let (server, client) = (&namespaces.server, &namespaces.client);
        let script = format!(
            "ip netns add {server}
             ip netns add {client}
             ip -n {server} link add {SERVER_INTERFACE} type veth peer name {CLIENT_INTERFACE} netns {client}
             ip -n {server} addr add {SERVER_ADDRESS}/24 dev {SERVER_INTERFACE}
             ip -n {client} addr add 10.0.0.2/24 dev {CLIENT_INTERFACE}
             ip -n {server} link set {SERVER_INTERFACE} up
             ip -n {client} link set {CLIENT_INTERFACE} up
             ip -n {client} neigh add {SERVER_ADDRESS} lladdr {NOBODY} dev {CLIENT_INTERFACE} nud permanent
             ip netns exec {server} ethtool -K {SERVER_INTERFACE} gro on"
        );
        script.lines().try_for_each(|line| run(line).map(drop))?;
        Ok(namespaces)
    }

    /// Packets that have arrived at the server's end.
    ///
    /// # Errors
    /// `ip` fails or says something else.
    pub(super) fn arrived(&self) -> Result<u64, String> {
        let said = run(&format!("ip -n {} -s -j link show dev {SERVER_INTERFACE}", self.server))?;
        parse_arrived(&said)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            // A namespace that was never made cannot be removed, and that is no loss.
            let _ = run(&format!("ip netns del {name}"));
        }
    }
}

fn run(line: &str) -> Result<String, String> {
    let mut words = line.split_ascii_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{}: {}", line.trim(), String::from_utf8_lossy(&output.stderr).trim()))
}

fn parse_arrived(said: &str) -> Result<u64, String> {
    let links: serde_json::Value = serde_json::from_str(said).map_err(|error| format!("ip: {error}"))?;
    let packets = links.pointer("/0/stats64/rx/packets").and_then(serde_json::Value::as_u64);
    packets.ok_or_else(|| "ip does not count received packets".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_is_read() {
        let said = r#"[{"ifname":"vs","stats64":{"rx":{"bytes":90,"packets":3},"tx":{"packets":7}}}]"#;
        assert_eq!(parse_arrived(said), Ok(3));
        assert!(parse_arrived("[]").is_err() && parse_arrived("").is_err());
    }

    #[test]
    fn a_failed_command_is_named() {
        let error = run("ls /no-such-folder").expect_err("it fails");
        assert!(error.starts_with("ls /no-such-folder: "), "{error}");
        assert!(run("no-such-program-here").is_err_and(|error| error.starts_with("no-such-program-here: ")));
    }
}
