//! Where it stands which process serves: a PID file or an admin address, named by a flag or by the settings.
//!
//! Order: `--pid-file` or `--admin`; else the settings of `-c`, of `STAUNCH_CONFIG`, or of the service.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use staunch_program::Failure;
use staunch_server::metrics::ReloadFigures;
use staunch_service::life::ReloadNote;

use crate::config::Loader;
use crate::top::fetch;

use super::server::Server;

/// The admin address of the examples, where nothing names one.
const USUAL_ADMIN: &str = "127.0.0.1:9090";

/// Which server.
#[derive(Args, Clone, Debug)]
pub(crate) struct Which {
    /// File with the server's settings, where `pid_file` or `admin` names it
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    /// PID file of the server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["admin", "config"])]
    pid_file: Option<PathBuf>,

    /// Admin address of the server, or its socket
    #[arg(long, value_name = "ADDR|PATH", conflicts_with = "config")]
    admin: Option<String>,
}

/// What names the server.
#[derive(Debug)]
pub(super) struct Whereabouts {
    pid_file: Option<PathBuf>,
    admin: Option<String>,
    file: Option<PathBuf>,
}

impl Whereabouts {
    /// Reads the settings unless a flag names the server.
    ///
    /// # Errors
    /// Settings that cannot be used, or that name nothing.
    pub(super) fn of(which: &Which) -> Result<Self, Failure> {
        if which.pid_file.is_some() || which.admin.is_some() {
            let Which { pid_file, admin, .. } = which.clone();
            return Ok(Self { pid_file, admin, file: None });
        }
        let loader = Loader::of_service(Vec::new(), which.config.clone());
        let Some(file) = loader.file() else { return Err(unnamed("there is no file of settings")) };
        let process = loader.load()?.process;
        if process.pid_file.is_none() && process.admin.is_none() {
            return Err(unnamed(&format!("{} sets neither `pid_file` nor `admin`", file.display())));
        }
        let admin = process.admin.map(|address| address.to_string());
        Ok(Self { pid_file: process.pid_file, admin, file: Some(file.to_owned()) })
    }

    /// The process that serves at this moment.
    ///
    /// # Errors
    /// A sentence: none does.
    pub(super) fn server(&self) -> Result<Server, String> {
        let (pid, source) = match (&self.pid_file, &self.admin) {
            (Some(path), _) => (read(path)?, path.display().to_string()),
            (None, Some(admin)) => (fetch::snapshot(admin)?.process_id, format!("admin address {admin}")),
            (None, None) => return Err("nothing names a server".into()),
        };
        Server::open(pid, &source)
    }

    /// What came of the last reload, as far as it is told: by the PID file, or by the admin address.
    pub(super) fn last_reload(&self) -> Option<ReloadNote> {
        if let Some(pid_file) = &self.pid_file {
            return ReloadNote::beside(pid_file);
        }
        let snapshot = fetch::snapshot(self.admin.as_ref()?).ok()?;
        let ReloadFigures { number, is_applied, text } = snapshot.reload?;
        Some(ReloadNote { process: snapshot.process_id, number, is_applied, text })
    }

    pub(super) fn admin(&self) -> Option<&str> {
        self.admin.as_deref()
    }

    /// The file of settings, if it was asked.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// The admin address of a server: the one named, or that of the settings as for other commands.
///
/// # Errors
/// Settings that cannot be used.
pub(crate) fn admin_of(admin: Option<&str>, config: Option<PathBuf>) -> Result<String, Failure> {
    if let Some(admin) = admin {
        return Ok(admin.to_owned());
    }
    let loader = Loader::of_service(Vec::new(), config);
    let told = match loader.file() {
        Some(_) => loader.load()?.process.admin,
        None => None,
    };
    Ok(told.map_or_else(|| USUAL_ADMIN.to_owned(), |address| address.to_string()))
}

fn unnamed(why: &str) -> Failure {
    let text = format!("no server is named: {why}; give --pid-file FILE or --admin ADDR, or -c FILE");
    Failure { code: 2, text }
}

fn read(path: &Path) -> Result<u32, String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("no server runs: there is no PID file {shown}"),
        _ => format!("{shown}: {error}"),
    })?;
    text.trim().parse().map_err(|_| format!("{shown} is no PID file: it holds {:?}", text.trim()))
}
