//! The children, be they processes, threads or many in one process: how they are started, and whether they
//! still run.
//!
//! It must never know what they do.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use staunch_netio::host::cpu::available_cpus;

use super::child;
use super::event_loop;
use super::plan::Plan;
use super::tally::Board;
use crate::results::AskedBy;
use crate::syscall::fork;

/// Stack of a thread: a child calls no deeper than a few functions, and its buffer is not on the stack.
const STACK_BYTES: usize = 256 * 1024;

/// All children that have not been seen to end; those that live in one process are one here.
pub(super) enum ClientCrew {
    Processes(Vec<Pid>),
    Threads(Vec<JoinHandle<()>>),
}

impl ClientCrew {
    /// Starts all of them. They wait at the barrier until nobody holds `lift` any more.
    ///
    /// # Errors
    /// One cannot be started. Those started before are told to end.
    pub(super) fn start(
        plan: &Plan,
        board: &Arc<Board>,
        barrier: &Arc<OwnedFd>,
        lift: &mut Option<OwnedFd>,
    ) -> io::Result<Self> {
        let cpus = available_cpus()?;
        let (mut crew, count) = match plan.client {
            AskedBy::Processes => (Self::Processes(Vec::new()), plan.children),
            AskedBy::Threads => (Self::Threads(Vec::new()), plan.children),
            AskedBy::Epoll => (Self::Processes(Vec::new()), cpus.len().min(plan.children)),
        };
        for number in 0..count {
            if let Err(error) =
                crew.add(plan, board, barrier, lift, (number, count, cpus[number % cpus.len()]))
            {
                board.stop();
                crew.end();
                let words = format!("child {} of {count} cannot be started: {error}", number + 1);
                return Err(io::Error::new(error.kind(), words));
            }
        }
        Ok(crew)
    }

    fn add(
        &mut self,
        plan: &Plan,
        board: &Arc<Board>,
        barrier: &Arc<OwnedFd>,
        lift: &mut Option<OwnedFd>,
        (number, count, cpu): (usize, usize, usize),
    ) -> io::Result<()> {
        match self {
            Self::Processes(processes) => processes.push(fork(|| {
                // The child's copy; who holds one keeps all others waiting.
                drop(lift.take());
                match plan.client {
                    // An error shows only by the loops that are missing.
                    AskedBy::Epoll => {
                        let children = (number..plan.children).step_by(count);
                        _ = event_loop::live(plan, board, barrier, children, cpu);
                    }
                    AskedBy::Processes | AskedBy::Threads => child::live(plan, board, number, barrier),
                }
            })?),
            Self::Threads(threads) => {
                let (plan, board, barrier) = (plan.clone(), Arc::clone(board), Arc::clone(barrier));
                let life = move || child::live(&plan, &board, number, &barrier);
                threads.push(Builder::new().stack_size(STACK_BYTES).spawn(life)?);
            }
        }
        Ok(())
    }

    /// Whether any still runs.
    pub(super) fn is_running(&mut self) -> bool {
        match self {
            Self::Processes(processes) => {
                while processes.last().is_some_and(|last| has_ended(*last)) {
                    processes.pop();
                }
                !processes.is_empty()
            }
            Self::Threads(threads) => {
                while threads.last().is_some_and(JoinHandle::is_finished) {
                    threads.pop();
                }
                !threads.is_empty()
            }
        }
    }

    /// Whether all run. To be asked before the begin only.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Processes(processes) => processes.iter().all(|process| !has_ended(*process)),
            Self::Threads(threads) => threads.iter().all(|thread| !thread.is_finished()),
        }
    }

    /// Ends processes now. A thread cannot be ended: one that has been told to stop is left to itself, and
    /// ends when its peer answers or its patience is over.
    pub(super) fn end(&mut self) {
        if let Self::Processes(processes) = self {
            for process in processes.drain(..) {
                // The process is ours until it was waited for; if it has ended, the signal does nothing.
                let _ = kill_process(process, Signal::KILL);
                let _ = waitpid(Some(process), WaitOptions::empty());
            }
        }
    }
}

/// Whether a child has ended; it is gone for good then.
fn has_ended(process: Pid) -> bool {
    !matches!(waitpid(Some(process), WaitOptions::NOHANG), Ok(None))
}
