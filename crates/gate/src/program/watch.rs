//! The tracker's programs at their points in the kernel: what becomes of connections, and those that stood
//! before.
//!
//! It owns where they are attached. It must never load the XDP program.

use std::io::{self, Read as _};

use aya::programs::{BtfTracePoint, Iter};
use aya::{Btf, Ebpf};

use super::part::program;
use crate::fault::GateError;

/// What the tracker watches, and the point in the kernel it watches from. All are there since Linux 4.16.
const TRACEPOINTS: [(&str, &str); 3] = [
    ("gate_state", "inet_sock_set_state"),
    ("gate_segment", "tcp_probe"),
    ("gate_read", "tcp_rcv_space_adjust"),
];
/// The program that is shown each connection there is, and the kernel's iterator over them (Linux 5.9).
const FOUND: (&str, &str) = ("gate_found", "tcp");

/// Attaches it, and takes over the connections there are. A note says what is lost if these are not seen.
///
/// # Errors
/// This kernel does not take it.
pub(super) fn attach(ebpf: &mut Ebpf, btf: &Btf) -> Result<Option<String>, GateError> {
    for (name, point) in TRACEPOINTS {
        let program: &mut BtfTracePoint = program(ebpf, name)?;
        let attached = program.load(point, btf).and_then(|()| program.attach());
        attached.map_err(|error| GateError::of_kernel(&format!("watching {point}"), &error))?;
    }
    Ok(take_over(ebpf, btf)
        .err()
        .map(|error| format!("connections that stand already are not seen ({error}); those from now on are")))
}

/// The order matters: whoever comes meanwhile is seen by the tracepoints, and not counted twice.
fn take_over(ebpf: &mut Ebpf, btf: &Btf) -> Result<(), GateError> {
    let (name, kind) = FOUND;
    let fault =
        |error: &(dyn std::error::Error + 'static)| GateError::of_kernel("looking at connections", error);
    let program: &mut Iter = program(ebpf, name)?;
    let attached = program.load(kind, btf).and_then(|()| program.attach());
    let link = attached.and_then(|id| program.take_link(id)).map_err(|error| fault(&error))?;
    let mut file = link.into_file().map_err(|error| fault(&error))?;
    read_all(&mut file).map_err(|error| fault(&error))
}

/// The kernel shows the program a connection after another while it is read from; nothing is to be read.
fn read_all(file: &mut std::fs::File) -> io::Result<()> {
    let mut nothing = [0; 16];
    while file.read(&mut nothing)? > 0 {}
    Ok(())
}
