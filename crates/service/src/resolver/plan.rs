//! The words by which the resolver's processes are started.
//!
//! They must say all that a process needs: it is told nothing later.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The hidden subcommand of `staunch` that runs it.
const WORD: &str = "name-resolver";
/// The program of this very process, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// Arguments of the hidden subcommand.
#[derive(Debug)]
pub struct ResolverPlan {
    /// Names, each with its port.
    pub names: Vec<String>,
    /// User to become.
    pub user: Option<String>,
    /// How much of the process is confined, in the word of the settings.
    pub sandbox: String,
    /// Time between two lookups of a name, in milliseconds.
    pub interval_ms: u64,
    /// Whether this process looks names up itself.
    pub looks: bool,
}

impl ResolverPlan {
    /// The command of such a process, with its end of the line to the server.
    pub(super) fn command(&self, line: OwnedFd) -> Command {
        let mut words = vec![OsString::from(WORD), "--sandbox".into(), self.sandbox.clone().into()];
        words.extend(["--interval-ms".into(), self.interval_ms.to_string().into()]);
        words.extend(self.user.iter().flat_map(|user| [OsString::from("--user"), user.into()]));
        words.extend(self.looks.then(|| OsString::from("--looks")));
        words.push("--".into());
        words.extend(self.names.iter().map(OsString::from));
        let mut command = Command::new(PROGRAM);
        command.arg0("staunch").args(words).stdin(line).stdout(Stdio::null());
        command
    }
}
