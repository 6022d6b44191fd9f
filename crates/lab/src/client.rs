//! The standard client: children that each make connections one after the other, as Dong's (2012) does.
//!
//! It owns what is asked, who asks, and what came of it. It must be cheap, for it must not be what limits a
//! server: a child makes as few calls as there can be. It must never try again what failed: whatever went
//! wrong is counted. Every loop of every child ends as an answer or as a failure.
//!
//! A child is a process or a thread that makes blocking calls, or a state of a loop that serves all of them.

mod answer;
mod child;
mod crew;
mod event_loop;
mod fault;
mod loops;
mod plan;
mod source;
mod tally;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use staunch_netio::clock;

use crate::results::ClientReport;
use crate::syscall::thread_usage;
pub use plan::{CHILDREN_MAX, LOOPS_MAX, Plan};

use crew::ClientCrew;
use tally::Board;

/// How long children may take to end when they are told to; whoever waits for a peer longer is ended.
const GRACE_NS: u64 = 1_000_000_000;
/// Until so long after the begin it is looked often whether all have ended: short runs are not made longer.
const EARLY_NS: u64 = 200_000_000;

/// Asks. All children begin at the same moment. Now and then `watch` is told how many loops have ended; with
/// `false` it ends the run, which then reports what came until then.
///
/// # Errors
/// No memory, or no process or thread for a child. With processes as children: this process has threads.
/// Whatever happens to connections stands in the report.
pub fn run(plan: &Plan, watch: &mut dyn FnMut(u64) -> bool) -> io::Result<ClientReport> {
    let board = Arc::new(Board::new(plan.children)?);
    let (barrier, lift) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut lift = Some(lift);
    let mut crew = ClientCrew::start(plan, &board, &Arc::new(barrier), &mut lift)?;
    await_children(plan, &board, &crew)?;
    let before = thread_usage();
    let began_ns = clock::now_ns();
    drop(lift);
    supervise(&mut crew, &board, began_ns, watch);
    Ok(board.report(&thread_usage().since(&before), clock::now_ns()))
}

/// Waits until all children stand at the barrier.
fn await_children(plan: &Plan, board: &Board, crew: &ClientCrew) -> io::Result<()> {
    let mut ready = 0;
    while ready < plan.children {
        clock::pause(Duration::from_millis(1));
        let before = std::mem::replace(&mut ready, board.ready());
        if ready == before && !crew.is_whole() {
            return Err(io::Error::other("a child ended before it began"));
        }
    }
    Ok(())
}

/// Waits until the last child has ended.
fn supervise(crew: &mut ClientCrew, board: &Board, began_ns: u64, watch: &mut dyn FnMut(u64) -> bool) {
    let mut told_ns = None;
    while crew.is_running() {
        let now_ns = clock::now_ns();
        match told_ns {
            None if watch(board.loops_ended()) => {}
            None => {
                board.stop();
                told_ns = Some(now_ns);
            }
            Some(told_ns) if now_ns - told_ns > GRACE_NS => return crew.end(),
            Some(_) => {}
        }
        let is_early = now_ns - began_ns < EARLY_NS;
        clock::pause(Duration::from_millis(if is_early { 2 } else { 20 }));
    }
}
