//! A server of ours that lasts while its process changes: it is found by the file with its number.
//!
//! It owns every process that serves: the last one is ended on drop. It must never measure.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::fetch;
use crate::servers::pinned;
use crate::setting::Setting;
use crate::setup::ServerKind;
use crate::{content, machine, process};

/// Asked for by the load.
pub(super) const PATH: &str = "/5000.txt";
const FILE_BYTES: usize = 5000;
/// Each answer costs some of the processor's time, so that many requests wait.
pub(super) const WORK_PATH: &str = "/100000.bin";
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A server of ours whose process may be replaced by another; dropped, it is ended.
#[derive(Debug)]
pub(super) struct Lasting {
    pub(super) address: SocketAddr,
    pub(super) folder: PathBuf,
    /// A copy that may be replaced.
    pub(super) program: PathBuf,
    engine: &'static str,
    child: Child,
    body: Vec<u8>,
}

impl Lasting {
    /// A server that serves, on CPU 0.
    ///
    /// # Errors
    /// It does not start or answers wrongly.
    pub(super) fn start(setting: &Setting, kind: ServerKind) -> Result<Self, String> {
        let folder = setting.scratch.join("life").join(kind.word());
        // What an earlier run has left: it may not be there.
        let _ = fs::remove_dir_all(&folder);
        let body = content::small_file(&folder.join("site"), &PATH[1..], FILE_BYTES)?;
        let program = folder.join("staunch");
        let named = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::copy(&setting.programs.staunch, &program).map_err(named)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, machine::free_port()?));
        let engine = if kind == ServerKind::Epoll { "epoll" } else { "uring" };
        configure(&folder, address, 0)?;
        let child = spawn(&folder, &program, engine)?;
        let mut server = Self { address, folder, program, engine, child, body };
        server.wait_ready()?;
        Ok(server)
    }

    /// Writes the configuration once more, each time with other values.
    ///
    /// # Errors
    /// A disk that is full.
    pub(super) fn configure(&self, round: u32) -> Result<(), String> {
        configure(&self.folder, self.address, round)
    }

    /// Starts the first process again after its end.
    ///
    /// # Errors
    /// As [`Lasting::start`].
    pub(super) fn start_again(&mut self) -> Result<(), String> {
        self.child = spawn(&self.folder, &self.program, self.engine)?;
        self.wait_ready()
    }

    /// Number of the process that serves.
    pub(super) fn process(&self) -> Option<u32> {
        fs::read_to_string(self.folder.join("pid")).ok()?.trim().parse().ok()
    }

    /// Sends a signal, such as `-HUP`, to the process that serves.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn signal(&self, name: &str) -> Result<(), String> {
        let process = self.process().ok_or_else(|| format!("nobody serves: {}", self.said()))?;
        let sent = Command::new("kill").arg(name).arg(process.to_string()).status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("process {process} cannot be sent {name}: {}", self.said())),
        }
    }

    /// Waits until something holds.
    ///
    /// # Errors
    /// It does not in time.
    pub(super) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<(), String> {
        let started = Instant::now();
        while !holds(self) {
            if started.elapsed() > PATIENCE {
                return Err(format!("{what}: not in time; it said: {}", self.said()));
            }
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Waits for the end of the process first started.
    ///
    /// # Errors
    /// It does not end in time.
    pub(super) fn wait_end(&mut self) -> Result<ExitStatus, String> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE * 2 {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Ok(status);
            }
            sleep(LOOK_INTERVAL);
        }
        Err(format!("it does not end: {}", self.said()))
    }

    /// URL of a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it has said on standard error.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.folder.join("err")).unwrap_or_default()
    }

    fn wait_ready(&mut self) -> Result<(), String> {
        let started = Instant::now();
        loop {
            match fetch(self.address, PATH) {
                Ok(reply) if reply.status == 200 && reply.body == self.body => return Ok(()),
                Ok(reply) => return Err(format!("it answers wrongly, with status {}", reply.status)),
                Err(_) if started.elapsed() < PATIENCE => sleep(LOOK_INTERVAL),
                Err(error) => return Err(format!("{error}: {}", self.said())),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended ({status}): {}", self.said()));
            }
        }
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        process::end(&[&[self.child.id()][..], self.process().as_slice()].concat());
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}

fn configure(folder: &Path, address: SocketAddr, round: u32) -> Result<(), String> {
    let text = format!(
        "listen = [\"{address}\"]\nroot = \"{folder}/site\"\nworkers = 1\nencodings = []\n\
         max_connections = 12000\npid_file = \"{folder}/pid\"\nkeep_alive = \"{}s\"\n\
         patience = \"off\"\nheaders = {{ X-Round = \"{round}\" }}\n\
         [[path]]\nmatch = \"{WORK_PATH}\"\nresponse_work = \"300us\"\n",
        600 + round % 2,
        folder = folder.display()
    );
    let path = folder.join("conf.toml");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn spawn(folder: &Path, program: &Path, engine: &str) -> Result<Child, String> {
    let open = |name: &str| {
        let path = folder.join(name);
        let file = File::options().create(true).append(true).open(&path);
        file.map_err(|error| format!("{}: {error}", path.display()))
    };
    pinned(0)
        .arg(program)
        .args(["serve", "--io", engine, "--config"])
        .arg(folder.join("conf.toml"))
        .stdin(Stdio::null())
        .stdout(open("out")?)
        .stderr(open("err")?)
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))
}
