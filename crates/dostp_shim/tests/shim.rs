//! Programs of C, unchanged and knowing, over virtual interfaces: two namespaces with a link between them.
//!
//! It must never touch an interface of the host. It needs root and a C compiler; without, it says so.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static PAIRS: AtomicU32 = AtomicU32::new(0);

/// Node `n` has the interface `dv`, the address 10.99.0.n in the network of DOSTP, and 192.0.2.n outside.
struct Pair {
    name: String,
    folder: PathBuf,
}

impl Pair {
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var("CI").is_err(), "in CI this must run as root");
            println!("skipped: only root may make namespaces");
            return None;
        }
        let name = format!("shim-{}-{}", std::process::id(), PAIRS.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir(&folder).unwrap();
        let pair = Self { name, folder };
        for node in 1..=2 {
            ip(&format!("netns add {}", pair.namespace(node)));
        }
        let (one, two) = (pair.namespace(1), pair.namespace(2));
        ip(&format!("-n {one} link add dv type veth peer name dv netns {two}"));
        for (node, namespace) in [(1, &one), (2, &two)] {
            ip(&format!("-n {namespace} address add 10.99.0.{node}/16 broadcast + dev dv"));
            ip(&format!("-n {namespace} address add 192.0.2.{node}/24 dev dv"));
            ip(&format!("-n {namespace} link set dv up"));
            ip(&format!("-n {namespace} link set lo up"));
        }
        Some(pair)
    }

    fn namespace(&self, node: u32) -> String {
        format!("{}-{node}", self.name)
    }

    /// Compiles a program of this folder.
    fn compile(&self, source: &str, words: &[&str]) -> PathBuf {
        let program = self.folder.join(source.trim_end_matches(".c"));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-D_FORTIFY_SOURCE=2", "-Wall", "-Werror", "-o"]).arg(&program);
        compiler.arg(here.join("tests").join(source)).arg("-I").arg(here.join("include")).args(words);
        let output = compiler.output().expect("a C compiler");
        assert!(output.status.success(), "{}", text(&output));
        program
    }

    /// A program in a node's namespace, with the library before it if it is to speak DOSTP.
    fn command(&self, node: u32, program: &Path, words: &[&str], speaks: bool) -> Command {
        // The program does not see what this host keeps there, such as the choice of a backend.
        const PRIVATE: &str = "mount -t tmpfs staunch /var/lib && exec \"$@\"";
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(node), "sh", "-c", PRIVATE, "sh", "env"]);
        if speaks {
            command.arg(format!("LD_PRELOAD={}", library().display())).arg("DOSTP_NET=10.99.0.0/16");
        }
        command.arg(program).args(words).stdin(Stdio::null());
        command
    }

    fn run(&self, node: u32, program: &Path, words: &[&str], speaks: bool) -> Output {
        self.command(node, program, words, speaks).output().unwrap()
    }

    /// A server, once it is bound.
    fn serve(&self, program: &Path, how: &str) -> Server {
        let mut command = self.command(1, program, &["server", how, "5300"], true);
        Server::start(command.stdout(Stdio::piped()), "bound\n")
    }

    /// Datagrams that the kernel's UDP has handed to programs of a node.
    fn by_udp(&self, node: u32) -> u64 {
        let output = self.run(node, Path::new("cat"), &["/proc/net/snmp"], false);
        let text = text(&output);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let mut pairs = names.split(' ').zip(values.split(' '));
        pairs.find(|(name, _)| *name == "InDatagrams").unwrap().1.parse().unwrap()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for node in 1..=2 {
            Command::new("ip").args(["netns", "del", &self.namespace(node)]).status().ok();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

struct Server(Child);

impl Server {
    /// Once it has said this line.
    fn start(command: &mut Command, line: &str) -> Self {
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, line);
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip of iproute2");
    assert!(output.status.success(), "ip {arguments}: {}", text(&output));
}

/// The library stands in the folder above that of this test; `cargo build --workspace` makes it.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let library = own.parent().and_then(Path::parent).unwrap().join("libdostp_shim.so");
    assert!(library.exists(), "{} was not built: cargo build --workspace", library.display());
    library
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn assert_came_back(output: &Output, count: u32) {
    let said = text(output);
    assert!(output.status.success() && said == format!("{count} came back\n"), "{said}");
}

#[test]
fn an_unchanged_program_speaks_dostp_whatever_calls_it_is_made_of() {
    let Some(pair) = Pair::new() else { return };
    let program = pair.compile("udp.c", &[]);
    for (server, client) in [
        ("from", "from"),
        ("from", "connected"),
        ("message", "message"),
        ("many", "many"),
        ("poll", "poll"),
        ("select", "select"),
        ("epoll", "epoll"),
    ] {
        println!("server {server}, client {client}");
        let _server = pair.serve(&program, server);
        let output = pair.run(2, &program, &["client", client, "10.99.0.1", "5300", "50"], true);
        assert_came_back(&output, 50);
    }
    assert_eq!((pair.by_udp(1), pair.by_udp(2)), (0, 0), "all went by DOSTP");
}

#[test]
fn one_descriptor_serves_dostp_and_udp() {
    let Some(pair) = Pair::new() else { return };
    let program = pair.compile("udp.c", &[]);
    for server in ["from", "poll", "select", "epoll"] {
        println!("server {server}");
        let before = pair.by_udp(1);
        let _server = pair.serve(&program, server);
        let ask = |address: &str, speaks| {
            let output = pair.run(2, &program, &["client", "from", address, "5300", "10"], speaks);
            assert_came_back(&output, 10);
        };
        // A program without the library, one with it that asks outside of the network, and one inside.
        ask("10.99.0.1", false);
        ask("192.0.2.1", true);
        assert_eq!(pair.by_udp(1), before + 20);
        ask("10.99.0.1", true);
        assert_eq!(pair.by_udp(1), before + 20);
    }
}

#[test]
fn a_child_goes_on_by_udp() {
    let Some(pair) = Pair::new() else { return };
    let program = pair.compile("udp.c", &[]);
    let _server = pair.serve(&program, "from");
    let output = pair.run(2, &program, &["client", "fork", "10.99.0.1", "5300", "5"], true);
    assert_came_back(&output, 5);
    assert_eq!(pair.by_udp(1), 1);
}

#[test]
fn a_host_without_a_node_is_spoken_to_by_udp() {
    let Some(pair) = Pair::new() else { return };
    let program = pair.compile("udp.c", &[]);
    let mut command = pair.command(1, &program, &["server", "from", "5300"], false);
    let _server = Server::start(command.stdout(Stdio::piped()), "bound\n");
    for client in ["from", "connected", "message"] {
        println!("client {client}");
        let output = pair.run(2, &program, &["lonely", client, "10.99.0.1", "5300", "20"], true);
        assert_came_back(&output, 20);
    }
}

#[test]
fn a_child_that_goes_on_keeps_no_other_program_from_its_node() {
    let Some(pair) = Pair::new() else { return };
    let program = pair.compile("udp.c", &[]);
    let mut parent = pair.command(1, &program, &["parent", "from", "5301"], true);
    // The child lives as long as this.
    let mut parent = Server::start(parent.stdin(Stdio::piped()).stdout(Stdio::piped()), "left\n");
    let kept = parent.0.stdin.take();
    assert!(parent.0.wait().is_ok_and(|status| status.success()));
    let _server = pair.serve(&program, "from");
    let output = pair.run(2, &program, &["client", "from", "10.99.0.1", "5300", "5"], true);
    assert_came_back(&output, 5);
    assert_eq!(pair.by_udp(1), 0);
    drop(kept);
}

#[test]
fn what_cannot_be_is_said_once_and_goes_by_udp() {
    let Some(pair) = Pair::new() else { return };
    let program = pair.compile("udp.c", &[]);
    let _server = pair.serve(&program, "from");
    let ask = |variable: &str| {
        let mut command = pair.command(2, Path::new("env"), &[variable], true);
        command.arg(&program).args(["client", "from", "10.99.0.1", "5300", "5"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = ask("DOSTP_INTERFACE=lo");
    assert!(
        said.contains("a socket stays with UDP") && said.contains("lo is a loopback interface"),
        "{said}"
    );
    for (variable, part) in [
        ("DOSTP_NET=10.0.0.0/8", "2^16 addresses at most"),
        ("DOSTP_NET=10.98.0.0/16", "no interface has an address there"),
        ("DOSTP_BACKEND=pigeon", "no backend is called `pigeon`"),
        ("DOSTP_CLUSTER=256", "write 0 to 255"),
        ("DOSTP_KEY_FILE=/nowhere", "/nowhere"),
    ] {
        let said = ask(variable);
        assert!(said.contains(part) && said.contains("everything goes by UDP"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert_eq!(pair.by_udp(1), 6 * 5);
}

#[test]
fn a_program_that_knows_of_dostp_attaches_its_socket() {
    let Some(pair) = Pair::new() else { return };
    let program = pair.compile("udp.c", &[]);
    let _server = pair.serve(&program, "from");
    let folder = library();
    let folder = folder.parent().unwrap().to_str().unwrap();
    let words = ["-L", folder, "-ldostp_shim", &format!("-Wl,-rpath,{folder}")];
    let knowing = pair.compile("knowing.c", &words);
    let output = pair.run(2, &knowing, &["dv", "10.99.0.1", "5300"], false);
    assert!(output.status.success() && text(&output).contains("by ring"), "{}", text(&output));
    assert_eq!(pair.by_udp(1), 0);
}
