//! The proxies that are compared before an application: their configurations, and one that runs.
//!
//! This module owns running proxies: dropping a [`Front`] ends its process. It must never measure. Each proxy
//! has one worker and the settings that its documentation begins with; a scenario adds to them by a
//! [`FrontPlan`].

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::fetch;
use crate::servers::pinned;
use crate::setting::Setting;
use crate::setup::Programs;
use crate::{machine, process};

/// The proxy that stands before the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// The application itself.
    Nothing,
    /// nginx with `proxy_pass`.
    Nginx,
    /// HAProxy with one thread.
    Haproxy,
    /// Caddy with `reverse_proxy`.
    Caddy,
    /// Ours on io_uring.
    Uring,
    /// Ours on epoll.
    Epoll,
}

/// Further settings of the proxies, each in its own words.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrontPlan {
    /// Whether nginx keeps connections to the application, as the others do unasked.
    pub(super) kept: bool,
    /// Lines of nginx' location.
    pub(super) nginx: &'static str,
    /// Lines of HAProxy's defaults.
    pub(super) haproxy: &'static [&'static str],
    /// Further arguments of ours.
    pub(super) staunch: &'static [&'static str],
    /// Path that is answered 200 once the proxy is ready.
    pub(super) ready: &'static str,
}

impl FrontPlan {
    /// Proxies as their packages install them.
    pub(super) const PLAIN: Self = Self { kept: false, nginx: "", haproxy: &[], staunch: &[], ready: "/ok" };
}

/// A running proxy; of none, the application itself.
#[derive(Debug)]
pub(super) struct Front {
    /// Which.
    pub(super) proxy: Proxy,
    /// Where clients connect.
    pub(super) address: SocketAddr,
    /// The command that started it.
    pub(super) command: String,
    child: Option<Child>,
    log: PathBuf,
}

impl Front {
    /// Starts a proxy on CPU 0 and waits for its first answer.
    ///
    /// # Errors
    /// A program that is not installed, ends, or does not answer within ten seconds; says its last words.
    pub(super) fn start(
        proxy: Proxy,
        behind: SocketAddr,
        plan: &FrontPlan,
        setting: &Setting,
    ) -> Result<Self, String> {
        let folder = setting.scratch.join("proxied").join(proxy.name().replace(' ', "-"));
        let log = folder.join("output.log");
        if proxy == Proxy::Nothing {
            let command = "the application alone".to_owned();
            return Ok(Self { proxy, address: behind, command, child: None, log });
        }
        if let Some(program) = proxy.program().filter(|_| !proxy.is_installed()) {
            return Err(format!("{program} is not installed (`cargo xtask install --for bench`)"));
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let port = machine::free_port()?;
        let words = proxy.words(behind, port, plan, &setting.programs, &folder)?;
        let text = |error: std::io::Error| format!("{}: {error}", log.display());
        let output = File::create(&log).map_err(text)?;
        let errors = output.try_clone().map_err(text)?;
        let mut command = pinned(0);
        command.args(&words).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = command.spawn().map_err(|error| format!("{}: {error}", words.join(" ")))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut front = Self { proxy, address, command: words.join(" "), child: Some(child), log };
        front.await_answer(plan.ready)?;
        Ok(front)
    }

    /// Number of its process; of none, 0.
    pub(super) fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// The command and the version of what it starts.
    pub(super) fn describe(&self, programs: &Programs) -> String {
        let version = self.proxy.version(programs);
        format!("{}: {} ({version})", self.proxy.name(), self.command)
    }

    fn await_answer(&mut self, path: &str) -> Result<(), String> {
        let began = Instant::now();
        loop {
            match fetch(self.address, path) {
                Ok(reply) if reply.status == 200 => return Ok(()),
                _ if began.elapsed() > Duration::from_secs(10) => {
                    return Err(format!("does not answer: {}: {}", self.command, self.last_words()));
                }
                _ => sleep(Duration::from_millis(10)),
            }
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                return Err(format!("ended ({status}): {}: {}", self.command, self.last_words()));
            }
        }
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.unwrap_or("it wrote nothing").trim().to_owned()
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

impl Proxy {
    /// Proxies whose cost is compared.
    pub(super) const COMPARED: [Self; 4] = [Self::Nginx, Self::Haproxy, Self::Uring, Self::Epoll];
    /// Other servers' proxies.
    pub(super) const PEERS: [Self; 2] = [Self::Nginx, Self::Haproxy];
    /// Our own.
    pub(super) const OURS: [Self; 2] = [Self::Uring, Self::Epoll];

    /// Whether it can be started here.
    pub(crate) fn is_installed(self) -> bool {
        self.program().is_none_or(machine::has)
    }

    /// Name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no proxy",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddy",
            Self::Uring => "staunch uring",
            Self::Epoll => "staunch epoll",
        }
    }

