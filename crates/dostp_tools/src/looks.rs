//! `staunch dostp peers` and `stats`: what the node of this host knows and has counted.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use staunch_dostp::node_path_to_ask;

use super::control::{self, Status};
use super::peers;
use staunch_program::{Failure, output};
use staunch_service::fabric;

/// Which node.
#[derive(Args)]
struct Which {
    /// Network interface of the node
    #[arg(long, short = 'I', value_name = "NAME")]
    interface: String,

    /// Its control socket, if it is not at /run/staunch/dostp-INTERFACE.sock, or, in another network
    /// namespace than the first process's, dostp-INTERFACE@NAMESPACE.sock there
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// What the command line says.
#[derive(Args)]
pub(crate) struct Peers {
    #[command(flatten)]
    which: Which,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the command line says.
#[derive(Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    which: Which,

    /// Print JSON instead of Prometheus' text
    #[arg(long)]
    json: bool,
}

/// Shows the table of peers.
///
/// # Errors
/// No node runs, and no server with a fabric.
pub(super) fn peers(arguments: &Peers) -> Result<ExitCode, Failure> {
    let fabric = fabric::ask(&arguments.which.interface);
    let (title, peers) = match (ask(&arguments.which), &fabric) {
        (Ok(status), _) => (title(&status), peers::of_node(status.peers, fabric.as_ref())),
        (Err(_), Some(fabric)) => (peers::title(fabric), peers::of_fabric(fabric)),
        (Err(failure), None) => return Err(failure),
    };
    output::print(&if arguments.json { json(&peers)? } else { title + &peers::table(&peers) });
    Ok(ExitCode::SUCCESS)
}

/// Shows the counts.
///
/// # Errors
/// No node runs.
pub(super) fn stats(arguments: &Stats) -> Result<ExitCode, Failure> {
    let status = ask(&arguments.which)?;
    output::print(&if arguments.json { json(&status)? } else { metrics(&status) });
    Ok(ExitCode::SUCCESS)
}

fn ask(which: &Which) -> Result<Status, Failure> {
    let path = which.control.clone().unwrap_or_else(|| node_path_to_ask(&which.interface));
    control::ask(&path, &which.interface)
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn title(status: &Status) -> String {
    format!(
        "{} ({}) by {} on {}, MTU {}: {}\n",
        status.address,
        status.link,
        status.backend,
        status.interface,
        status.mtu,
        peers::counted(status.peers.len() as u64, "peer")
    )
}

fn metrics(status: &Status) -> String {
    let mut text = String::new();
    let counters = [
        ("frames_received", "Frames that came", status.frames_received),
        ("control_frames_received", "Control frames that were taken", status.control_frames_received),
        ("control_frames_sent", "Control frames sent", status.control_frames_sent),
        ("messages_received", "Messages handed on", status.messages_received),
        ("messages_sent", "Messages sent", status.messages_sent),
        ("overrun", "Frames the kernel dropped because they were not taken in time", status.overrun),
    ];
    for (name, help, value) in counters {
        let name = format!("staunch_dostp_{name}_total");
        writeln!(text, "# HELP {name} {help}.\n# TYPE {name} counter\n{name} {value}").ok();
    }
    let name = "staunch_dostp_dropped_total";
    writeln!(text, "# HELP {name} Frames and messages dropped, by reason.\n# TYPE {name} counter").ok();
    for (reason, count) in &status.dropped {
        writeln!(text, "{name}{{reason=\"{reason}\"}} {count}").ok();
    }
    let stale = status.peers.iter().filter(|peer| peer.stale).count();
    let name = "staunch_dostp_peers";
    writeln!(text, "# HELP {name} Peers in the table.\n# TYPE {name} gauge").ok();
    writeln!(text, "{name}{{state=\"fresh\"}} {}", status.peers.len() - stale).ok();
    writeln!(text, "{name}{{state=\"stale\"}} {stale}").ok();
    text
}
