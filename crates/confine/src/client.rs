//! The confinement of a process that asks others and serves nobody: the agent of certificates, and the
//! resolver of names.
//!
//! The process reads this beside what it is told: what names are looked up by, and, if it is the agent, the
//! authorities that this machine trusts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{Missing, Paths, Sandbox, fence, filter, threads};

/// The file that says who is asked for names. Others replace it as a whole, while the process runs.
const RESOLVER: &str = "/etc/resolv.conf";
/// The folder of the files by which names are looked up: `hosts`, `nsswitch.conf`, `gai.conf` and others.
const SETTINGS: &str = "/etc";
/// Where systems keep the authorities that they trust.
const AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/pki",
    "/usr/lib/ssl",
    "/var/lib/ca-certificates",
];
/// Variables that name further ones.
const NAMED: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Confines this process: it reads these files, and those that may take their names; keeps files within
/// `store`; looks names up and connects. What could not be confined, in words.
///
/// # Errors
/// [`Sandbox::On`] where the kernel cannot do all of it. Some of it may be done by then: end the process.
///
/// # Panics
/// If the process has other threads: they would go on unconfined.
pub fn confine_client(sandbox: Sandbox, files: &[PathBuf], store: &Path) -> Result<Vec<String>, Missing> {
    let mut paths = Paths::default();
    files.iter().for_each(|file| paths.read_file(file));
    let named = NAMED.iter().filter_map(std::env::var_os).map(PathBuf::from);
    let read =
        AUTHORITIES.iter().map(PathBuf::from).chain(named).chain(resolver()).chain(paths.read).collect();
    confine_to(sandbox, &read, Some(store))
}

/// Confines this process to what the lookup of a name needs: the settings of that are read, other machines
/// are asked, and no file is written. What could not be confined, in words.
///
/// # Errors
/// Those of [`confine_client`].
///
/// # Panics
/// If the process has other threads: they would go on unconfined.
pub fn confine_resolver(sandbox: Sandbox) -> Result<Vec<String>, Missing> {
    // Others replace the files in it as a whole, while the process runs: rules for the files alone would be
    // for what was replaced.
    let settings = PathBuf::from(SETTINGS);
    confine_to(sandbox, &resolver().into_iter().chain([settings]).collect(), None)
}

fn confine_to(
    sandbox: Sandbox,
    read: &BTreeSet<PathBuf>,
    write: Option<&Path>,
) -> Result<Vec<String>, Missing> {
    if sandbox == Sandbox::Off {
        return Ok(Vec::new());
    }
    assert!(threads() <= 1, "confined before threads are started");
    let is_insisted_on = sandbox == Sandbox::On;
    if is_insisted_on {
        fence::can_be_whole()?;
    }
    let confined = [fence::raise_for_client(read, write), filter::apply_to_client()];
    let missing: Vec<String> = confined.into_iter().filter_map(Result::err).collect();
    match missing.first().filter(|_| is_insisted_on) {
        Some(what) => Err(Missing::from(what.clone())),
        None => Ok(missing),
    }
}

/// The folder of the file that says who is asked for names: another file takes its name whenever the network
/// changes, and a rule for the file alone would be one for what was replaced.
fn resolver() -> Option<PathBuf> {
    let file = Path::new(RESOLVER).canonicalize().ok()?;
    file.parent().map(Path::to_path_buf)
}
