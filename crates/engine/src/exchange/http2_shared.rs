//! What the HTTP/2 connections of a worker share.
//!
//! It must never hold anything of a request whose answer waits.

use std::hash::{BuildHasher, RandomState};

use staunch_protocol::http2::WorkerMemory;

use super::http2_pen::Http2Pen;

/// Memory that the HTTP/2 connections of one worker share.
#[derive(Debug)]
pub(crate) struct Http2Shared {
    pub(crate) memory: WorkerMemory,
    pub(crate) pen: Http2Pen,
    /// Connections may begin with the preface.
    pub(crate) is_on: bool,
}

impl Default for Http2Shared {
    fn default() -> Self {
        let random = || RandomState::new().hash_one(0);
        Self { memory: WorkerMemory::new([random(), random()]), pen: Http2Pen::new(), is_on: true }
    }
}
