//! The servers that stand behind the gate, each with some 300 us of work of its own for an answer.
//!
//! It owns the running servers: one ends when its [`Subject`] is dropped. It must never tell a server
//! anything about overload: each has the settings it has by itself, but for a long queue, one processor, and
//! no log.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::bed::{Bed, SERVER_ADDRESS};
use crate::setup::{ServerKind, Setup};
use crate::{configuration, content, machine, process};

/// Processor time of an answer of nginx and Staunch, in us. Apache compresses a page in about the same.
const WORK_US: u32 = 300;
/// By which nginx does the work; a package of its own.
const NGINX_LUA: &str = "/usr/lib/nginx/modules/ngx_http_lua_module.so";
/// At which nginx compresses where it does not work in Lua.
const GZIP_LEVEL: u8 = 9;
const FILE: &str = "page.txt";
/// What Apache compresses at its highest level: some 300 us on the machine of the first results.
const FILE_BYTES: usize = 8_000;
/// Until a server answers: on a busy machine the JDK compiles for a while.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// nginx: work in Lua.
    Nginx,
    /// Ours: `response_work`.
    Staunch,
    /// Apache: compression.
    Apache,
    /// node: a millisecond of work in its loop, a queue of 511.
    Node,
    /// `python3 -m http.server` as it is: a queue of 5.
    Python,
    /// The JDK's HttpServer with a pool of four threads: a queue of 50.
    Java,
    /// Apache with a process for each connection.
    Prefork,
    /// gunicorn with four processes, each of which has one connection at a time: a queue of 2048.
    Gunicorn,
    /// Caddy: compression, as Apache.
    Caddy,
    /// nginx: compression, as Apache.
    Gzip,
}

impl Name {
    /// All, in the order of results.
    pub(crate) const ALL: [Self; 3] = [Self::Nginx, Self::Staunch, Self::Apache];

    /// Those, and such as nobody here chose.
    pub(crate) const WITH_STRANGERS: [Self; 9] = [
        Self::Nginx,
        Self::Staunch,
        Self::Apache,
        Self::Prefork,
        Self::Caddy,
        Self::Node,
        Self::Gunicorn,
        Self::Python,
        Self::Java,
    ];

    /// In files and plots.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Staunch => "staunch",
            Self::Apache => "apache",
            Self::Node => "node",
            Self::Python => "python",
            Self::Java => "java",
            Self::Prefork => "apache-prefork",
            Self::Gunicorn => "gunicorn",
            Self::Caddy => "caddy",
            Self::Gzip => "nginx-gzip",
        }
    }

    /// Whether it is on this machine; ours is built.
    pub(crate) fn is_installed(self) -> bool {
        match self {
            Self::Nginx => machine::has("nginx") && Path::new(NGINX_LUA).is_file(),
            Self::Staunch => true,
            Self::Apache | Self::Prefork => machine::has("apache2"),
            Self::Gunicorn => machine::has("gunicorn"),
            Self::Caddy => machine::has("caddy"),
            Self::Gzip => machine::has("nginx"),
            Self::Node => machine::has("node"),
            Self::Python => machine::has("python3"),
            Self::Java => machine::has("java"),
        }
    }

    /// What it says about its version.
    pub(crate) fn version(self, staunch: &Path) -> String {
        match self {
            Self::Nginx | Self::Gzip => machine::version("nginx", "-v"),
            Self::Staunch => machine::version(&staunch.to_string_lossy(), "--version"),
            Self::Apache | Self::Prefork => machine::version("apache2", "-v"),
            Self::Gunicorn => machine::version("gunicorn", "--version"),
            Self::Caddy => machine::version("caddy", "version"),
            Self::Node => machine::version("node", "--version"),
            Self::Python => machine::version("python3", "--version"),
            Self::Java => machine::version("java", "--version"),
        }
    }
}

/// What a server has, and clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// A page that is compressed for each client that asks for it.
    Page,
    /// The five files of WebStone, each asked for as often as there.
    WebStone,
}

impl PageKind {
    /// Words of `staunch load` that ask for it.
    pub(crate) fn asked(self) -> Vec<String> {
        match self {
            Self::Page => vec![url(), "-H".to_owned(), "Accept-Encoding: gzip".to_owned()],
            Self::WebStone => vec![format!("http://{SERVER_ADDRESS}/"), "--webstone".to_owned()],
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Page => "files",
            Self::WebStone => "webstone",
        }
    }

