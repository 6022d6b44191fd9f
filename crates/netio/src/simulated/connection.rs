//! The server's side of a simulated connection.

use std::os::fd::AsFd;

use super::peer::PeerId;
use crate::{FilePart, Outgoing, Part};

/// A slot in use.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: PeerId,
    pub(super) receiving: bool,
    pub(super) ended: bool,
    pub(super) shut: bool,
    pub(super) closing: bool,
    pub(super) last: bool,
    /// Closed, and the report of it is under way.
    pub(super) gone: bool,
    pub(super) flight: Option<Flight>,
}

impl Connection {
    pub(super) fn new(peer: PeerId) -> Self {
        let (receiving, ended, shut, closing, last, gone) = (false, false, false, false, false, false);
        Self { peer, receiving, ended, shut, closing, last, gone, flight: None }
    }
}

/// A send under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) outgoing: Box<Outgoing>,
    pub(super) bytes: Vec<u8>,
    pub(super) taken: usize,
    pub(super) last: bool,
}

impl Flight {
    /// Everything the container holds, in order; gives the container back with an errno if a file cannot be
    /// read.
    pub(super) fn new(mut outgoing: Box<Outgoing>, last: bool) -> Result<Self, (Box<Outgoing>, i32)> {
        let flat = flatten(&outgoing);
        outgoing.clear(0);
        match flat {
            Ok(bytes) => Ok(Self { outgoing, bytes, taken: 0, last }),
            Err(errno) => Err((outgoing, errno)),
        }
    }
}

fn flatten(outgoing: &Outgoing) -> Result<Vec<u8>, i32> {
    let (mut own, parts) = outgoing.contents();
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Own(length) => {
                let (taken, rest) = own.split_at(*length);
                bytes.extend_from_slice(taken);
                own = rest;
            }
            Part::Shared(slice) => bytes.extend_from_slice(slice.as_bytes()),
            Part::File(part) => read_file(part, &mut bytes)?,
        }
    }
    bytes.extend_from_slice(own);
    Ok(bytes)
}

fn read_file(part: &FilePart, bytes: &mut Vec<u8>) -> Result<(), i32> {
    let start = bytes.len();
    bytes.resize(start + part.length_bytes as usize, 0);
    let read = rustix::io::pread(part.file.as_fd(), &mut bytes[start..], part.offset_bytes);
    match read {
        Ok(read) if read as u64 == part.length_bytes => Ok(()),
        Ok(_) => Err(rustix::io::Errno::STALE.raw_os_error()),
        Err(error) => Err(error.raw_os_error()),
    }
}
