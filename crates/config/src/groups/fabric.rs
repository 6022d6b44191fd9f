//! Keys of the fabric: by which servers of one LAN tell each other load and live data.

use crate::group::group;
use crate::syntax::OrOff;
use crate::syntax::choice::FabricMode;
use crate::syntax::text::{ClusterNumber, FilePath, Interface};

group! {
    /// Other servers of one LAN, by DOSTP.
    Fabric, "Fabric", |_| None;

    /// Interface to share load and live data by
    /// Servers of one LAN find each other by DOSTP. Each second they tell how busy they are, and at once what
    /// was published to topics of live data, each site to the site of the same name.
    /// The server needs CAP_NET_RAW at its start. Without `fabric_key_file` anybody on the LAN can publish to
    /// every topic: see `docs/dostp-use.md`.
    fabric: OrOff<Interface> = Some("off"), Value, restart, "\"eth1\"";
    /// File with the cluster's secret, mode 0600
    /// 64 hexadecimal digits, the same on all servers. Read by the user who starts the server.
    fabric_key_file: OrOff<FilePath> = Some("off"), Value, restart, "\"/etc/staunch/dostp.key\"";
    /// Sign messages, or encrypt them too
    /// Without `fabric_key_file` they are neither.
    fabric_mode: FabricMode = Some("mac"), Value, restart, "\"aead\"";
    /// Number of the cluster
    /// Servers of other clusters on the same wire are not heard.
    fabric_cluster: ClusterNumber = Some("0"), Value, restart, "1";
}
