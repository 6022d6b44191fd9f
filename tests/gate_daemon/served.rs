//! Servers behind the gate, unchanged: this one and nginx.
use std::io::Write as _;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use staunch_tests::house::waiting::until;
use staunch_tests::process::{self, Server};
use staunch_tests::tree::Tree;

use crate::crowd::get;
use crate::world::{Gate, INTERFACE, World};

/// `staunch serve` at port 8080 of every address.
pub(crate) struct Site {
    pub(crate) port: u16,
    _server: Server,
    _tree: Tree,
}

impl Site {
    pub(crate) fn new(world: &World) -> Self {
        Self::with(world, &[])
    }

    /// With these words more.
    pub(crate) fn with(world: &World, words: &[&str]) -> Self {
        let tree = Tree::with(&[]).expect("a tree");
        let mut command = world.command(process::binary());
        command.args(["serve", "--listen", "0.0.0.0:8080", "--workers", "1"]).args(words).arg(tree.root());
        Self { port: 8080, _server: Server::spawn(&mut command).expect("a server"), _tree: tree }
    }
}

#[test]
fn a_server_can_have_its_own_gate() {
    let Some(world) = World::new() else { return };
    let tree = Tree::with(&[]).expect("a tree");
    let mut command = world.command(process::binary());
    command.args(["serve", "--listen", "0.0.0.0:8080", "--workers", "1", "--gate", INTERFACE]);
    command.args(["--admin", "127.0.0.1:9090", "--user", "nobody"]).arg(tree.root());
    let mut server = Server::spawn(&mut command).expect("a server");
    until("its word of the gate", || {
        server.said().iter().any(|line| line.contains("gate         vs (native)"))
    });
    for _ in 0..5 {
        assert_eq!(get(&world, 8080), "HTTP/1.1 200 OK");
    }
    // Seen by the loop, which reads maps although the process is confined and has no capability left.
    let status = world.await_status("five connections", |status| status["connections"]["begun"] == 5);
    assert_eq!(status["ports"], serde_json::json!([8080]), "{status}");
    assert_eq!(status["syn"]["known"]["passed"], 4, "{status}");
    assert_eq!(status["interfaces"][0]["state"], "attached", "{status}");
    let metrics = world.at_server("curl -sS http://127.0.0.1:9090/metrics");
    for name in
        ["staunch_requests_total 5", "staunch_gate_connections_total{port=\"8080\",event=\"begun\"} 5"]
    {
        assert!(metrics.lines().any(|line| line == name), "{name}\n{metrics}");
    }
    let process = Pid::from_raw(server.process_id().cast_signed()).expect("a process");
    kill_process(process, Signal::TERM).expect("a process of ours");
    until("its end", || !server.is_running());
    assert!(!world.has_program(INTERFACE));
}

#[test]
fn an_upgraded_server_goes_without_and_says_so() {
    let Some(world) = World::new() else { return };
    let tree = Tree::with(&[]).expect("a tree");
    let folder = tree.root().parent().expect("a folder").join("run");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("pid");
    let number = || std::fs::read_to_string(&file).unwrap_or_default().trim().parse::<i32>().unwrap_or(0);
    let mut command = world.command(process::binary());
    command.args(["serve", "--listen", "0.0.0.0:8080", "--workers", "1", "--gate", INTERFACE, "--pid-file"]);
    let mut first = Gate::spawn(command.arg(&file).arg(tree.root()));
    first.await_line("gate         vs (native)");
    until("its number", || number() != 0);
    let old = number();
    first.signal(Signal::USR2);
    first.await_line("an upgraded server cannot put it up again");
    until("another number", || number() != old && number() != 0);
    until("the end of the first", || !first.is_running());
    assert!(!world.has_program(INTERFACE));
    assert_eq!(get(&world, 8080), "HTTP/1.1 200 OK");
    let second = Pid::from_raw(number()).expect("a process");
    kill_process(second, Signal::TERM).expect("a process of ours");
    until("the end of the second", || test_kill_process(second).is_err());
}

#[test]
fn a_server_without_the_right_says_which() {
    let Some(world) = World::new() else { return };
    let tree = Tree::with(&[]).expect("a tree");
    let mut command = world.command("setpriv");
    command.args(["--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all"]).arg(process::binary());
    command
        .args(["serve", "--listen", "0.0.0.0:8080", "--workers", "1", "--gate", INTERFACE])
        .arg(tree.root());
    let finished = process::finish(&mut command);
    assert_eq!(finished.status.code(), Some(1), "{finished:?}");
    assert!(
        finished.stderr.contains("gate: the gate needs the capabilities CAP_BPF, CAP_PERFMON"),
        "{}",
        finished.stderr
    );
}

/// nginx at port 8081.
struct Nginx {
    child: Child,
    folder: std::path::PathBuf,
}

impl Nginx {
    fn new(world: &World) -> Self {
        let folder = std::env::temp_dir().join(format!("staunch-gate-nginx-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.display();
        let mut file = std::fs::File::create(folder.join("nginx.conf")).expect("a file");
        write!(
            file,
            "daemon off; pid {path}/pid; error_log {path}/error.log;\nevents {{}}\nhttp {{ access_log off; \
             client_body_temp_path {path}/body; proxy_temp_path {path}/proxy; \
             fastcgi_temp_path {path}/fastcgi; uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;\n\
             server {{ listen 8081; location / {{ return 200 hello; }} }} }}\n"
        )
        .expect("a file");
        let mut command = world.command("nginx");
        command.arg("-c").arg(folder.join("nginx.conf")).args(["-e", "stderr"]).stderr(Stdio::null());
        Self { child: command.spawn().expect("nginx"), folder }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM, so that it ends its workers.
        let process = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        let _ = kill_process(process, Signal::TERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn servers_need_not_know_of_it() {
    let Some(world) = World::new() else { return };
    let site = Site::new(&world);
    let nginx = process::is_installed("nginx").then(|| Nginx::new(&world));
    let ports = if nginx.is_some() { &[site.port, 8081][..] } else { &[site.port] };
    if nginx.is_some() {
        until("nginx", || get(&world, 8081) == "HTTP/1.1 200 OK");
    }
    for mode in ["drop", "reset"] {
        for xdp in ["native", "generic"] {
            let _gate = world.gate(&["--port", "8080,8081", "--mode", mode, "--xdp", xdp]);
            for port in ports {
                for _ in 0..20 {
                    assert_eq!(get(&world, *port), "HTTP/1.1 200 OK", "{mode} {xdp} {port}");
                }
            }
            let count = 20 * ports.len() as u64;
            let begun = |status: &serde_json::Value| status["connections"]["begun"] == count;
            let status = world.await_status("every connection begun", begun);
            // The first is of somebody unknown; who completed a handshake is known from then on.
            assert_eq!(status["syn"]["unknown"]["passed"], 1, "{status}");
            assert_eq!(status["syn"]["known"]["passed"], count - 1, "{status}");
            assert_eq!(status["interfaces"][0]["way"], xdp);
            assert_eq!((&status["state"], &status["mode"]), (&"open".into(), &mode.into()));
        }
    }
}
