//! The scenario `proxy-overload`: applications of known capacity behind proxies, offered ten times of it.
//!
//! The scenario owns the peers' configurations, each as its package installs it, and the bars on goodput and
//! on work that was done for nobody. The applications sleep, so that neither they nor the machine's speed
//! decide what can be served; they count their own answers. Every proxy has one configuration for all.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::running;
use super::tool::Tool;
use super::truth::TruthServer;
use crate::account::{self, Account as _};
use crate::client::fetch;
use crate::report::{Direction, ScenarioOutcome};
use crate::servers::pinned;
use crate::setting::Setting;
use crate::setup::Programs;
use crate::{machine, process};

/// An application: so many at once, each for so long.
struct Application {
    name: &'static str,
    workers: u32,
    service_time: &'static str,
    peak_per_s: u32,
}

const APPLICATIONS: [Application; 2] = [
    Application { name: "1 x 10 ms", workers: 1, service_time: "10ms", peak_per_s: 100 },
    Application { name: "8 x 200 ms", workers: 8, service_time: "200ms", peak_per_s: 40 },
];
const OVERLOAD: u32 = 10;
/// Seconds before those that count, in which a proxy may learn.
const LEARNING_S: u32 = 10;

/// The proxy that stands before the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proxy {
    Nothing,
    Nginx,
    Haproxy,
    Caddy,
    Uring,
    Epoll,
}

const PROXIES: [Proxy; 6] =
    [Proxy::Nothing, Proxy::Nginx, Proxy::Haproxy, Proxy::Caddy, Proxy::Uring, Proxy::Epoll];

const GOODPUT: &str = "answered in time, of the peak";
const WASTED: &str = "answers of the application for nobody";

/// Runs the scenario.
pub(crate) fn run(setting: &Setting) -> ScenarioOutcome {
    let mut outcome = ScenarioOutcome::new(
        "proxy-overload",
        "applications behind proxies at ten times their peak, a connection for each request, 1 s of patience",
    );
    setting.expect_steps(PROXIES.len() * APPLICATIONS.len() * setting.rounds as usize);
    for _ in 0..setting.rounds {
        for application in &APPLICATIONS {
            for proxy in PROXIES {
                setting.step(&format!("{}, {}", proxy.name(), application.name));
                if let Err(error) = measure(proxy, application, setting, &mut outcome) {
                    outcome.errors.push(format!("{}, {}: {error}", proxy.name(), application.name));
                }
            }
        }
    }
    for (proxy, application) in
        [Proxy::Uring, Proxy::Epoll].iter().flat_map(|proxy| APPLICATIONS.iter().map(move |one| (proxy, one)))
    {
        let row = row(*proxy, application);
        outcome.judge(&row, GOODPUT, Direction::AtLeast, 0.97, "");
        outcome.judge(&row, WASTED, Direction::AtMost, 0.01, "");
    }
    outcome
}

fn row(proxy: Proxy, application: &Application) -> String {
    format!("{}, {}", proxy.name(), application.name)
}

fn measure(
    proxy: Proxy,
    application: &Application,
    setting: &Setting,
    outcome: &mut ScenarioOutcome,
) -> Result<(), String> {
    let Application { workers, service_time, peak_per_s, .. } = application;
    let server = TruthServer::start_sleeping(&setting.programs, service_time, *workers)?;
    let behind: SocketAddr = server.url["http://".len()..].parse().map_err(|_| "no address")?;
    let front = Front::start(proxy, behind, &setting.programs, &setting.scratch)?;
    let seconds = LEARNING_S + setting.seconds.max(10);
    let url = format!("http://{}/ok", front.address);
    let words = Tool::Uring.strangers(&setting.programs, peak_per_s * OVERLOAD, seconds, &url);
    let watched = running::run(&words, Duration::from_secs(seconds.into()), &setting.scratch)?;
    let report = account::read(&watched.output)?;
    let row = row(proxy, application);
    outcome.note(format!("{row}: {}", front.command));
    watched.disturbance(&row).into_iter().for_each(|note| outcome.note(note));
    drop(front);
    let answers: u64 = server.finish()?.answers.values().sum();
    let good = report.in_time_between(f64::from(LEARNING_S), f64::from(seconds));
    outcome.add(&row, GOODPUT, "", good / f64::from(*peak_per_s));
    let in_time: u64 = report.in_time_steps().iter().sum();
    outcome.add(&row, WASTED, "", 1.0 - in_time as f64 / answers.max(1) as f64);
    Ok(())
}

