//! The servers that are compared: how each is configured, started, checked and ended.
//!
//! It owns the running servers: one ends when its [`Server`] is dropped. It must never measure. Every server
//! gets the configuration its own documentation advises for static files, one worker, and no log of requests.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::{HttpClient, Reply, fetch};
use super::pair::Pair;
use super::setup::{Programs, ServerKind, Setup};
use super::tls::{Dialer, Protocol};
use super::{configuration, machine, process};

/// A running server, pinned to CPU 0.
#[derive(Debug)]
pub(super) struct Server {
    /// Which.
    pub(super) kind: ServerKind,
    /// Where it listens, as a client on this machine connects.
    pub(super) address: SocketAddr,
    /// The moment before it was started.
    pub(super) started: Instant,
    /// The command that started it.
    pub(super) command: String,
    child: Child,
    log: PathBuf,
    first_answer_time: Duration,
    pair: Option<Pair>,
}

impl Server {
    /// Starts a server and returns at once: it may not answer yet. Its configuration and log go to `scratch`.
    ///
    /// # Errors
    /// No free port, a configuration that cannot be written, a program that cannot be started.
    pub(super) fn start(setup: &Setup<'_>, programs: &Programs, scratch: &Path) -> Result<Self, String> {
        let port = machine::free_port()?;
        let folder = scratch.join("run").join(setup.kind.word());
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let words = command_words(setup, programs, &folder, port)?;
        let log = folder.join("output.log");
        let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let started = Instant::now();
        let child = pinned(0)
            .args(&words)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("{}: {error}", words.join(" ")))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Self {
            kind: setup.kind,
            address,
            started,
            command: words.join(" "),
            child,
            log,
            first_answer_time: Duration::ZERO,
            pair: setup.pair.cloned(),
        })
    }

    /// Waits until the server gives the right answer.
    ///
    /// # Errors
    /// When it ends, gives a wrong answer, or is silent for ten seconds.
    pub(super) fn wait_ready(&mut self, path: &str, body: &[u8]) -> Result<(), String> {
        let patience = Duration::from_secs(10);
        loop {
            if self.fetch(path).is_ok() {
                self.first_answer_time = self.started.elapsed();
                return self.check(path, body);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} ended ({status}): {}", self.kind.name(), self.last_words()));
            }
            if self.started.elapsed() > patience {
                return Err(format!("{} does not answer: {}", self.kind.name(), self.last_words()));
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// Checks that the server answers 200 with exactly this body.
    ///
    /// # Errors
    /// Any other answer.
    pub(super) fn check(&self, path: &str, body: &[u8]) -> Result<(), String> {
        let name = self.kind.name();
        let reply = self.fetch(path).map_err(|error| format!("{name}: {error}"))?;
        if reply.status != 200 {
            return Err(format!("{name} answers {path} with status {}", reply.status));
        }
        if reply.body != body {
            return Err(format!("{name} answers {path} with {} wrong bytes", reply.body.len()));
        }
        Ok(())
    }

    fn fetch(&self, path: &str) -> Result<Reply, String> {
        let Some(pair) = &self.pair else { return fetch(self.address, path) };
        let (stream, _) = Dialer::new(&pair.certificate, Protocol::Http1, false)?.dial(self.address)?;
        HttpClient::over(stream).get(path)
    }

    /// Number of the process first started; the worker may be a child of it.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How long after its start the server had answered for the first time; see [`Server::wait_ready`].
    pub(super) fn first_answer_time(&self) -> Duration {
        self.first_answer_time
    }

    /// URL of a path. Over TLS the server is known by name, `localhost`.
    pub(super) fn url(&self, path: &str) -> String {
        match self.pair {
            Some(_) => format!("https://localhost:{}{path}", self.address.port()),
            None => format!("http://{}{path}", self.address),
        }
    }

    /// The last lines the server wrote, in one.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let mut lines: Vec<&str> =
            text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        lines.reverse();
        if lines.is_empty() { "it wrote nothing".to_owned() } else { lines.join(" / ") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}

/// A command, to be completed by the program and its arguments, that runs on a CPU, or on a list of them, and
/// with as many descriptors as the system allows. The shell and taskset become the program: its number is
/// that of the child.
pub(super) fn pinned(cpu: impl std::fmt::Display) -> Command {
    let mut command = Command::new("sh");
    let script = format!(r#"ulimit -Sn "$(ulimit -Hn)"; exec taskset -c {cpu} "$@""#);
    command.args(["-c", &script, "sh"]);
    command
}

fn command_words(
    setup: &Setup<'_>,
    programs: &Programs,
    folder: &Path,
    port: u16,
) -> Result<Vec<String>, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let configured = |name: &str, content: String| -> Result<String, String> {
        let path = folder.join(name);
        fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text(&path))
    };
    let words = match setup.kind {
        ServerKind::Nginx => {
            let path = configured("nginx.conf", configuration::nginx(setup, folder, port))?;
            vec!["nginx".to_owned(), "-c".to_owned(), path, "-e".to_owned(), text(&folder.join("error.log"))]
        }
        ServerKind::Lighttpd => {
            configured("work.lua", configuration::lighttpd_work(setup.work_us))?;
            let path = configured("lighttpd.conf", configuration::lighttpd(setup, folder, port))?;
            vec!["lighttpd".to_owned(), "-D".to_owned(), "-f".to_owned(), path]
        }
        ServerKind::H2o => {
            let path = configured("h2o.conf", configuration::h2o(setup, folder, port))?;
            vec!["h2o".to_owned(), "-c".to_owned(), path]
        }
        ServerKind::Haproxy => {
            let content = configuration::haproxy(setup, folder, port);
            let path = configured("haproxy.cfg", content.ok_or("haproxy is measured over TLS only")?)?;
            vec!["haproxy".to_owned(), "-db".to_owned(), "-f".to_owned(), path]
        }
        ServerKind::Caddy => {
            let path = configured("Caddyfile", configuration::caddy(setup, port))?;
            ["env", "GOMAXPROCS=1", "caddy", "run", "--adapter", "caddyfile", "--config", &path]
                .map(str::to_owned)
                .to_vec()
        }
        ServerKind::Floor => {
            let file = text(&setup.directory.join(setup.file));
            let close = u32::from(setup.close).to_string();
            let (address, responses) = (setup.address.to_string(), setup.pipelined.to_string());
            vec![text(&programs.floor), address, port.to_string(), file, responses, close]
        }
        ServerKind::Uring | ServerKind::Epoll => {
            let mut words = configuration::staunch(setup, &text(&programs.staunch), port);
            if setup.work_us > 0 {
                let path = configured("staunch.toml", configuration::staunch_work(setup.work_us))?;
                words.extend(["--config".to_owned(), path]);
            }
            words
        }
    };
    Ok(words)
}
