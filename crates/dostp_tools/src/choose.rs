//! `staunch dostp bench --choose`: which backend is the fastest here, measured in turn and remembered.
//!
//! The other side is `staunch dostp serve`. It must never choose what did not answer, or by one round alone.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;

use staunch_dostp::{Backend, Socket};
use staunch_program::{Failure, output};

use super::link::NodeLink;
use super::service::ECHO_PORT;
use super::trips::{self, PATIENCE, Trips, shown};

/// A backend, what was measured, and why it cannot be taken.
struct Candidate {
    backend: Backend,
    trips: Trips,
    refusal: Option<String>,
}

impl Candidate {
    /// Runs a round by a socket of its own: an interface has room for one kind of AF_XDP at a time.
    fn run(&mut self, address: Ipv4Addr, link: &NodeLink, payload: &[u8], count: u32) {
        if self.refusal.is_none() {
            self.refusal = self.round(address, link, payload, count).err();
        }
    }

    fn round(
        &mut self,
        address: Ipv4Addr,
        link: &NodeLink,
        payload: &[u8],
        count: u32,
    ) -> Result<(), String> {
        let socket = open(self.backend, address, link).map_err(|error| refusal(self.backend, &error))?;
        // The first round trip finds the other node.
        Trips::default().run(1, || trips::by_dostp(&socket, payload)).map_err(|error| error.to_string())?;
        self.trips.run(count, || trips::by_dostp(&socket, payload)).map_err(|error| error.to_string())?;
        if self.trips.is_empty() { Err(format!("{address} does not answer")) } else { Ok(()) }
    }
}

/// Measures, prints a line for each backend, and keeps the fastest in the link's file.
///
/// # Errors
/// None opens, nobody answers, or the file cannot be written.
pub(super) fn run(
    address: Ipv4Addr,
    link: &NodeLink,
    size: usize,
    rounds: u32,
    count: u32,
) -> Result<ExitCode, Failure> {
    let payload = vec![0x5a; size];
    // Rings that are given are rings, and frames in UDP reach only a node that sends its own in UDP.
    let backends = [Backend::Ring, Backend::XdpGeneric, Backend::XdpNative];
    let mut candidates: Vec<Candidate> = backends
        .into_iter()
        .map(|backend| Candidate { backend, trips: Trips::default(), refusal: None })
        .collect();
    output::print(&format!("round trips of {size} bytes to {address} on {}\n", link.interface));
    for _ in 0..rounds {
        for candidate in &mut candidates {
            candidate.run(address, link, &payload, count);
        }
    }
    output::print(&table(&mut candidates));
    let measured = candidates.iter_mut().filter(|candidate| candidate.refusal.is_none());
    let fastest = measured
        .filter_map(|candidate| Some((candidate.trips.quantile(50)?, candidate.backend)))
        .min_by_key(|(p50_ns, _)| *p50_ns);
    let Some((_, backend)) = fastest else {
        return Err(Failure { code: 1, text: "no backend was measured".to_owned() });
    };
    let file = link.choice_file();
    backend.remember(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    output::print(&format!("{backend} is the fastest; remembered in {}\n", file.display()));
    Ok(ExitCode::SUCCESS)
}

fn open(backend: Backend, address: Ipv4Addr, link: &NodeLink) -> io::Result<Socket> {
    let socket = link.open(0, |options| {
        options.is_quiet = true;
        options.backend = Some(backend);
    })?;
    socket.connect(SocketAddrV4::new(address, ECHO_PORT))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

fn refusal(backend: Backend, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return format!("{error}; it needs {}", backend.needs());
    }
    error.to_string()
}

fn table(candidates: &mut [Candidate]) -> String {
    let mut text = String::from("backend           p50      p99  lost\n");
    for Candidate { backend, trips, refusal } in candidates {
        match refusal {
            Some(reason) => writeln!(text, "{:<12} not taken: {reason}", backend.name()),
            None => writeln!(
                text,
                "{:<12} {:>8} {:>8} {:>5}",
                backend.name(),
                shown(trips.quantile(50)),
                shown(trips.quantile(99)),
                trips.lost
            ),
        }
        .ok();
    }
    text
}
