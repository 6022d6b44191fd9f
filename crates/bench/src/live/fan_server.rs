//! The servers that fan out: how each is started and asked, which differs from server to server.
//!
//! This file owns the running servers: a server ends when its [`FanOut`] is dropped. It must never measure.
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::report::ScenarioOutcome;
use crate::setting::Setting;
use crate::setup::ServerKind;
use crate::{machine, process, servers};

/// The token by which the generator may publish (`publish_token`).
pub(super) const TOKEN: &str = "a-token-of-the-benchmark-alone-0123456789";
/// The topic of readers that share one.
pub(super) const TOPIC: &str = "load";
/// The module of nginx that fans out.
const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";
/// nginx's own connections, and the limit of its descriptors.
const NCHAN_CONNECTIONS_MAX: u32 = 16_000;
/// Descriptors that are no reader's.
const OTHER_DESCRIPTORS: u32 = 1024;
/// As many as one process of ours has places for.
const PLACES_MAX: u32 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Name in tables.
pub(super) fn name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Floor => "floor (fan.c)",
        ServerKind::Nginx => "nchan",
        other => other.name(),
    }
}

/// Those of the chosen servers among `kinds` that can be measured here; the outcome says which cannot.
pub(super) fn available(
    kinds: &[ServerKind],
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Vec<ServerKind> {
    let mut kinds = setting.chosen(kinds);
    kinds.retain(|kind| match lacking(*kind, setting) {
        None => true,
        Some(reason) => {
            outcome.notes.push(format!("{} was not run: {reason}", name(*kind)));
            false
        }
    });
    kinds
}

/// Why a server cannot be measured here.
fn lacking(kind: ServerKind, setting: &Setting) -> Option<String> {
    match kind {
        ServerKind::Nginx if !Path::new(NCHAN).exists() => {
            Some("libnginx-mod-nchan is not installed (cargo xtask install)".to_owned())
        }
        ServerKind::Uring | ServerKind::Epoll => {
            let help = Command::new(&setting.programs.staunch).args(["serve", "--help"]).output();
            let has_live = help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--live "));
            (!has_live).then(|| "this program has no `--live`".to_owned())
        }
        _ => None,
    }
}

/// How many readers a server can hold: io_uring's direct descriptors are no entries of the process's own
/// table, so only there does its limit not matter.
pub(super) fn readers_max(kind: ServerKind) -> u32 {
    let descriptors = u32::try_from(machine::descriptors_max()).unwrap_or(u32::MAX);
    match kind {
        ServerKind::Uring => u32::MAX,
        ServerKind::Nginx => NCHAN_CONNECTIONS_MAX - OTHER_DESCRIPTORS,
        _ => descriptors.saturating_sub(OTHER_DESCRIPTORS),
    }
}

/// The folder of files that ours serves.
pub(super) fn site(setting: &Setting) -> PathBuf {
    setting.scratch.join("run/live/site")
}

/// A running server, on CPU 0.
#[derive(Debug)]
pub(super) struct FanOut {
    pub(super) kind: ServerKind,
    /// The command that started it.
    pub(super) command: String,
    port: u16,
    child: Child,
}

impl FanOut {
    /// Starts a server and waits until it listens. The arguments are for ours alone.
    ///
    /// # Errors
    /// The server cannot be started, or does not listen in time.
    pub(super) fn start(kind: ServerKind, setting: &Setting, arguments: &[&str]) -> Result<Self, String> {
        let port = machine::free_port()?;
        let folder = setting.scratch.join("run/live");
        let site = site(setting);
        fs::create_dir_all(&site).map_err(|error| format!("{}: {error}", site.display()))?;
        let mut words = words(kind, setting, &folder, port)?;
        if kind.is_ours() {
            // A flag may not stand twice: the one of this scenario replaces the usual one.
            if arguments.contains(&"--encodings")
                && let Some(place) = words.iter().position(|word| word == "--encodings")
            {
                words.drain(place..place + 2);
            }
            words.extend(arguments.iter().map(|word| (*word).to_owned()));
        }
        let log = folder.join(format!("{}.log", kind.word()));
        let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let mut command = servers::pinned(0);
        command.args(&words).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().map_err(|error| format!("{}: {error}", words.join(" ")))?;
        let mut server = Self { kind, command: words.join(" "), port, child };
        let began = Instant::now();
        while TcpStream::connect(server.address()).is_err() {
            let ended = server.child.try_wait().is_ok_and(|status| status.is_some());
            if ended || began.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("{} does not listen: {}", name(kind), said.trim()));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Starts a server that has room for so many readers. The arguments are for ours alone.
    ///
    /// # Errors
    /// As [`FanOut::start`].
    pub(super) fn of_readers(
        kind: ServerKind,
        readers: u32,
        arguments: &[&str],
        setting: &Setting,
    ) -> Result<Self, String> {
        // Idle connections are closed for others when a share of the places is taken: none is to be. More
        // than there are descriptors for is refused.
        let room = readers_max(kind).saturating_add(OTHER_DESCRIPTORS / 4).min(PLACES_MAX);
        let places = (readers + readers / 10 + OTHER_DESCRIPTORS).min(room).to_string();
        let limits = ["--max-connections", "--soft-connections", "--live-connections"];
        let limits = limits.iter().flat_map(|limit| [*limit, &*places]);
        let arguments: Vec<&str> = limits.chain(arguments.iter().copied()).collect();
        Self::start(kind, setting, &arguments)
    }

    /// Number of the process first started: it is that of ours and of the floor.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Number of the process that serves.
    pub(super) fn serving_id(&self) -> u32 {
        serving(self.kind, self.id(), &process::descendants(self.id()))
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// Where readers subscribe to the topic that the generator names.
    pub(super) fn events(&self) -> String {
        self.url(match self.kind {
            ServerKind::Nginx => "/sub?id={{topic}}",
            _ => "/events?topic={{topic}}&from=now",
        })
    }

    /// How the generator publishes there.
    pub(super) fn publishing(&self) -> Vec<String> {
        match self.kind {
            ServerKind::Nginx => {
                let url = self.url("/pub?id={{topic}}");
                ["--publish-as", "post", "--publish-to", &url].map(str::to_owned).to_vec()
            }
            ServerKind::Floor => ["--publish-as", "post"].map(str::to_owned).to_vec(),
            _ => ["--token", TOKEN].map(str::to_owned).to_vec(),
        }
    }
}

impl Drop for FanOut {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = self.child.wait();
    }
}

/// The process that serves, of those that a server consists of, the first one foremost: nginx's worker is the
/// last. Ours serves itself, and has a child that only starts the next server in an upgrade.
fn serving(kind: ServerKind, first: u32, all: &[u32]) -> u32 {
    match kind {
        ServerKind::Nginx => all.last().copied().unwrap_or(first),
        _ => first,
    }
}

fn words(kind: ServerKind, setting: &Setting, folder: &Path, port: u16) -> Result<Vec<String>, String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match kind {
        ServerKind::Floor => vec![text(&setting.programs.fan), "127.0.0.1".to_owned(), port.to_string()],
        ServerKind::Nginx => {
            let path = folder.join("nginx.conf");
            fs::write(&path, nchan(folder, port)).map_err(|error| format!("{}: {error}", path.display()))?;
            let log = text(&folder.join("error.log"));
            vec!["nginx".to_owned(), "-c".to_owned(), text(&path), "-e".to_owned(), log]
        }
        _ => {
            let (program, site) = (text(&setting.programs.staunch), text(&site(setting)));
            let listen = format!("127.0.0.1:{port}");
            let work = [&*program, "serve", &site, "--listen", &listen, "--workers", "1", "--cpus", "0"];
            let engine = ["--io", kind.word(), "--encodings", "off", "--listing", "off"];
            let live = ["--live", "on", "--publish-token", TOKEN];
            [&work[..], &engine, &live].concat().into_iter().map(str::to_owned).collect()
        }
    })
}

