//! Servers as readers: nginx and Apache take what is passed on, and hand each request to a recorder behind
//! them.
//!
//! Each runs on ports of its own, from a folder of its own, and ends with its test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use super::{Pairs, hex, missing};

/// How long anything is waited for: a limit for what hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The last request on each connection: whoever counts otherwise before it does not see it as one of its own.
const LAST: &[u8] = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A server, and what it hands on.
pub(crate) struct ReadingServer {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
    handed_on: Receiver<String>,
}

impl ReadingServer {
    /// Requests of each connection as the server understood them, `METHOD:TARGET:HOST:BODY ...`, and `error`
    /// where it stops.
    pub(crate) fn read(&self, pairs: &Pairs) -> Vec<String> {
        pairs.passed.iter().map(|passed| self.understood(&passed.stream)).collect()
    }

    fn understood(&self, stream: &[u8]) -> String {
        let mut connection = TcpStream::connect(self.address).expect("the server listens");
        connection.set_read_timeout(Some(PATIENCE)).expect("a deadline");
        connection.write_all(&[stream, LAST].concat()).expect("it reads");
        // The server closes behind the last request, or behind what it does not know.
        let mut answers = Vec::new();
        let _ = connection.read_to_end(&mut answers);
        let mut requests: Vec<String> = self.handed_on.try_iter().collect();
        match requests.pop_if(|last| last.contains(&hex(b"/last"))) {
            Some(_) => {}
            None => requests.push("error".to_owned()),
        }
        requests.join(" ")
    }
}

impl Drop for ReadingServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// nginx, which hands on what it has understood by HTTP/1.0.
pub(crate) fn nginx() -> Option<ReadingServer> {
    let configuration = |folder: &Path, port: u16, behind: SocketAddr| {
        let folder = folder.display();
        format!(
            "daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n\
             events {{ worker_connections 256; }}\n\
             http {{\n access_log off;\n client_body_temp_path {folder};\n proxy_temp_path {folder};\n\
             fastcgi_temp_path {folder};\n uwsgi_temp_path {folder};\n scgi_temp_path {folder};\n\
             server {{ listen 127.0.0.1:{port};\n location / {{ proxy_pass http://{behind};\n\
             proxy_set_header Host $http_host; proxy_next_upstream off; }} }} }}\n"
        )
    };
    let command = |folder: &Path| {
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).arg("-c").arg(folder.join("configuration")).args(["-e", "stderr"]);
        command
    };
    start("nginx", configuration, command)
}

/// Apache with the modules that a proxy needs.
pub(crate) fn apache() -> Option<ReadingServer> {
    let configuration = |folder: &Path, port: u16, behind: SocketAddr| {
        let folder = folder.display();
        let modules = "/usr/lib/apache2/modules";
        format!(
            "ServerRoot {folder}\nServerName a\nListen 127.0.0.1:{port}\nPidFile {folder}/pid\n\
             ErrorLog {folder}/error.log\n\
             LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
             LoadModule authz_core_module {modules}/mod_authz_core.so\n\
             LoadModule proxy_module {modules}/mod_proxy.so\n\
             LoadModule proxy_http_module {modules}/mod_proxy_http.so\n\
             LoadModule env_module {modules}/mod_env.so\n\
             StartServers 1\nServerLimit 1\nThreadsPerChild 8\nMaxRequestWorkers 8\n\
             MaxKeepAliveRequests 0\nAllowEncodedSlashes NoDecode\nProxyPreserveHost On\n\
             SetEnv proxy-sendcl 1\nSetEnv proxy-nokeepalive 1\nProxyPass / http://{behind}/ nocanon\n"
        )
    };
    let command = |folder: &Path| {
        let mut command = Command::new("apache2");
        command.arg("-X").arg("-f").arg(folder.join("configuration"));
        command
    };
    start("apache2", configuration, command)
}

/// Without the program the test is skipped, and says so.
fn start(
    program: &str,
    configuration: impl Fn(&Path, u16, SocketAddr) -> String,
    command: impl Fn(&Path) -> Command,
) -> Option<ReadingServer> {
    let folder = std::env::temp_dir().join(format!("staunch-pairs-{program}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (behind, handed_on) = record();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    std::fs::write(folder.join("configuration"), configuration(&folder, port, behind)).expect("a file");
    let started = command(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            missing(&format!("{program}: {error}"));
            return None;
        }
    };
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut server = ReadingServer { child, folder, address, handed_on };
    let began = std::time::Instant::now();
    while TcpStream::connect(address).is_err() {
        let ended = server.child.try_wait().expect("our own process");
        let log = std::fs::read_to_string(server.folder.join("error.log")).unwrap_or_default();
        assert!(ended.is_none() && began.elapsed() < PATIENCE, "{program} does not listen: {ended:?} {log}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(server)
}

/// Begins to record requests, and answers each with nothing.
fn record() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            record_one(stream, &sender);
        }
    });
    (address, receiver)
}

/// The one request of a connection, which a server has written with its length.
fn record_one(stream: TcpStream, sender: &Sender<String>) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (Vec::new(), Vec::new());
    while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) && line != b"\r\n" {
        head.push(line.trim_ascii_end().to_vec());
        line.clear();
    }
    let Some((first, fields)) = head.split_first() else { return };
    let value = |name: &str| {
        let of_name = fields.iter().find_map(|field| {
            let (before, after) = field.split_at(field.iter().position(|byte| *byte == b':')?);
            before.eq_ignore_ascii_case(name.as_bytes()).then(|| after[1..].trim_ascii().to_vec())
        });
        of_name.unwrap_or_default()
    };
    let length = String::from_utf8(value("content-length")).expect("digits").parse().unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    let words: Vec<&[u8]> = first.split(|byte| *byte == b' ').collect();
    let host = value("host");
    let host = match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => &host[..],
    };
    let method = String::from_utf8_lossy(words[0]).into_owned();
    let _ = sender.send([method, hex(words[1]), hex(host), hex(&body)].join(":"));
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let _ = reader.get_mut().write_all(answer);
}
