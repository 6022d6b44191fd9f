//! A server that speaks HTTPS, its certificates, and the programs that visit it.
//!
//! It owns a folder with an authority of its own and pairs signed by it. It must never trust anything that
//! the machine trusts.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use staunch_tests::process::{Server, serve};
use staunch_tests::tree::Tree;
use staunch_tls::LocalAuthority;

/// Both ways to the network. io_uring is left out where the kernel does not have it.
pub(crate) const BACKENDS: [&str; 2] = ["epoll", "uring"];

/// How long bytes of a server are waited for before the test is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock stands after 1970").as_secs()
}

/// A folder with files to serve, and one with certificates beside it.
pub(crate) struct House {
    pub(crate) tree: Tree,
    pub(crate) authority: LocalAuthority,
    folder: PathBuf,
}

impl House {
    pub(crate) fn new() -> Self {
        let tree = Tree::new().expect("a folder");
        let folder = tree.root().parent().expect("a folder of the test's own").join("tls");
        fs::create_dir_all(&folder).expect("a folder");
        let authority = LocalAuthority::create(now()).expect("an authority");
        fs::write(folder.join("ca.pem"), authority.certificate_pem()).expect("a file");
        let house = Self { tree, authority, folder };
        house.write_pair("server", &["localhost", "127.0.0.1"], now());
        house
    }

    /// A file of the folder with certificates.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes `NAME.pem` and `NAME.key`, for these names and from that moment on.
    pub(crate) fn write_pair(&self, name: &str, names: &[&str], from_unix_s: u64) {
        let issued = self.authority.issue(names, from_unix_s).expect("local names");
        fs::write(self.path(&format!("{name}.pem")), issued.certificate_pem).expect("a file");
        fs::write(self.path(&format!("{name}.key")), issued.key_pem.as_bytes()).expect("a file");
    }

    /// A file to serve, of so many foretellable bytes.
    pub(crate) fn write_file(&self, name: &str, length: usize) -> Vec<u8> {
        let bytes: Vec<u8> = (0..length).map(|place| (place % 251) as u8 ^ (place >> 12) as u8).collect();
        fs::write(self.tree.root().join(name), &bytes).expect("a file");
        bytes
    }

    /// A command that serves the folder over HTTPS with the pair `server`.
    pub(crate) fn command(&self, backend: &str) -> Command {
        let mut command = serve(self.tree.root());
        command.args(["--io", backend, "--tls-listen", "127.0.0.1:0"]);
        command.arg("--tls-certificate").arg(self.path("server.pem"));
        command.arg("--tls-key").arg(self.path("server.key"));
        command
    }

    /// A server that does so, with these arguments; nothing where the backend is not to be had.
    pub(crate) fn serve(&self, backend: &str, arguments: &[&str]) -> Option<Secured> {
        start(self.command(backend).args(arguments))
    }
}

/// Starts a server and waits until it says where HTTPS is spoken. Nothing where io_uring is not to be had.
pub(crate) fn start(command: &mut Command) -> Option<Secured> {
    let server = match Server::spawn(command) {
        Ok(server) => server,
        Err(text) if text.contains("io_uring cannot be used here") => return None,
        Err(text) => panic!("{text}"),
    };
    let address = server.secured_address();
    Some(Secured { server, address })
}

/// A server that speaks HTTPS.
pub(crate) struct Secured {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
}

impl Secured {
    /// The URL of a path, by name.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// A connection without TLS on the secured port.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream
    }

    /// Sends these bytes and reads until the server closes.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("the server reads");
        read_to_end(&mut stream)
    }
}

/// Everything that comes until the other side closes, in order or not.
pub(crate) fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server does not close: {error}"),
    }
    all
}

/// curl that trusts the authority and nobody else.
pub(crate) fn curl(house: &House) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "30", "--noproxy", "*", "--cacert"]);
    command.arg(house.path("ca.pem"));
    command
}

/// A script of this folder.
pub(crate) fn python(house: &House, secured: &Secured, words: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tls/talk.py");
    let port = secured.address.port().to_string();
    let mut command = Command::new("python3");
    command.arg(script).arg(port).arg(house.path("ca.pem")).args(words);
    run(&mut command)
}

/// Clients that have asked once and rest.
pub(crate) struct Crowd {
    child: Child,
}

/// So many clients, which have asked once each.
pub(crate) fn crowd(house: &House, secured: &Secured, count: usize) -> Crowd {
    house.write_file("5000", 5_000);
    house.write_file("100000", 100_000);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tls/talk.py");
    let (port, count) = (secured.address.port().to_string(), count.to_string());
    let mut command = Command::new("python3");
    command.arg(script).arg(port).arg(house.path("ca.pem")).args(["crowd", &count]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 starts");
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut said).expect("a line");
    assert_eq!(said, "resting\n");
    Crowd { child }
}

impl Crowd {
    /// Each asks once more on its connection and leaves in order.
    pub(crate) fn go_on(&mut self) {
        self.child.stdin.take().expect("asked once").write_all(b"\n").expect("it waits");
        let status = self.child.wait().expect("a child of ours");
        assert!(status.success(), "{status}");
    }
}

/// Runs a program without input to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a program wrote, if all went well.
pub(crate) fn text(output: Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {complaint}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
