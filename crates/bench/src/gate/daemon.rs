//! The gate: `staunch gate` on the server's end of the cable, as people run it, with nothing configured.
//!
//! It owns the daemon, which ends when it is dropped, and the moments at which it said something. It must
//! never tell the gate how fast the server is.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

use super::bed::Bed;
use crate::process;

/// The bed's reception is a thread of real-time priority 50, so the daemon needs more to run beside it.
/// Softirqs on an ordinary host leave room for a daemon of any real-time priority.
const PRIORITY: &str = "60";
const SETTLING: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(5);

/// A line of the daemon and when it came.
pub(crate) type Said = (SystemTime, String);

/// A gate that is up.
#[derive(Debug)]
pub(crate) struct GateProcess {
    child: Child,
    namespace: String,
    interface: String,
    staunch: PathBuf,
    said: Arc<Mutex<Vec<Said>>>,
}

/// Why there is no gate to measure; none if there is one.
pub(crate) fn absence(staunch: &Path) -> Option<String> {
    let said = Command::new(staunch).args(["gate", "--help"]).output();
    match said {
        Ok(output) if output.status.success() => None,
        Ok(_) => Some("this staunch has no gate: its column is left out".to_owned()),
        Err(error) => Some(format!("{}: {error}", staunch.display())),
    }
}

impl GateProcess {
    /// Starts it on processor 0, beside the server it protects, and waits until it says how it is.
    ///
    /// # Errors
    /// What the daemon says when it ends, or that it says nothing.
    pub(crate) fn open(bed: &Bed, staunch: &Path, arguments: &[&str]) -> Result<Self, String> {
        let mut command = bed.at_server();
        command.arg(staunch).args(["gate", "--interface", &bed.interface, "--port", "80"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("staunch gate: {error}"))?;
        let said = Arc::new(Mutex::new(Vec::new()));
        if let Some(output) = child.stdout.take() {
            listen(output, &said);
        }
        if let Some(errors) = child.stderr.take() {
            listen(errors, &said);
        }
        let (namespace, interface) = (bed.server.clone(), bed.interface.clone());
        let mut daemon = Self { child, namespace, interface, staunch: staunch.to_path_buf(), said };
        daemon.wait_ready()?;
        // Its loop has given itself the lowest real-time priority by then.
        sleep(SETTLING);
        let number = daemon.child.id().to_string();
        let raised = Command::new("chrt").args(["--all-tasks", "-f", "-p", PRIORITY, &number]).output();
        match raised {
            Ok(output) if output.status.success() => Ok(daemon),
            Ok(output) => Err(format!("chrt: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("chrt: {error}")),
        }
    }

    /// What `staunch gate status --json` says.
    ///
    /// # Errors
    /// It does not answer, or not in JSON.
    pub(crate) fn status(&self) -> Result<serde_json::Value, String> {
        let words = ["gate", "status", "--interface", &self.interface, "--once", "--json"];
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(&self.staunch).args(words);
        let output = command.output();
        let output = output.map_err(|error| format!("staunch gate status: {error}"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("staunch gate status: {}", errors.trim()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| format!("staunch gate status: {error}"))
    }

    /// What it has said until now.
    pub(crate) fn said(&self) -> Vec<Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn wait_ready(&mut self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let Err(error) = self.status() else { return Ok(()) };
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("staunch gate ended ({status}): {}", self.last_words()));
            }
            if began.elapsed() > PATIENCE {
                return Err(error);
            }
            sleep(Duration::from_millis(50));
        }
    }

    fn last_words(&self) -> String {
        self.said().last().map_or_else(|| "it said nothing".to_owned(), |(_, line)| line.clone())
    }
}

impl Drop for GateProcess {
    fn drop(&mut self) {
        let processes = process::descendants(self.child.id());
        // A runnable process whose priority the kernel gives no time to does not end either.
        process::make_ordinary(&processes);
        process::end(&processes);
        process::collect(&mut self.child);
    }
}

/// Notes each line with the moment it came. The thread ends with the daemon.
fn listen(stream: impl Read + Send + 'static, said: &Arc<Mutex<Vec<Said>>>) {
    let said = Arc::clone(said);
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            said.lock().unwrap_or_else(PoisonError::into_inner).push((SystemTime::now(), line));
        }
    });
}
