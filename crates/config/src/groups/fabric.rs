//! Keys of the fabric: by which servers of one LAN tell each other load and live data.

use std::time::Duration;

use crate::group::{Conflict, group};
use crate::syntax::choice::{FabricBackend, FabricMode};
use crate::syntax::text::{ClusterNumber, FilePath, Interface, NodeAddress, Time, Words};
use crate::syntax::{Many, OrOff};

group! {
    /// Other servers of one LAN, by DOSTP.
    Fabric, "Fabric", possible;

    /// Interface to share load and live data by
    /// Servers of one LAN find each other by DOSTP. Each second they tell how busy they are, and at once what
    /// was published to topics of live data, each site to the site of the same name.
    /// The server needs CAP_NET_RAW at its start, unless frames go in UDP. Without `fabric_key_file` anybody
    /// on the LAN (in UDP, who can forge the address of a named server) can publish to every topic: see
    /// `docs/dostp-use.md`.
    fabric: OrOff<Interface> = Some("off"), Value, restart, "\"eth1\"";
    /// auto, ring, given; udp where only IP passes
    /// `auto` opens a packet ring, or without CAP_NET_RAW asks a node of this host for rings (`staunch
    /// dostp serve --give-to`); `ring` and `given` demand one of both. In UDP, port 5288, frames pass
    /// routers and clouds; no server finds another there, so they are named by `fabric_peers`.
    fabric_backend: FabricBackend = Some("auto"), Value, restart, "\"udp\"";
    /// IPv4 addresses of the servers, with fabric_backend = "udp"
    /// All servers may have the same list: each leaves its own address out. Two servers hear each other where
    /// each names the other. The low 16 bits of all addresses have to be different.
    fabric_peers: Many<NodeAddress> = Some(""), Values, restart, "[\"10.0.0.7\", \"10.0.0.8\"]";
    /// File with the cluster's secret, mode 0600
    /// 64 hexadecimal digits, the same on all servers. Read by the user who starts the server.
    fabric_key_file: OrOff<FilePath> = Some("off"), Value, restart, "\"/etc/staunch/dostp.key\"";
    /// Sign messages, or encrypt them too
    /// Without `fabric_key_file` they are neither.
    fabric_mode: FabricMode = Some("mac"), Value, restart, "\"aead\"";
    /// Number of the cluster
    /// Servers of other clusters on the same wire are not heard.
    fabric_cluster: ClusterNumber = Some("0"), Value, restart, "1";
    /// Topics whose updates have a deadline between servers
    /// Names, or patterns of names: `quotes.*` is one word more, `quotes.>` the rest, `*` every name. Such an
    /// update goes before others and in a message of its own kind; a server at which it comes later than
    /// `fabric_deadline` drops it, and asks for what it then lacks. For values that the next one replaces.
    fabric_realtime: Many<Words> = Some(""), Values, restart, "[\"quotes.*\"]";
    /// How long such an update may be held up on its way
    /// Beyond what the quickest message of its server took in the last minute or two, so that no clocks are
    /// compared. At most 60s.
    fabric_deadline: Time = Some("20ms"), Value, restart, "\"5ms\"";
}

/// The longest deadline: after a minute it is judged anew what is quick.
const DEADLINE_MAX: Duration = Duration::from_secs(60);

fn possible(fabric: &Fabric) -> Conflict {
    if fabric.fabric_deadline > DEADLINE_MAX {
        return Some(("fabric_deadline", "at most 60s".into()));
    }
    backend_and_peers(fabric)
}

fn backend_and_peers(fabric: &Fabric) -> Conflict {
    fabric.fabric.as_ref()?;
    match (fabric.fabric_backend, &fabric.fabric_peers[..]) {
        (FabricBackend::Udp, []) => {
            let text = "frames in UDP reach nobody who is not named: write the servers into fabric_peers";
            Some(("fabric_backend", text.into()))
        }
        (FabricBackend::Udp, peers) => {
            let mut places = peers.iter().enumerate();
            let repeated = places.find(|(place, peer)| peers[..*place].contains(peer));
            repeated.map(|(_, peer)| ("fabric_peers", format!("{peer} is named twice")))
        }
        (_, []) => None,
        (backend, _) => {
            let found = format!("fabric_backend = {:?} they find each other", backend.name());
            let text = format!("servers are named for fabric_backend = \"udp\" alone: by {found}");
            Some(("fabric_peers", text))
        }
    }
}