    fn make(self, staunch: &Path, files: &Path) -> Result<(), String> {
        content::small_file(files, FILE, FILE_BYTES)?;
        if self == Self::WebStone {
            let made = Command::new(staunch).args(["load", "webstone-files"]).arg(files).output();
            let made = made.map_err(|error| format!("staunch load: {error}"))?;
            if !made.status.success() {
                return Err(format!("staunch load: {}", String::from_utf8_lossy(&made.stderr).trim()));
            }
        }
        Ok(())
    }
}

/// A running server on processor 0.
#[derive(Debug)]
pub(crate) struct Subject {
    /// The command that started it.
    pub(crate) command: String,
    child: Child,
}

impl Subject {
    /// Starts a server in the bed and waits for its first right answer. What it needs goes to `scratch`.
    ///
    /// # Errors
    /// A program that is not there, ends, or does not answer.
    pub(crate) fn start(
        name: Name,
        content: PageKind,
        bed: &Bed,
        staunch: &Path,
        scratch: &Path,
    ) -> Result<Self, String> {
        let folder = scratch.join("gate").join(name.text());
        let files = folder.join(content.folder());
        content.make(staunch, &files)?;
        let mut words = words(name, staunch, &folder, &files)?;
        if name == Name::Staunch && content == PageKind::WebStone {
            // WebStone's clients ask for no encodings, and preparing them takes the processor for a while.
            words.extend(["--encodings", "off"].map(str::to_owned));
        }
        let log = folder.join("output.log");
        let output = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let mut command = bed.at_server();
        command.args(&words).stdin(Stdio::null()).stdout(output).stderr(errors);
        // Apache's prefork module ends its whole group of processes when it is told to end.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let command_words = words.join(" ");
        let child = command.spawn().map_err(|error| format!("{command_words}: {error}"))?;
        let mut subject = Self { command: command_words, child };
        subject.wait_ready(bed).map_err(|error| format!("{}: {error}{}", name.text(), said(&log)))?;
        Ok(subject)
    }

    /// Number of its first process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Makes it do nothing more, its socket open, until it is dropped.
    pub(crate) fn stop(&self) {
        process::signal("-STOP", &process::descendants(self.child.id()));
    }

    fn wait_ready(&mut self, bed: &Bed) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if answers(bed)? {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended ({status})"));
            }
            sleep(Duration::from_millis(20));
        }
        Err("does not answer".to_owned())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        process::end(&process::descendants(self.child.id()));
        process::collect(&mut self.child);
    }
}

/// What is asked for.
pub(crate) fn url() -> String {
    format!("http://{SERVER_ADDRESS}/{FILE}")
}

/// Whether a client of the bed is answered with the whole page.
///
/// # Errors
/// `curl` cannot be started.
pub(crate) fn answers(bed: &Bed) -> Result<bool, String> {
    let words = ["curl", "-s", "--max-time", "2", "-o", "/dev/null", "-w", "%{http_code} %{size_download}"];
    let said =
        bed.at_client("1").args(words).arg(url()).output().map_err(|error| format!("curl: {error}"))?;
    Ok(said.stdout == format!("200 {FILE_BYTES}").into_bytes())
}

