//! A terminal of 80 columns and 24 lines, which tmux plays.
//!
//! It owns a tmux server of its own, and ends it. It must never speak to the tmux server of a user.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a screen is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal with a command in it. The screen stays when the command has ended.
#[derive(Debug)]
pub struct Terminal {
    /// Socket of the tmux server.
    socket: String,
}

impl Terminal {
    /// Starts it. The tmux server's socket stands in `folder`.
    ///
    /// # Panics
    /// When tmux does not start.
    pub fn start(folder: &Path, command: &str) -> Self {
        let socket = folder.join("tmux").to_str().expect("a path of text").to_owned();
        let terminal = Self { socket };
        let line = format!("{command}; echo exit code $?; exec cat");
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", &line]);
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-u", "-S", &self.socket]).args(words).env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        let output = command.output().expect("tmux starts");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("a screen of UTF-8")
    }

    /// Presses a key, by tmux's name for it.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Waits for a screen that holds all of these.
    ///
    /// # Panics
    /// When it does not come within 20 s.
    pub fn await_screen(&self, wanted: &[&str]) -> String {
        self.await_that(&wanted.join(", "), |screen| wanted.iter().all(|words| screen.contains(words)))
    }

    /// The screen once something is true of it.
    pub fn await_that(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if is_so(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "never on the screen: {what}\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The server of tmux is gone already when a test failed early.
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}
