//! What is asked of the host, and set at it, beside connections: processors, interfaces, routes, sockets of
//! others, raw packets, the server in the kernel.
//!
//! It must never be needed to answer a request: the gate, the load generator, the laboratory and the doctor
//! ask, and the engine only while it starts; backends take connections at khttpd's device.

pub mod cpu;
pub mod interface;
pub mod interrupt;
pub mod khttpd;
pub mod packet;
mod parents_only;
pub mod punctual;
pub mod route;
pub mod sock_diag;
mod unix_maker;

pub use self::parents_only::ParentsOnly;
pub use self::unix_maker::unix_socket_maker;