fn words(name: Name, staunch: &Path, folder: &Path, files: &Path) -> Result<Vec<String>, String> {
    let configured = |file: &str, text: String| -> Result<String, String> {
        let path = folder.join(file);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path.to_string_lossy().into_owned())
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let address = SERVER_ADDRESS.parse().map_err(|error| format!("{SERVER_ADDRESS}: {error}"))?;
    Ok(match name {
        Name::Nginx | Name::Gzip => {
            let (work_us, gzip_level) = if name == Name::Gzip { (0, GZIP_LEVEL) } else { (WORK_US, 0) };
            let setup = Setup {
                address,
                work_us,
                gzip_level,
                connections_max: 16_000,
                ..Setup::new(ServerKind::Nginx, files, FILE)
            };
            let path = configured("nginx.conf", configuration::nginx(&setup, folder, 80))?;
            vec!["nginx".to_owned(), "-c".to_owned(), path, "-e".to_owned(), text(&folder.join("error.log"))]
        }
        Name::Staunch => {
            let path = configured("staunch.toml", configuration::staunch_work(WORK_US))?;
            let listen = format!("{SERVER_ADDRESS}:80");
            let (program, files) = (text(staunch), text(files));
            let work = ["--workers", "1", "--cpus", "0", "--config", &path];
            let words = [&[&program, "serve", &files, "--listen", &listen][..], &work].concat();
            words.into_iter().map(str::to_owned).collect()
        }
        Name::Apache | Name::Prefork => {
            let module = if name == Name::Apache { "mpm_event" } else { "mpm_prefork" };
            let path = configured("apache.conf", apache(module, folder, files))?;
            ["apache2", "-D", "FOREGROUND", "-f", &path].map(str::to_owned).to_vec()
        }
        Name::Gunicorn => {
            configured("app.py", GUNICORN.to_owned())?;
            let bound = format!("{SERVER_ADDRESS}:80");
            let words = ["gunicorn", "--workers", "4", "--bind", &bound, "--chdir", &text(folder), "app:app"];
            words.map(str::to_owned).to_vec()
        }
        Name::Caddy => {
            let path = configured("Caddyfile", caddy(files))?;
            let own = ["DATA", "CONFIG"].map(|kind| format!("XDG_{kind}_HOME={}", text(folder)));
            let env = ["env", &own[0], &own[1], "GOMAXPROCS=1"];
            let words = [&env[..], &["caddy", "run", "--adapter", "caddyfile", "--config", &path]].concat();
            words.into_iter().map(str::to_owned).collect()
        }
        Name::Node => vec!["node".to_owned(), configured("server.js", NODE.to_owned())?],
        Name::Python => {
            let words = ["python3", "-m", "http.server", "80", "--bind", SERVER_ADDRESS, "--directory"];
            words.into_iter().map(str::to_owned).chain([text(files)]).collect()
        }
        Name::Java => vec!["java".to_owned(), configured("Server.java", JAVA.to_owned())?],
    })
}

/// node: as many bytes as the page has, after a millisecond in which nothing else happens.
const NODE: &str = r#"const page = "x".repeat(8000);
require("http").createServer((request, response) => {
    const end = performance.now() + 1;
    while (performance.now() < end);
    response.end(page);
}).listen(80, "10.0.0.1");
"#;

/// The JDK's server, its queue as it is by default.
const JAVA: &str = r#"import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Server {
    public static void main(String[] words) throws Exception {
        byte[] page = "x".repeat(8000).getBytes();
        HttpServer server = HttpServer.create(new InetSocketAddress("10.0.0.1", 80), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            long end = System.nanoTime() + 300_000;
            while (System.nanoTime() < end) { }
            exchange.sendResponseHeaders(200, page.length);
            exchange.getResponseBody().write(page);
            exchange.close();
        });
        server.start();
    }
}
"#;

/// gunicorn: as many bytes as the page has, after some processor time.
const GUNICORN: &str = r#"import time

page = b"x" * 8000


def app(environ, start_response):
    end = time.thread_time() + 300e-6
    while time.thread_time() < end:
        pass
    start_response("200 OK", [("Content-Length", str(len(page)))])
    return [page]
"#;

/// Caddy: compressing at the highest level for whom asks for it.
fn caddy(files: &Path) -> String {
    let files = files.display();
    format!(
        r#"{{
    admin off
    auto_https off
    log default {{
        level ERROR
    }}
}}
http://:80 {{
    bind {SERVER_ADDRESS}
    root * "{files}"
    encode {{
        gzip 9
    }}
    file_server
}}
"#
    )
}

/// Apache: this module with its defaults, compressing at the highest level for whom asks for it.
fn apache(module: &str, folder: &Path, files: &Path) -> String {
    let (folder, files) = (folder.display(), files.display());
    let modules = [module, "authz_core", "filter", "deflate"]
        .map(|module| format!("LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n"))
        .concat();
    format!(
        r#"{modules}ServerRoot "{folder}"
ServerName {SERVER_ADDRESS}
Listen {SERVER_ADDRESS}:80
ListenBacklog 4096
PidFile "{folder}/apache.pid"
ErrorLog "{folder}/error.log"
User www-data
Group www-data
DocumentRoot "{files}"
SetOutputFilter DEFLATE
DeflateCompressionLevel 9
"#
    )
}

fn said(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().find(|line| !line.trim().is_empty()).map_or(String::new(), |line| format!(": {line}"))
}
