//! DOSTP: the lean transport between the nodes of one LAN, without IP, routes and firewall state.
//!
//! It owns the frame format of `docs/dostp.md`, reassembly, the table of peers, and what a [`Node`] does with
//! each frame: these never read a clock or make a system call, for time and bytes are arguments. A [`Socket`]
//! puts a node on a network interface. It must never decide what a frame means.
#![forbid(unsafe_code)]

mod check;
pub mod fabric;
mod fault;
mod frame;
mod greeting;
mod header;
mod joined;
mod keys;
pub mod kinds;
pub mod limits;
mod node;
mod outgoing;
mod parked;
mod peers;
mod ports;
mod reassembly;
mod socket;
mod window;

pub use fault::{Drops, Fault};
pub use frame::{Frame, sum};
pub use greeting::{Greeting, Link};
pub use header::{EVERYBODY, Flags, Header, Kind};
pub use joined::JoinedFrames;
pub use keys::{Mode, SECRET_BYTES, Secrets, read_secret};
pub use node::{Message, Node, Passed, SendFault, Sending, Settings};
pub use outgoing::{FrameOut, Frames, Outbound};
pub use peers::{Control, Own, Peer, PeerEvent, Peers, Route, Trust};
pub use ports::Ports;
pub use reassembly::{Added, Bounds, Reassembly};
pub use socket::{
    Asked, Backend, ETHER_TYPE, Lent, ModuleSocket, Opened, Options, Received, SPIN_NS, Socket,
    TransactionCaller, TransactionService, TransactionSocket, UDP_PORT, Wait, choice_file, node_path,
    node_path_to_ask,
};
pub use window::{Flow, FlowIds, Ids, ReplayWindow};
