//! An authority, a server that asks it, and what visitors see of its certificates.
//!
//! It owns a folder with everything in it. It must never speak to anybody outside of this machine, nor trust
//! what the machine trusts.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use staunch_tests::house::ports::reserved_address;
pub(crate) use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, binary, is_installed, serve};
use staunch_tests::tree::Tree;
use staunch_tls::LocalAuthority;

/// The name that certificates are for. Pebble asks a server of names that leads all of them to loopback.
pub(crate) const NAME: &str = "web.example";
/// A name that the authority refuses.
pub(crate) const BLOCKED: &str = "blocked.example";

/// An account that the strict authority knows already.
pub(crate) const EAB_NAME: &str = "kid-1";
const EAB_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// A program that Go has built for the tests, if it is there.
fn tool(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests have a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([root.join("target/tools/bin")]);
    let found = folders.map(|folder| folder.join(name)).find(|program| program.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is missing");
        println!("skipped: {name} is missing (cargo xtask install --for test brings it where there is Go)");
    }
    found
}

/// A folder with files to serve, and an authority that may be asked.
pub(crate) struct World {
    pub(crate) tree: Tree,
    folder: PathBuf,
    pebble: PathBuf,
    names: Child,
    authority: Option<Child>,
    /// Where the authority answers, where it tells of itself, where it asks, by HTTP and by TLS.
    ports: [SocketAddr; 4],
    dns: SocketAddr,
}