impl Proxy {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no proxy",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddy",
            Self::Uring => "staunch uring",
            Self::Epoll => "staunch epoll",
        }
    }

    /// The command, whose files go to `folder`.
    fn words(
        self,
        behind: SocketAddr,
        port: u16,
        programs: &Programs,
        folder: &Path,
    ) -> Result<Vec<String>, String> {
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<String, String>(path.to_string_lossy().into_owned())
        };
        let ours = |io: &str| {
            let (program, behind) = (programs.staunch.to_string_lossy().into_owned(), behind.to_string());
            let listen = format!("127.0.0.1:{port}");
            [&program, "proxy", &behind, "--listen", &listen, "--workers", "1", "--io", io]
                .map(str::to_owned)
                .to_vec()
        };
        Ok(match self {
            Self::Nothing => Vec::new(),
            Self::Nginx => {
                let file = write("nginx.conf", nginx(behind, port, folder))?;
                ["nginx", "-c", &file, "-e", &folder.join("error.log").to_string_lossy()]
                    .map(str::to_owned)
                    .to_vec()
            }
            Self::Haproxy => {
                let file = write("haproxy.cfg", haproxy(behind, port))?;
                ["haproxy", "-db", "-f", &file].map(str::to_owned).to_vec()
            }
            Self::Caddy => {
                let file = write("Caddyfile", caddy(behind, port))?;
                ["caddy", "run", "--adapter", "caddyfile", "--config", &file].map(str::to_owned).to_vec()
            }
            Self::Uring => ours("uring"),
            Self::Epoll => ours("epoll"),
        })
    }
}

/// nginx with what its documentation says of `proxy_pass`, and as many connections as come.
fn nginx(behind: SocketAddr, port: u16, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"daemon off;
user root;
pid "{folder}/nginx.pid";
worker_processes 1;
worker_rlimit_nofile 20000;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    client_body_temp_path "{folder}/body";
    proxy_temp_path "{folder}/proxy";
    fastcgi_temp_path "{folder}/fastcgi";
    uwsgi_temp_path "{folder}/uwsgi";
    scgi_temp_path "{folder}/scgi";
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ proxy_pass http://{behind}; }}
    }}
}}
"#
    )
}

/// HAProxy with the timeouts that its documentation begins with.
fn haproxy(behind: SocketAddr, port: u16) -> String {
    let times = "timeout client 30s\n    timeout connect 5s\n    timeout server 30s";
    format!(
        "global\n    nbthread 1\ndefaults\n    mode http\n    {times}\n\
         frontend all\n    bind 127.0.0.1:{port} backlog 4096\n    default_backend one\n\
         backend one\n    server one {behind}\n"
    )
}

fn caddy(behind: SocketAddr, port: u16) -> String {
    format!("{{\n    admin off\n}}\nhttp://127.0.0.1:{port} {{\n    reverse_proxy {behind}\n}}\n")
}

/// A running proxy; of none, the application itself.
struct Front {
    child: Option<Child>,
    address: SocketAddr,
    command: String,
}

impl Front {
    fn start(proxy: Proxy, behind: SocketAddr, programs: &Programs, scratch: &Path) -> Result<Self, String> {
        if proxy == Proxy::Nothing {
            return Ok(Self { child: None, address: behind, command: "the application alone".into() });
        }
        let folder = scratch.join("proxied");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let port = machine::free_port()?;
        let words = proxy.words(behind, port, programs, &folder)?;
        let mut command = pinned(0);
        command.args(&words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{}: {error}", words.join(" ")))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let front = Self { child: Some(child), address, command: words.join(" ") };
        front.await_answer()?;
        Ok(front)
    }

    fn await_answer(&self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            match fetch(self.address, "/ok") {
                Ok(reply) if reply.status == 200 => return Ok(()),
                _ if began.elapsed() > Duration::from_secs(10) => {
                    return Err(format!("does not answer: {}", self.command));
                }
                _ => sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        process::end(&process::descendants(child.id()));
        // Collects the ended child; there is nothing to do about a failure.
        let _ = child.wait();
    }
}
