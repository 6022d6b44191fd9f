//! A server that is taken over by another process (USR2), again and again.
//!
//! It must never leave a process behind.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use staunch_tests::house::waiting::until;

use crate::store::{Store, TOPICS};
use crate::world::World;

/// A server with its store, and the processes that took over from it by upgrades; all are ended on drop.
pub(crate) struct Line {
    serving: Serving,
    pub(crate) world: World,
    pub(crate) store: Store,
}

/// The process that serves now, known by the file of its PID.
struct Serving {
    file: PathBuf,
    first: Pid,
}

impl Serving {
    fn process(&self) -> Option<Pid> {
        Pid::from_raw(std::fs::read_to_string(&self.file).ok()?.trim().parse().ok()?)
    }
}

impl Drop for Serving {
    /// The file does not name every process: one that was started for an upgrade writes its number once it
    /// serves, be it after the former has ended.
    fn drop(&mut self) {
        until("all processes are gone", || {
            let processes = processes_of(&self.file);
            processes.iter().for_each(|process| _ = kill_process(*process, Signal::KILL));
            processes.is_empty()
        });
    }
}

/// Processes that run and whose command line names a file.
fn processes_of(file: &Path) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").expect("the processes");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let names_it = |number: &i32| {
        let command_line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let mut words = command_line.split(|byte| *byte == 0);
        words.any(|word| word == file.as_os_str().as_encoded_bytes())
    };
    numbers.filter(names_it).filter_map(Pid::from_raw).collect()
}

impl Line {
    /// A server with a store of this `live_sync`; with `memory`, without one.
    pub(crate) fn begin(program: &Path, io: &str, sync: &str, arguments: &[&str]) -> Self {
        Self::run(|store, own| {
            let arguments = [own, arguments].concat();
            match sync {
                "memory" => World::run(program, io, &arguments, TOPICS),
                _ => store.try_run(program, io, sync, &arguments),
            }
        })
    }

    /// A server that is run with these arguments and maybe more.
    pub(crate) fn run(run: impl FnOnce(&Store, &[&str]) -> Result<World, String>) -> Self {
        let store = Store::new();
        let [file, log] = ["pid", "said"].map(|name| store.path().join(name));
        let names = [&file, &log].map(|path| path.to_str().expect("a name of ours"));
        let own = ["--pid-file", names[0], "--error-log", names[1], "--drain-timeout", "2s"];
        let world = run(&store, &own).unwrap_or_else(|fault| panic!("{fault}"));
        let number = i32::try_from(world.server.process_id()).expect("a number");
        let first = Pid::from_raw(number).expect("a process");
        Self { serving: Serving { file, first }, world, store }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.store.path().join("said")).unwrap_or_default()
    }

    pub(crate) fn signal(&self) -> Pid {
        let process = self.serving.process().expect("a process");
        kill_process(process, Signal::USR2).expect("a process of ours");
        process
    }

    /// Kills all processes; gives what is left of it.
    pub(crate) fn kill(self) -> Store {
        let Self { serving, world, store } = self;
        drop(serving);
        drop(world);
        store
    }

    /// Kills the process that serves since the last upgrade.
    pub(crate) fn kill_successor(&self) {
        let process = self.serving.process().filter(|process| *process != self.serving.first);
        kill_process(process.expect("a successor"), Signal::KILL).expect("a process of ours");
    }

    pub(crate) fn upgrade(&self) {
        let before = self.signal();
        until("another process serves", || self.serving.process().is_some_and(|now| now != before));
    }
}