/// nchan: one worker, messages kept as its own defaults have it.
fn nchan(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    let descriptors = NCHAN_CONNECTIONS_MAX + 384;
    format!(
        r#"load_module "{NCHAN}";
daemon off;
user root;
pid "{folder}/nginx.pid";
error_log "{folder}/error.log" warn;
worker_processes 1;
worker_rlimit_nofile {descriptors};
events {{
    use epoll;
    worker_connections {NCHAN_CONNECTIONS_MAX};
}}
http {{
    access_log off;
    nchan_shared_memory_size 256m;
    client_body_temp_path "{folder}/body";
    proxy_temp_path "{folder}/proxy";
    fastcgi_temp_path "{folder}/fastcgi";
    uwsgi_temp_path "{folder}/uwsgi";
    scgi_temp_path "{folder}/scgi";
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location /sub {{
            nchan_subscriber eventsource;
            nchan_channel_id $arg_id;
            nchan_subscriber_first_message newest;
        }}
        location /pub {{
            nchan_publisher;
            nchan_channel_id $arg_id;
        }}
    }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_asked_of_the_process_that_serves() {
        let cases = [(ServerKind::Uring, 7), (ServerKind::Epoll, 7), (ServerKind::Floor, 7)];
        for (kind, expected) in cases {
            assert_eq!(serving(kind, 7, &[7, 8]), expected, "{}", name(kind));
        }
        assert_eq!(serving(ServerKind::Nginx, 7, &[7, 8]), 8);
        assert_eq!(serving(ServerKind::Nginx, 7, &[7]), 7);
    }
}
