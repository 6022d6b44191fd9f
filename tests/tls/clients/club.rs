//! A server that asks for certificates, and the programs that show them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use staunch_tests::process::serve_by;

use crate::certificates::{Authority, DAY, Shown};
use crate::world::{House, Secured, curl, now, run, start, text};

/// A house whose server asks for certificates of two authorities.
pub(super) struct Club {
    pub(super) house: House,
    pub(super) root: Authority,
    pub(super) other: Authority,
}

impl Club {
    pub(super) fn new() -> Self {
        let house = House::new();
        house.write_file("page", 100);
        house.write_pair("server", &["localhost", "127.0.0.1", "other.internal", "open.internal"], now());
        let (root, other) = (Authority::root("root", now() - DAY), Authority::root("other", now() - DAY));
        fs::write(house.path("root.pem"), root.pem()).expect("a file");
        fs::write(house.path("other.pem"), other.pem()).expect("a file");
        Self { house, root, other }
    }

    /// Writes a certificate and its key into one file.
    pub(super) fn write(&self, name: &str, shown: &Shown) -> PathBuf {
        let path = self.house.path(&format!("{name}.pem"));
        fs::write(&path, format!("{}{}", shown.chain_pem(), shown.key_pem())).expect("a file");
        path
    }

    /// A file of settings: what stands at the top, and the sites. `ROOT` is the folder served, `DIR` that of
    /// certificates.
    pub(super) fn settings(&self, top: &str, rest: &str) -> PathBuf {
        let (root, folder) = (self.house.tree.root().display(), self.house.path("").display().to_string());
        let text = format!(
            "tls_listen = [\"127.0.0.1:0\"]\n\
             tls_certificate = \"{folder}server.pem\"\ntls_key = \"{folder}server.key\"\n{top}\n{rest}\n"
        );
        let text = text.replace("ROOT", &root.to_string()).replace("DIR/", &folder);
        let path = self.house.path("staunch.toml");
        fs::write(&path, text).expect("a file");
        path
    }

    pub(super) fn serve(&self, backend: &str, top: &str, rest: &str) -> Option<Secured> {
        start(serve_by(&self.settings(top, rest)).args(["--io", backend]))
    }

    /// What curl says of a request: its code, or the alert that it was told.
    pub(super) fn ask(&self, url: &str, to: &Secured, shown: Option<&Path>, words: &[&str]) -> String {
        let mut command = curl(&self.house);
        if let Some(shown) = shown {
            command.arg("--cert").arg(shown);
        }
        let port = to.address.port();
        for host in ["other.internal", "open.internal"] {
            command.arg("--resolve").arg(format!("{host}:{port}:127.0.0.1"));
        }
        command.args(["--output", "/dev/null", "--write-out", "%{http_code}"]).args(words);
        let output = run(command.arg(url.replace("PORT", &port.to_string())));
        match output.status.success() {
            true => String::from_utf8_lossy(&output.stdout).into_owned(),
            false => String::from_utf8_lossy(&output.stderr).to_lowercase(),
        }
    }

    /// The SHA-256 of a certificate, as openssl has it.
    pub(super) fn fingerprint(&self, certificate: &Path) -> String {
        let mut command = Command::new("openssl");
        command.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(certificate);
        let said = text(run(&mut command));
        said.trim().split_once('=').expect("a digest behind its name").1.to_owned()
    }
}

/// A script of this folder, with its pipes.
pub(super) fn python(house: &House, to: &Secured, shown: Option<&Path>, words: &[&str]) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tls/clients.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(to.address.port().to_string()).arg(house.path("ca.pem"));
    command.arg(shown.unwrap_or(Path::new("-"))).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 starts")
}

/// Waits for a line of a script.
pub(super) fn hear(child: &mut Child, expected: &str) {
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut said).expect("a line");
    assert_eq!(said, format!("{expected}\n"));
}

/// A script goes on, and ends well.
pub(super) fn go_on(mut child: Child) {
    child.stdin.take().expect("asked once").write_all(b"\n").expect("it waits");
    let status = child.wait().expect("a child of ours");
    assert!(status.success(), "{status}");
}

/// The process of a server.
pub(super) fn process(to: &Secured) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(to.server.process_id().cast_signed()).expect("a process")
}
