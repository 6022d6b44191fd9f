//! A program under measurement: started on its processors in a process group of its own, told to end, waited
//! for.
//!
//! It must never outlive whoever holds it: what is dropped is killed, with its group.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use staunch_netio::clock;

use crate::options::pin;
use crate::results::Usage;
use crate::syscall;

/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A program that runs, or has ended.
pub(crate) struct Subject {
    process: Pid,
    lines: Receiver<String>,
    complaints: Receiver<String>,
    ended: Option<(ExitStatus, Usage)>,
}

impl Subject {
    /// Starts a program on these processors; `own` are those of the caller, who must not stay on the others.
    ///
    /// # Errors
    /// It cannot be started, or not there.
    pub(crate) fn start<A: AsRef<OsStr>>(
        program: &Path,
        arguments: &[A],
        cpus: &[usize],
        own: &[usize],
    ) -> Result<Self, String> {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        syscall::end_with_us(&mut command);
        // A new program begins where its parent is.
        let started = pin(cpus).and_then(|()| command.spawn());
        pin(own).map_err(|error| format!("processors {own:?}: {error}"))?;
        let mut child =
            started.map_err(|error| format!("{} on processors {cpus:?}: {error}", program.display()))?;
        let (out, complaints) = (child.stdout.take(), child.stderr.take());
        Ok(Self {
            process: Pid::from_child(&child),
            lines: out.map_or_else(|| mpsc::channel().1, read_lines),
            complaints: complaints.map_or_else(|| mpsc::channel().1, read_lines),
            ended: None,
        })
    }

    /// Its number, which is that of its group.
    pub(crate) fn group(&self) -> Pid {
        self.process
    }

    /// Its next line on standard output; `None` if it says no more, or nothing for so long.
    pub(crate) fn next_line(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// Somebody else has waited for it.
    pub(crate) fn has_ended(&mut self) -> io::Result<bool> {
        if self.ended.is_none() {
            self.ended = syscall::ended(self.process)?;
        }
        Ok(self.ended.is_some())
    }

    /// Tells it to end.
    pub(crate) fn tell(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill_process(self.process, signal);
        }
    }

    /// Waits until it has ended: how, and what it used with the children that it has reaped.
    ///
    /// # Errors
    /// It does not end in time.
    pub(crate) fn wait(&mut self, patience: Duration) -> Result<(ExitStatus, Usage), String> {
        let start_ns = clock::now_ns();
        while !self.has_ended().map_err(|error| error.to_string())? {
            if clock::now_ns() - start_ns > patience.as_nanos() as u64 {
                return Err(format!("it does not end within {} s", patience.as_secs()));
            }
            clock::pause(LOOK_EVERY);
        }
        self.ended.ok_or_else(|| "it has not ended".to_owned())
    }

    /// The rest of its standard output. To be asked for when it has ended.
    pub(crate) fn rest_of_output(&self) -> String {
        rest(&self.lines)
    }

    /// What it said on standard error. To be asked for when it has ended.
    pub(crate) fn complaints(&self) -> String {
        rest(&self.complaints).trim().replace('\n', "; ")
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.process, Signal::KILL);
            let _ = self.wait(Duration::from_secs(5));
        }
    }
}

/// Lines from a pipe, read by a thread of their own so that nobody waits for room in it.
fn read_lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// What still comes. Not for ever: who inherited the pipe may hold it open.
fn rest(lines: &Receiver<String>) -> String {
    let mut text = String::new();
    while let Ok(line) = lines.recv_timeout(Duration::from_secs(1)) {
        text += &line;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Subject {
        let own = staunch_netio::host::cpu::available_cpus().expect("processors");
        Subject::start(Path::new("sh"), &["-c", script], &own[..1], &own).expect("a shell")
    }

    #[test]
    fn what_it_says_and_how_it_ends() {
        let mut subject = shell("echo ready; echo more; echo complaint >&2; exit 3");
        assert_eq!(subject.next_line(PATIENCE).as_deref(), Some("ready"));
        let (status, usage) = subject.wait(PATIENCE).expect("an end");
        assert_eq!(status.code(), Some(3));
        assert!(usage.minor_faults > 0);
        assert_eq!(
            (subject.rest_of_output().as_str(), subject.complaints().as_str()),
            ("more\n", "complaint")
        );
    }

    #[test]
    fn it_runs_where_it_is_told_and_its_parent_does_not() {
        let own = staunch_netio::host::cpu::available_cpus().expect("processors");
        let mut subject = shell("grep Cpus_allowed_list /proc/self/status");
        let line = subject.next_line(PATIENCE).expect("a line");
        assert_eq!(line, format!("Cpus_allowed_list:\t{}", own[0]));
        assert_eq!(staunch_netio::host::cpu::available_cpus().expect("processors"), own);
        subject.wait(PATIENCE).expect("an end");
    }

    /// What was used is that of the children as well.
    #[test]
    fn the_usage_is_of_the_whole_tree() {
        let mut subject = shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done & wait");
        let (_, usage) = subject.wait(PATIENCE).expect("an end");
        assert!(usage.user_s + usage.system_s > 0.002, "{usage:?}");
    }

    #[test]
    fn what_is_dropped_is_killed_with_its_group() {
        let subject = shell("sleep 1000 & echo ready; wait");
        assert_eq!(subject.next_line(PATIENCE).as_deref(), Some("ready"));
        let group = subject.group();
        drop(subject);
        while crate::usage::members(group).iter().any(|stat| stat.state != 'Z') {
            clock::pause(LOOK_EVERY);
        }
    }

    #[test]
    fn who_does_not_end_is_told_of() {
        let mut subject = shell("trap '' TERM; echo ready; sleep 1000");
        assert_eq!(subject.next_line(PATIENCE).as_deref(), Some("ready"));
        subject.tell(Signal::TERM);
        let told = subject.wait(Duration::from_millis(1)).expect_err("it goes on");
        assert_eq!(told, "it does not end within 0 s");
    }

    #[test]
    fn a_processor_that_is_not_there_is_an_error() {
        let own = staunch_netio::host::cpu::available_cpus().expect("processors");
        let told =
            Subject::start(Path::new("sh"), &["-c", "true"], &[4000], &own).err().expect("no processor");
        assert!(told.contains("[4000]"), "{told}");
    }
}
