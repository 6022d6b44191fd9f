//! What a system must allow for a plan: processors, processes, descriptors. Asked before the first row.
//!
//! It must never change a limit.

use rustix::process::{Resource, Rlimit, geteuid, getrlimit};

use crate::model::{Model, PoolUse};
use crate::models::MODELS;
use crate::results::{AskedBy, Row};

/// Descriptors that a server has beside those of its clients and its pool.
const DESCRIPTORS_SPARE: u64 = 32;
/// Processes that others of this user may have.
const PROCESSES_SPARE: u64 = 64;

/// What is allowed here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Processes and threads of one user; the superuser has no such limit.
    processes: Option<u64>,
    /// Processes and threads of all.
    threads: Option<u64>,
    /// Descriptors of a process, when it has raised its limit.
    descriptors: Option<u64>,
}

impl Limits {
    /// Those in force.
    pub(crate) fn here() -> Self {
        let Rlimit { current, .. } = getrlimit(Resource::Nproc);
        let text = std::fs::read_to_string("/proc/sys/kernel/threads-max").unwrap_or_default();
        Self {
            processes: current.filter(|_| !geteuid().is_root()),
            threads: text.trim().parse().ok(),
            descriptors: getrlimit(Resource::Nofile).maximum,
        }
    }

    /// Whether a row can be measured.
    ///
    /// # Errors
    /// What is too much, and which limit it meets.
    pub(crate) fn check(&self, row: &Row) -> Result<(), String> {
        let Row { model, children, pool, client, .. } = row;
        let (clients, pool) = (*children as u64, *pool as u64);
        // Server and client have a process or thread each for everything that they do at a time.
        let at_a_time = match model.as_str() {
            "fork" | "thread" => clients,
            _ => pool,
        };
        let asking = if *client == AskedBy::Epoll { 1 } else { clients };
        let tasks = at_a_time + asking + PROCESSES_SPARE;
        let about = format!("{model} with a pool of {pool}, {clients} children");
        if let Some(limit) = self.processes.filter(|limit| *limit < tasks) {
            return Err(format!(
                "{about}: needs {tasks} processes, and this user may have {limit} (ulimit -u)"
            ));
        }
        if let Some(limit) = self.threads.filter(|limit| *limit < tasks) {
            let file = "/proc/sys/kernel/threads-max";
            return Err(format!("{about}: needs {tasks} processes, and the kernel allows {limit} ({file})"));
        }
        let of_pool = match Model::find(MODELS, model).map(|model| model.pool) {
            Some(PoolUse::Processes) => pool,
            _ => 0,
        };
        let needed = clients + of_pool + DESCRIPTORS_SPARE;
        match self.descriptors.filter(|limit| *limit < needed) {
            Some(limit) => Err(format!(
                "{about}: needs {needed} descriptors, and a process may have {limit} (ulimit -Hn)"
            )),
            None => Ok(()),
        }
    }
}

/// Whether these processors are among those that may be used.
///
/// # Errors
/// Names the one that is not.
pub(crate) fn check_cpus(whose: &str, wanted: &[usize], available: &[usize]) -> Result<(), String> {
    match wanted.iter().find(|cpu| !available.contains(cpu)) {
        _ if wanted.is_empty() => Err(format!("{whose}: no processor")),
        Some(cpu) => Err(format!("{whose}: processor {cpu} is not one this process may use ({available:?})")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(model: &str, children: usize, pool: usize) -> Row {
        crate::made_up::measured(model, (children, 1, 1, pool), &[]).row
    }

    #[test]
    fn what_is_too_much_is_named() {
        let limits = Limits { processes: Some(300), threads: Some(1000), descriptors: Some(200) };
        let table = [
            (row("prefork", 100, 50), None),
            (row("prefork", 100, 500), Some("needs 664 processes, and this user may have 300 (ulimit -u)")),
            (row("fork", 140, 0), Some("needs 344 processes")),
            (row("thread", 140, 0), Some("needs 344 processes")),
            (row("poll", 100, 0), None),
            (row("prefork", 250, 50), Some("needs 364 processes")),
            (Row { client: AskedBy::Epoll, ..row("fork", 140, 0) }, None),
            (row("poll", 180, 0), Some("poll with a pool of 0, 180 children: needs 212 descriptors")),
        ];
        for (row, expected) in table {
            match (limits.check(&row), expected) {
                (Ok(()), None) => {}
                (Err(told), Some(words)) => assert!(told.contains(words), "{row:?}: {told}"),
                other => panic!("{row:?}: {other:?}"),
            }
        }
        let kernel = Limits { processes: None, ..limits };
        let told = kernel.check(&row("prefork", 100, 2000)).expect_err("too many");
        assert!(told.contains("the kernel allows 1000"), "{told}");
        let none = Limits { processes: None, threads: None, descriptors: None };
        assert_eq!(none.check(&row("prefork", 9000, 5000)), Ok(()));
    }

    #[test]
    fn processors_must_be_there() {
        assert_eq!(check_cpus("--server-cpus", &[2, 3], &[2, 3]), Ok(()));
        let told = check_cpus("--server-cpus", &[2, 7], &[2, 3]).expect_err("it is not there");
        assert_eq!(told, "--server-cpus: processor 7 is not one this process may use ([2, 3])");
        assert!(check_cpus("--client-cpus", &[], &[2, 3]).is_err());
    }
}
