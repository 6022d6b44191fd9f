//! `staunch dostp serve`: a node that answers pings and knows the peers, until it is ended.
//!
//! It waits where an interface is missing or down, and goes on when it is there. It must never end because of
//! what a peer sends.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::event::PollFlags;
use staunch_dostp::{PeerEvent, Socket, node_path};
use staunch_netio::clock;
use staunch_program::{Failure, output};
use staunch_service::fabric::is_of_interface;

use super::control;
use super::link::{self, NodeLink};
use super::service::{DISCARD_PORT, ECHO_PORT, PortService, TURN_COUNT};
use super::spinning::{Sender, Spinning};
use super::waiting::{ended, ready};

/// How often an interface that is missing is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Events told in a second; the others are counted, for strangers can cause them.
const TOLD_PER_SECOND_MAX: u32 = 10;

/// What the command line says.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    link: NodeLink,

    /// Control socket for the other commands [default: /run/staunch/dostp-INTERFACE.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    /// Answer UDP datagrams to this port as well, for `staunch dostp bench` to compare with
    #[arg(long, value_name = "PORT")]
    udp_echo: Option<u16>,

    /// Count messages, and UDP datagrams to that port, instead of answering them, for `staunch dostp bench
    /// --one-way`
    #[arg(long)]
    discard: bool,

    /// Group whose members may ask for rings, and so need no right to speak DOSTP
    #[arg(long, value_name = "GROUP")]
    give_to: Option<String>,
}

/// Serves until it is ended by TERM or INT.
///
/// # Errors
/// A right is missing, another node has the address, or the control socket cannot be made.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let interface = &arguments.link.interface;
    let path = arguments.control.clone().unwrap_or_else(|| node_path(interface));
    let ended = ended().map_err(|error| format!("signals: {error}"))?;
    let group = arguments.give_to.as_deref().map(staunch_confine::group_number).transpose();
    let group = group.map_err(|error| format!("--give-to: {error}"))?;
    let listener = control::listen(&path, group)
        .map_err(|error| format!("control socket {}: {error}", path.display()))?;
    let result = serve(arguments, &listener, &ended);
    std::fs::remove_file(&path).ok();
    result
}

fn serve(arguments: &Arguments, listener: &UnixListener, ended: &UnixStream) -> Result<ExitCode, Failure> {
    let mut log = Log::default();
    let mut waits = false;
    loop {
        let port = if arguments.discard { DISCARD_PORT } else { ECHO_PORT };
        let opened = arguments.link.open(port, |options| {
            options.takes_all_ports = true;
            // The interface's one place for AF_XDP is left to programs that have something to carry.
            options.preferred = None;
        });
        let error = match opened {
            Ok(socket) => {
                waits = false;
                let address = socket.local_addr().map_err(|error| error.to_string())?;
                let own = socket.own();
                log.say(&format!("{} ({}) {}", address.ip(), own.link, link::describe(&socket)));
                let error = match turns(arguments, &socket, listener, ended, &mut log) {
                    Ok(()) => {
                        socket.leave().ok();
                        return Ok(ExitCode::SUCCESS);
                    }
                    Err(error) => error,
                };
                if error.kind() == ErrorKind::AddrInUse {
                    return Err(Failure { code: 1, text: error.to_string() });
                }
                error
            }
            Err(error) if is_of_interface(&error) => error,
            Err(error) => return Err(arguments.link.failure(&error)),
        };
        if !waits {
            log.say(&format!("{error}; waiting for {}", arguments.link.interface));
            waits = true;
        }
        let ready = ready(&[ended.as_fd()], Some(LOOK_AGAIN)).map_err(|error| error.to_string())?;
        if !ready[0].is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Takes turns until a signal comes or the interface goes.
fn turns(
    arguments: &Arguments,
    socket: &Socket,
    listener: &UnixListener,
    ended: &UnixStream,
    log: &mut Log,
) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let address = *socket.local_addr()?.ip();
    let mut service = if arguments.discard {
        PortService::discard(address, arguments.udp_echo)?
    } else {
        PortService::echo(address, arguments.udp_echo)?
    };
    let mut spinning = Spinning::new(arguments.link.wait());
    let mut asked = true;
    loop {
        let (by_udp, by_dostp) = (service.take_udp()?, service.take_dostp(socket)?);
        spinning.heard(Sender::Udp, by_udp);
        spinning.heard(Sender::Dostp, by_dostp);
        if asked {
            control::answer(listener, socket);
        }
        while let Some(event) = socket.poll_event() {
            log.tell(event, |address| socket.full_address(address));
        }
        let due = socket.due_ms().map(|due_ms| Duration::from_millis(due_ms.saturating_sub(clock::now_ms())));
        let mut awaited = vec![ended.as_fd(), socket.as_fd(), listener.as_fd()];
        awaited.extend(service.descriptor());
        let may_be_more = by_udp.max(by_dostp) == TURN_COUNT;
        let until = if may_be_more || spinning.is_on() { Some(Duration::ZERO) } else { due };
        let ready = ready(&awaited, until)?;
        if !ready[0].is_empty() {
            return Ok(());
        }
        if ready[1].contains(PollFlags::ERR) {
            socket.take_error()?;
        }
        asked = !ready[2].is_empty();
        spinning.spin(|sender| match sender {
            Sender::Dostp => service.take_dostp(socket),
            Sender::Udp => service.take_udp(),
        })?;
    }
}

/// Lines on standard error, not more than a few in a second.
#[derive(Default)]
struct Log {
    second_began_ms: u64,
    told: u32,
    untold: u64,
}

impl Log {
    fn say(&self, text: &str) {
        output::remark(&format!("staunch: dostp: {text}\n"));
    }

    fn tell<A: Display>(&mut self, event: PeerEvent, full: impl Fn(u16) -> A) {
        let now_ms = clock::now_ms();
        if now_ms >= self.second_began_ms + 1_000 {
            if self.untold > 0 {
                self.say(&format!("{} more such lines", self.untold));
            }
            (self.second_began_ms, self.told, self.untold) = (now_ms, 0, 0);
        }
        self.told += 1;
        if self.told > TOLD_PER_SECOND_MAX {
            self.untold += 1;
            return;
        }
        self.say(&match event {
            PeerEvent::Appeared(address) => format!("{} is there", full(address)),
            PeerEvent::Restarted(address) => format!("{} has restarted", full(address)),
            PeerEvent::Moved(address) => format!("{} has another link address", full(address)),
            PeerEvent::Gone(address) => format!("{} is gone", full(address)),
            PeerEvent::Unreachable(address) => format!("{} does not answer", full(address)),
            PeerEvent::SmallPath(address) => {
                format!("large frames do not reach {}: 1500 bytes are used", full(address))
            }
        });
    }
}
