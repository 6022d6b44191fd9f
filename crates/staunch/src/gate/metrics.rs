//! The gate's figures over HTTP: at an address of its own.

use std::net::SocketAddr;

use staunch_config::syntax::text::AdminAddress;
use staunch_gate::metrics;
use staunch_gate::snapshot::Board;
use staunch_protocol::Status;
use staunch_server::{Admin, Page};
use staunch_service::admin::{AdminDoor, Listener};

const INDEX: &str = "/metrics      for Prometheus\n/healthz      200 while the process lives\n\
    /status.json  what `staunch gate status` shows\n";

/// Answers at this address from now on, also to these names; where, with the port taken.
///
/// # Errors
/// An address that cannot be had.
pub(super) fn serve(
    address: SocketAddr,
    hosts: &[String],
    board: Board,
) -> Result<(AdminAddress, AdminDoor), String> {
    let listener = Listener::bind(&AdminAddress::Internet(address), false)?;
    let hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    let address = listener.address();
    let pages = move |path: &[u8]| match path {
        b"/" => Some(Page::text(Status::OK, INDEX)),
        b"/metrics" => Some(Page::metrics(metrics::text(&board.latest()))),
        b"/healthz" => Some(Page::text(Status::OK, "ok\n")),
        b"/status.json" => Some(Page::json(&board.latest())),
        _ => None,
    };
    Ok((address, listener.serve(Admin::of(Box::new(pages), hosts))?))
}
