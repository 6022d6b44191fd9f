//! What a server knows of the others of its LAN.
//!
//! It must never hold what a peer has chosen but within the bounds of the fabric.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// The fabric at one moment. Counts are from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricFigures {
    /// This node's address.
    pub address: Ipv4Addr,
    /// The name of the interface it uses.
    pub interface: String,
    /// How messages are protected: `none`, `mac` or `aead`.
    pub protection: String,
    /// Why nothing is told at present; empty while all is well.
    pub trouble: String,
    /// How busy this node is.
    pub load: FabricLoad,
    /// Topics with a value that others are told of.
    pub topics: u64,
    /// Ends of topics that are remembered.
    pub marks: u64,
    /// The other nodes, by address.
    pub nodes: Vec<FabricNodeFigures>,
    /// Everything that is counted, by name.
    pub counts: BTreeMap<String, u64>,
}

/// How busy a server is: what its fabric tells, in a form for pages and metrics, which do not know DOSTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricLoad {
    /// Requests answered in the last second.
    pub requests_per_second: u32,
    /// Processor time of the whole process in the last second, of 1 000 for each worker.
    pub busy_permille: u16,
    /// Workers of the server.
    pub workers: u16,
    /// Connections that are open.
    pub connections: u32,
    /// Readers of live data.
    pub readers: u32,
    /// Version of the program.
    pub version: String,
}

/// Another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricNodeFigures {
    /// The address of the node.
    pub address: Ipv4Addr,
    /// How busy it is, if it has said so.
    pub load: Option<FabricLoad>,
    /// How many topics of its sites have a value.
    pub topics: u64,
    /// For how long nothing was heard of it.
    pub silent_ms: u64,
    /// Whether that is longer than usual.
    pub silent: bool,
    /// Whether it is asked for values, or is to be.
    pub behind: bool,
}

impl FabricFigures {
    /// A line for each node, for people.
    pub fn page(&self) -> String {
        let Self { address, interface, protection, trouble, topics, .. } = self;
        let count = self.nodes.len();
        let mut text = format!(
            "{address} on {interface}, keys {protection}, {topics} topics, {count} other nodes\n\n\
             {:<15} {:>10} {:>6} {:>7} {:>11} {:>8} {:>8}  {}\n",
            "node", "requests/s", "busy", "workers", "connections", "readers", "topics", "state"
        );
        if !trouble.is_empty() {
            text.insert_str(0, &format!("{trouble}\n"));
        }
        text.push_str(&line(*address, Some(&self.load), *topics, "here"));
        for node in &self.nodes {
            let state = match (node.silent, node.behind) {
                (true, _) => format!("silent for {} s", node.silent_ms / 1_000),
                (false, true) => "is being asked".to_owned(),
                (false, false) => "well".to_owned(),
            };
            text.push_str(&line(node.address, node.load.as_ref(), node.topics, &state));
        }
        text
    }
}

fn line(address: Ipv4Addr, load: Option<&FabricLoad>, topics: u64, state: &str) -> String {
    let Some(load) = load else { return format!("{address:<15} {:>55}  {state}\n", "") };
    let FabricLoad { requests_per_second, busy_permille, workers, connections, readers, version } = load;
    let busy = format!("{}.{} %", busy_permille / 10, busy_permille % 10);
    format!(
        "{address:<15} {requests_per_second:>10} {busy:>6} {workers:>7} {connections:>11} {readers:>8} \
         {topics:>8}  {state}, {version}\n"
    )
}