    /// The program that has to be installed.
    fn program(self) -> Option<&'static str> {
        match self {
            Self::Nginx | Self::Haproxy | Self::Caddy => Some(self.name()),
            Self::Nothing | Self::Uring | Self::Epoll => None,
        }
    }

    fn version(self, programs: &Programs) -> String {
        match self {
            Self::Nothing => "no version".to_owned(),
            Self::Nginx => machine::version("nginx", "-v"),
            Self::Haproxy => machine::version("haproxy", "-v"),
            Self::Caddy => machine::version("caddy", "version"),
            Self::Uring | Self::Epoll => machine::version(&programs.staunch.to_string_lossy(), "--version"),
        }
    }

    /// The command, whose files go to `folder`.
    fn words(
        self,
        behind: SocketAddr,
        port: u16,
        plan: &FrontPlan,
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
            let words = [&program, "proxy", &behind, "--listen", &listen, "--workers", "1", "--io", io];
            words.iter().chain(plan.staunch).map(|word| (*word).to_owned()).collect()
        };
        Ok(match self {
            Self::Nothing => Vec::new(),
            Self::Nginx => {
                let file = write("nginx.conf", nginx(behind, port, plan, folder))?;
                ["nginx", "-c", &file, "-e", &folder.join("error.log").to_string_lossy()]
                    .map(str::to_owned)
                    .to_vec()
            }
            Self::Haproxy => {
                let file = write("haproxy.cfg", haproxy(behind, port, plan))?;
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
fn nginx(behind: SocketAddr, port: u16, plan: &FrontPlan, folder: &Path) -> String {
    let folder = folder.display();
    let kept = if plan.kept { "proxy_http_version 1.1; proxy_set_header Connection \"\";" } else { "" };
    let keepalive = if plan.kept { "keepalive 128; keepalive_requests 1000000000;" } else { "" };
    let requests = if plan.kept { "keepalive_requests 1000000000;" } else { "" };
    let further = plan.nginx;
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
    {requests}
    upstream application {{ server {behind}; {keepalive} }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ proxy_pass http://application; {kept} {further} }}
    }}
}}
"#
    )
}

/// HAProxy with the timeouts that its documentation begins with.
fn haproxy(behind: SocketAddr, port: u16, plan: &FrontPlan) -> String {
    let times = "timeout client 30s\n    timeout connect 5s\n    timeout server 30s";
    let further: String = plan.haproxy.iter().map(|line| format!("    {line}\n")).collect();
    format!(
        "global\n    nbthread 1\ndefaults\n    mode http\n    {times}\n{further}\
         frontend all\n    bind 127.0.0.1:{port} backlog 4096\n    default_backend one\n\
         backend one\n    server one {behind}\n"
    )
}

fn caddy(behind: SocketAddr, port: u16) -> String {
    format!("{{\n    admin off\n}}\nhttp://127.0.0.1:{port} {{\n    reverse_proxy {behind}\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_written_into_each_configuration() {
        let behind = SocketAddr::from(([127, 0, 0, 1], 7));
        let plan = FrontPlan {
            kept: true,
            nginx: "proxy_read_timeout 1h;",
            haproxy: &["option splice-auto"],
            ..FrontPlan::PLAIN
        };
        let text = nginx(behind, 8, &plan, Path::new("/x"));
        assert!(text.contains("server 127.0.0.1:7; keepalive 128;"), "{text}");
        assert!(text.contains("Connection \"\"; proxy_read_timeout 1h; }"), "{text}");
        assert!(
            haproxy(behind, 8, &plan).contains("    timeout server 30s\n    option splice-auto\nfrontend")
        );
        assert!(!nginx(behind, 8, &FrontPlan::PLAIN, Path::new("/x")).contains("keepalive 128"));
    }
}
