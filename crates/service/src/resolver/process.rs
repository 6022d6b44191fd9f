//! The resolver's processes: how the server starts the first, which starts the one that looks names up, and
//! starts it again if it ends.
//!
//! The first has to be free to start another, so it is not confined; it reads nothing of anybody, not even of
//! the other, and sees of both sides only that they end. It becomes the same user as the server, and has a
//! process group of its own, so that signals of the terminal end the server first and this behind it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use staunch_acme::Line;
use staunch_config::syntax::choice::Sandbox as Choice;
use staunch_confine::Identity;
use staunch_engine::monotonic_ns;
use staunch_program::Failure;

use super::looking;
use super::message::ToServer;
use super::plan::ResolverPlan;

/// The shortest time between two lookups of a name, in milliseconds: whatever is set, servers of DNS are
/// others' machines.
const INTERVAL_MS_MIN: u64 = 100;
/// Until a process that has ended is started again: at first, and at most.
const RESTART_SECONDS: u64 = 1;
const RESTART_SECONDS_MAX: u64 = 60;
/// A process that has lived as long is not one that cannot live.
const LIVES_NS: u64 = 60_000_000_000;

/// How the resolver begins.
pub(crate) struct Beginning<'a> {
    /// Names, each with its port.
    pub(crate) names: &'a [String],
    /// Time between two lookups of one.
    pub(crate) interval: Duration,
    pub(crate) sandbox: Choice,
    /// The user to become.
    pub(crate) user: Option<&'a Identity>,
}

/// Starts the resolver, and gives the server's end of the line to it.
///
/// # Errors
/// The process cannot be started.
pub(super) fn start(beginning: &Beginning<'_>) -> io::Result<Line> {
    let (ours, others) = Line::pair()?;
    let interval_ms = u64::try_from(beginning.interval.as_millis()).unwrap_or(u64::MAX);
    let plan = ResolverPlan {
        names: beginning.names.to_vec(),
        user: beginning.user.map(ToString::to_string),
        sandbox: beginning.sandbox.name().to_owned(),
        interval_ms: interval_ms.max(INTERVAL_MS_MIN),
        looks: false,
    };
    let mut command = plan.command(others.into_descriptor());
    // The terminal's signals are for the server.
    command.process_group(0).spawn()?;
    Ok(ours)
}

/// Runs the resolver until its server has ended.
///
/// # Errors
/// Standard input is no line to a server; the user cannot be assumed; the kernel lacks what is insisted on.
pub fn run(plan: &ResolverPlan) -> Result<(), Failure> {
    let line = io::stdin().as_fd().try_clone_to_owned();
    let line = line.map_err(|error| format!("no line to a server: {error}"))?;
    if plan.looks {
        return looking::run(plan, Line::of(line));
    }
    if let Some(user) = &plan.user {
        let user = Identity::find(user).map_err(|unknown| format!("user: {unknown}"))?;
        user.assume().map_err(|error| error.to_string())?;
    }
    keep_looking(plan, &Line::of(line)).map_err(|error| format!("the resolver: {error}").into())
}

/// Keeps a process that looks names up, until the server has ended.
fn keep_looking(plan: &ResolverPlan, line: &Line) -> io::Result<()> {
    let mut pause_s = RESTART_SECONDS;
    loop {
        let began_ns = monotonic_ns();
        let how = match begin(plan, line) {
            Ok(mut child) => {
                let awaited = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
                if !is_ended_first(&awaited, line)? {
                    // The other hears by itself that the server has ended.
                    return Ok(());
                }
                child.wait()?.to_string()
            }
            Err(error) => error.to_string(),
        };
        if monotonic_ns().saturating_sub(began_ns) >= LIVES_NS {
            pause_s = RESTART_SECONDS;
        }
        let text = format!("proxy: the resolver has ended ({how}), and begins again in {pause_s} s");
        if line.tell(&ToServer::Say(text)).is_err() || has_ended_within(line, pause_s)? {
            return Ok(());
        }
        pause_s = (pause_s * 2).min(RESTART_SECONDS_MAX);
    }
}

fn begin(plan: &ResolverPlan, line: &Line) -> io::Result<Child> {
    let looks = ResolverPlan {
        names: plan.names.clone(),
        user: None,
        sandbox: plan.sandbox.clone(),
        interval_ms: plan.interval_ms,
        looks: true,
    };
    looks.command(line.try_clone()?.into_descriptor()).spawn()
}

/// Waits for the end of a process or of the server. Whether it was the process.
fn is_ended_first(process: &OwnedFd, line: &Line) -> io::Result<bool> {
    loop {
        let mut awaited = [PollFd::new(process, PollFlags::IN), PollFd::new(line, PollFlags::IN)];
        match poll(&mut awaited, None) {
            Ok(_) => return Ok(awaited[1].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether the server ends within that time.
fn has_ended_within(line: &Line, seconds: u64) -> io::Result<bool> {
    let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX), tv_nsec: 0 };
    match poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&time)) {
        Ok(count) => Ok(count > 0),
        // A signal: the pause is shorter for once.
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
