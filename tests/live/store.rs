//! A state folder for tests of restarts and upgrades, servers that use it, and questions to them.
//!
//! It must never outlive its test: what was mounted is unmounted, whatever happens.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::process::Signal;
use staunch_tests::house::disk::Disk;
use staunch_tests::process::binary;

use crate::world::World;

/// Topics `log.*` with rings of 3 updates, and `slow.*` that hold back what comes within 300 ms.
pub(crate) const TOPICS: &str = "live_topic = [{ match = \"log.*\", kind = \"log\", ring = 3 }, \
                      { match = \"slow.*\", every = \"300ms\" }]";

/// A state folder for servers.
pub(crate) struct Store {
    folder: PathBuf,
    /// What is mounted there.
    disk: Option<Disk>,
}

impl Store {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("staunch-state-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self { folder, disk: None }
    }

    /// A folder with a file system of these options; none, and a line that says so, where it cannot be
    /// mounted.
    pub(crate) fn mounted(options: &str) -> Option<Self> {
        let mut store = Self::new();
        store.disk = Some(Disk::mount(store.folder.clone(), options)?);
        Some(store)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("live.redb")
    }

    /// A server with its state in this folder, or what the server said instead of serving.
    pub(crate) fn try_serve(&self, io: &str, sync: &str, arguments: &[&str]) -> Result<World, String> {
        self.try_run(&binary(), io, sync, arguments)
    }

    /// `try_serve` with another program than the one under test.
    pub(crate) fn try_run(
        &self,
        program: &Path,
        io: &str,
        sync: &str,
        arguments: &[&str],
    ) -> Result<World, String> {
        let folder = self.folder.to_str().expect("a name of ours");
        let own = ["--live-state", folder, "--live-sync", sync];
        World::run(program, io, &[&own, arguments].concat(), TOPICS)
    }

    pub(crate) fn serve(&self, io: &str, sync: &str) -> World {
        self.try_serve(io, sync, &[]).unwrap_or_else(|fault| panic!("{fault}"))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.disk = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Sends a server a signal, and waits for its end.
pub(crate) fn end(mut world: World, signal: Signal) {
    world.signal(signal);
    world.server.end().expect("an end");
}

/// Epoch and number of a version.
pub(crate) fn parts(version: &str) -> (String, u64) {
    let (epoch, number) = version.trim_matches('"').split_once('-').expect("a version");
    (epoch.to_owned(), number.parse().expect("a number"))
}

/// The value of a topic and the number of its version.
pub(crate) fn value(world: &World, topic: &str) -> (String, u64) {
    let answer = world.ask("GET", &format!("/live/{topic}"), "", b"");
    assert_eq!(answer.status, 200, "{topic}: {answer:?}");
    let number = parts(answer.field("etag").expect("a version")).1;
    (answer.text(), number)
}
