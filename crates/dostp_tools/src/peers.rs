//! Peers as they are shown: what the node of this host knows of them, and what its server knows, if it has a
//! fabric.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use serde::Serialize;
use staunch_server::metrics::{FabricFigures, FabricLoad, FabricNodeFigures};

use super::control::PeerStatus;

/// A peer. What nobody here knows is missing.
#[derive(Debug, Serialize)]
pub(super) struct ShownPeer {
    address: Ipv4Addr,
    #[serde(flatten)]
    node: Option<NodePart>,
    #[serde(flatten)]
    server: Option<ServerPart>,
}

/// What the node knows.
#[derive(Debug, Serialize)]
struct NodePart {
    link: String,
    boot: String,
    mtu: u16,
    heard_seconds_ago: f64,
    stale: bool,
}

/// What the server knows.
#[derive(Debug, Serialize)]
struct ServerPart {
    load: Option<FabricLoad>,
    topics: u64,
    silent: bool,
}

/// Peers of the node, with what a server knows of them.
pub(super) fn of_node(peers: Vec<PeerStatus>, fabric: Option<&FabricFigures>) -> Vec<ShownPeer> {
    let shown = |peer: PeerStatus| {
        let PeerStatus { address, link, boot, mtu, heard_seconds_ago, stale } = peer;
        let server = fabric.and_then(|fabric| fabric.nodes.iter().find(|node| node.address == address));
        let node = Some(NodePart { link, boot, mtu, heard_seconds_ago, stale });
        ShownPeer { address, node, server: server.map(server_part) }
    };
    peers.into_iter().map(shown).collect()
}

/// Peers of a server, where no node runs beside it.
pub(super) fn of_fabric(fabric: &FabricFigures) -> Vec<ShownPeer> {
    let shown = |node: &FabricNodeFigures| ShownPeer {
        address: node.address,
        node: None,
        server: Some(server_part(node)),
    };
    fabric.nodes.iter().map(shown).collect()
}

fn server_part(node: &FabricNodeFigures) -> ServerPart {
    ServerPart { load: node.load.clone(), topics: node.topics, silent: node.silent }
}

/// The line above peers of a server.
pub(super) fn title(fabric: &FabricFigures) -> String {
    let FabricFigures { address, interface, nodes, .. } = fabric;
    format!("{address}, a server on {interface}: {}\n", counted(nodes.len() as u64, "peer"))
}

/// So many of something whose plural ends with an s.
pub(super) fn counted(count: u64, name: &str) -> String {
    if count == 1 { format!("1 {name}") } else { format!("{count} {name}s") }
}

/// A line for each peer.
pub(super) fn table(peers: &[ShownPeer]) -> String {
    let mut text = String::new();
    for peer in peers {
        write!(text, "{:<15}", peer.address).ok();
        if let Some(NodePart { link, boot, mtu, heard_seconds_ago, stale }) = &peer.node {
            let state = if *stale { "stale" } else { "fresh" };
            write!(text, "  {link}  {state}  MTU {mtu:<5} heard {heard_seconds_ago:.1} s ago  boot {boot}")
                .ok();
        }
        if let Some(ServerPart { load, topics, silent }) = &peer.server {
            text.push_str(&load.as_ref().map_or_else(String::new, words));
            let topics = counted(*topics, "topic");
            write!(text, "  {topics}{}", if *silent { "  silent" } else { "" }).ok();
        }
        text.push('\n');
    }
    text
}

fn words(load: &FabricLoad) -> String {
    let (busy, rest) = (load.busy_permille / 10, load.busy_permille % 10);
    format!("  {} requests/s  {busy}.{rest} % busy", load.requests_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fabric() -> FabricFigures {
        let load = FabricLoad { requests_per_second: 7, busy_permille: 123, ..FabricLoad::default() };
        FabricFigures {
            address: Ipv4Addr::new(10, 0, 0, 1),
            interface: "eth1".into(),
            protection: "none".into(),
            trouble: String::new(),
            load: FabricLoad::default(),
            topics: 0,
            marks: 0,
            nodes: vec![FabricNodeFigures {
                address: Ipv4Addr::new(10, 0, 0, 7),
                load: Some(load),
                topics: 5,
                silent_ms: 9_000,
                silent: true,
                behind: false,
            }],
            counts: Default::default(),
        }
    }

    #[test]
    fn one_has_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "topic")), ["0 topics", "1 topic", "2 topics"]);
    }

    #[test]
    fn a_node_and_a_server_tell_what_they_know() {
        let peer = || PeerStatus {
            address: Ipv4Addr::new(10, 0, 0, 7),
            link: "02:00:00:00:00:07".into(),
            boot: "0b".into(),
            mtu: 1500,
            heard_seconds_ago: 1.0,
            stale: false,
        };
        let of_server = "  7 requests/s  12.3 % busy  5 topics  silent\n";
        let of_node =
            "10.0.0.7         02:00:00:00:00:07  fresh  MTU 1500  heard 1.0 s ago  boot 0b".to_owned();
        assert_eq!(table(&super::of_node(vec![peer()], None)), of_node.clone() + "\n");
        assert_eq!(table(&super::of_node(vec![peer()], Some(&fabric()))), of_node + of_server);
        assert_eq!(table(&of_fabric(&fabric())), "10.0.0.7       ".to_owned() + of_server);
        assert_eq!(title(&fabric()), "10.0.0.1, a server on eth1: 1 peer\n");
        let json = serde_json::to_value(super::of_node(vec![peer()], Some(&fabric()))).unwrap();
        assert_eq!((&json[0]["mtu"], &json[0]["load"]["busy_permille"]), (&1500.into(), &123.into()));
        let json = serde_json::to_value(super::of_node(vec![peer()], None)).unwrap();
        assert!(json[0].get("topics").is_none());
    }
}
