//! The certificate with which servers speak TLS here, and its key: P-256, signed by itself, made by openssl.
//!
//! It owns three files in a folder of the benchmark. It must never be trusted outside of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What openssl is told of the certificate.
const REQUEST: &str = "[req]\ndistinguished_name = name\nx509_extensions = more\nprompt = no\n\
    [name]\nCN = localhost\n\
    [more]\nsubjectAltName = DNS:localhost, IP:127.0.0.1\nbasicConstraints = critical, CA:FALSE\n\
    keyUsage = critical, digitalSignature\nextendedKeyUsage = serverAuth\n";

/// A certificate and its key, as files.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// The certificate in PEM.
    pub(super) certificate: PathBuf,
    /// Its key in PEM.
    pub(super) key: PathBuf,
    /// Both in one file, as HAProxy reads them.
    pub(super) joined: PathBuf,
}

impl Pair {
    /// Makes a pair for `localhost`, good for a month.
    ///
    /// # Errors
    /// openssl is missing or fails, or a file cannot be written.
    pub(super) fn make(folder: &Path) -> Result<Self, String> {
        let path = |name: &str| folder.join(name);
        let request = path("pair.cnf");
        let pair =
            Self { certificate: path("pair.pem"), key: path("pair.key"), joined: path("pair-joined.pem") };
        let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).and_then(|()| fs::write(&request, REQUEST)).map_err(fault)?;
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        command.args(["-sha256", "-days", "30", "-config"]).arg(&request);
        command.arg("-keyout").arg(&pair.key).arg("-out").arg(&pair.certificate);
        let output = command.output().map_err(|error| format!("openssl: {error}"))?;
        if !output.status.success() {
            return Err(format!("openssl: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let read = |path: &Path| fs::read(path).map_err(fault);
        let joined = [read(&pair.certificate)?, read(&pair.key)?].concat();
        fs::write(&pair.joined, joined).map_err(fault)?;
        Ok(pair)
    }
}