impl World {
    /// A world whose authority does not run yet; nothing where it cannot be had.
    pub(crate) fn new() -> Option<Self> {
        let (pebble, names) = (tool("pebble")?, tool("pebble-challtestsrv")?);
        if !is_installed("curl") || !is_installed("openssl") {
            return None;
        }
        let tree = Tree::new().expect("a folder");
        fs::write(tree.root().join("a"), "content").expect("a file");
        let folder = tree.root().parent().expect("a folder of the test's own").join("acme");
        fs::create_dir_all(&folder).expect("a folder");
        let ports = [(); 4].map(|()| reserved_address());
        let dns = reserved_address();
        let names = Command::new(names)
            .args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-http01", "", "-https01", ""])
            .args(["-tlsalpn01", "", "-doh", "", "-dnsserver", &dns.to_string()])
            .args(["-management", &reserved_address().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pebble-challtestsrv starts");
        let world = Self { tree, folder, pebble, names, authority: None, ports, dns };
        world.write_settings(false);
        Some(world)
    }

    /// A world whose authority runs, and makes accounts for those alone that it knows already.
    pub(crate) fn with_strict_authority() -> Option<Self> {
        let mut world = Self::new()?;
        world.write_settings(true);
        fs::write(world.path("eab.key"), format!("{EAB_KEY}\n")).expect("a file");
        world.start_authority();
        Some(world)
    }

    /// A world whose authority runs.
    pub(crate) fn with_authority() -> Option<Self> {
        let mut world = Self::new()?;
        world.start_authority();
        Some(world)
    }

    fn write_settings(&self, is_strict: bool) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let own = LocalAuthority::create(now).expect("an authority");
        let issued = own.issue(&["localhost", "127.0.0.1"], now).expect("a local name");
        fs::write(self.path("trusted.pem"), own.certificate_pem()).expect("a file");
        fs::write(self.path("own.pem"), issued.certificate_pem).expect("a file");
        fs::write(self.path("own.key"), issued.key_pem.as_bytes()).expect("a file");
        let [answers, manages, http, tls] = self.ports;
        let settings = serde_json::json!({"pebble": {
            "listenAddress": answers.to_string(), "managementListenAddress": manages.to_string(),
            "certificate": self.path("own.pem"), "privateKey": self.path("own.key"),
            "httpPort": http.port(), "tlsPort": tls.port(), "ocspResponderURL": "",
            "externalAccountBindingRequired": is_strict,
            "externalAccountMACKeys": {EAB_NAME: EAB_KEY}, "domainBlocklist": [BLOCKED],
            "retryAfter": {"authz": 1, "order": 1}, "keyAlgorithm": "ecdsa",
            "profiles": {"default": {"description": "the usual", "validityPeriod": 7_776_000}},
        }});
        fs::write(self.path("pebble.json"), settings.to_string()).expect("a file");
    }

    /// Starts the authority, which knows nothing of what it did before, and waits until it answers.
    pub(crate) fn start_authority(&mut self) {
        let log = fs::File::create(self.path("pebble.log")).expect("a file");
        let child = Command::new(&self.pebble)
            .arg("-config")
            .arg(self.path("pebble.json"))
            .args(["-dnsserver", &self.dns.to_string()])
            // A fifth of all good nonces is refused; checks begin at once, and each order is checked.
            .envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "20"), ("PEBBLE_AUTHZREUSE", "0")])
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log)
            .spawn();
        self.authority = Some(child.expect("pebble starts"));
        until("the authority listens", || {
            self.ports[..2].iter().all(|address| TcpStream::connect(address).is_ok())
        });
        let url = format!("https://{}/roots/0", self.ports[1]);
        let root = run(Command::new("curl").args(["--silent", "--insecure", "--noproxy", "*", &url]));
        assert!(root.stdout.starts_with(b"-----BEGIN"), "{root:?}");
        fs::write(self.path("root.pem"), root.stdout).expect("a file");
    }

    pub(crate) fn stop_authority(&mut self) {
        if let Some(mut child) = self.authority.take() {
            child.kill().expect("a child of ours");
            child.wait().expect("a child of ours");
        }
    }

    /// How many certificates the authority has given since its start.
    pub(crate) fn issued(&self) -> usize {
        let log = fs::read_to_string(self.path("pebble.log")).unwrap_or_default();
        log.matches("Issued certificate serial").count()
    }

    /// A file of the world's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What the server has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("error.log")).unwrap_or_default()
    }

    /// A command that serves, and asks the authority for a certificate of this name.
    pub(crate) fn command(&self, name: &str) -> Command {
        let [answers, _, http, tls] = self.ports;
        let mut command = serve(self.tree.root());
        // serve() names a free port; the authority asks at this one.
        command.args(["--listen", &http.to_string(), "--tls-listen", &tls.to_string()]);
        command.args(["--tls", "auto", "--name", name, "--acme-contact", "me@example.org"]);
        command.args(["--acme-directory", &format!("https://{answers}/dir")]);
        command.arg("--acme-authority").arg(self.path("trusted.pem"));
        command.arg("--state-folder").arg(self.path("state"));
        command.arg("--error-log").arg(self.path("error.log"));
        command
    }

    /// A server of [`NAME`] with these arguments; nothing where the kernel has no io_uring for it.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Option<Server> {
        match Server::spawn(self.command(NAME).args(arguments)) {
            Ok(server) => Some(server),
            Err(text) if text.contains("io_uring cannot be used here") => None,
            Err(text) => panic!("{text}"),
        }
    }

    /// curl that trusts the authority's root and nobody else, asking for a file by name.
    pub(crate) fn visit(&self) -> Output {
        let port = self.ports[3].port();
        let to = format!("{NAME}:{port}:127.0.0.1");
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "20", "--noproxy", "*"]);
        command.arg("--cacert").arg(self.path("root.pem"));
        run(command.args(["--resolve", &to, &format!("https://{NAME}:{port}/a")]))
    }

    /// Waits until a visitor who trusts the authority gets content.
    pub(crate) fn await_certificate(&self) {
        until(&format!("a certificate that is trusted: {}", self.log()), || {
            self.visit().stdout == b"content"
        });
    }

    /// What plain HTTP answers for a path.
    pub(crate) fn ask_plainly(&self, path: &str) -> String {
        let url = format!("http://{}{path}", self.ports[2]);
        let host = format!("Host: {NAME}");
        let mut command = Command::new("curl");
        command.args(["--silent", "--include", "--max-time", "20", "--noproxy", "*", "--header", &host]);
        String::from_utf8_lossy(&run(command.arg(url)).stdout).into_owned()
    }

    /// The serial number of the certificate that is served.
    pub(crate) fn serial(&self) -> String {
        let to = self.ports[3].to_string();
        let client = run(Command::new("openssl").args(["s_client", "-connect", &to, "-servername", NAME]));
        let file = self.path("served.pem");
        fs::write(&file, client.stdout).expect("a file");
        let shown = run(Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(&file));
        assert!(shown.status.success(), "{shown:?}");
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// `staunch certificates` with these words.
    pub(crate) fn certificates(&self, words: &[&str]) -> Output {
        let mut command = Command::new(binary());
        run(command.arg("certificates").args(words).arg("--state-folder").arg(self.path("state")))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop_authority();
        let _ = self.names.kill();
        let _ = self.names.wait();
    }
}

/// Runs a program without input to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a program wrote, if all went well.
pub(crate) fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
