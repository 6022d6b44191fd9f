//! What the host says of its load: processors, memory, sockets, queues.
//!
//! It owns the reading of those figures. It must never judge them.
