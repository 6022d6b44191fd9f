//! From the settings to what the process may reach: the list for `staunch_confine`.
//!
//! It owns that list and the order of calls. It must be used before the first thread is started.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use staunch_config::Config;
use staunch_config::syntax::choice;
use staunch_config::syntax::text::{AdminAddress, Output};
use staunch_config::units::ListenAddress;
use staunch_confine::{Confinement, Identity, Paths, Sandbox};
use staunch_engine::Engine;
use staunch_netio::host::khttpd;
use staunch_program::Failure;

use crate::certificates;
use crate::proxy;

/// The user to become, if one is named.
///
/// # Errors
/// Nobody has that name, or it is root.
pub(crate) fn identity(config: &Config) -> Result<Option<Identity>, Failure> {
    let find = |user: String| Identity::find(&user).map_err(|unknown| format!("user: {unknown}"));
    config
        .process
        .user
        .as_ref()
        .map(|user| find(user.to_string()))
        .transpose()
        .map_err(Failure::configuration)
}

/// Becomes the user asked for, and confines the process to what the settings name and to the file they stand
/// in.
///
/// # Errors
/// In one sentence: the user cannot be changed or cannot read a site; the kernel lacks what is insisted on.
pub(crate) fn confine<M: Send + 'static>(
    engine: &mut Engine<M>,
    config: &Config,
    file: Option<&Path>,
    user: Option<&Identity>,
) -> Result<Confinement, String> {
    if let Some(user) = user {
        user.assume().map_err(|error| error.to_string())?;
        engine.choose_again().map_err(|error| error.to_string())?;
        for root in config.sites.iter().filter_map(|site| site.content.root.as_ref()) {
            match std::fs::read_dir(root) {
                // Among several sites one that is not there is closed, and told of.
                Err(error) if error.kind() == ErrorKind::NotFound && config.sites.len() > 1 => {}
                Err(error) => {
                    return Err(format!("--user {user} cannot read {}: {error}", root.display()));
                }
                Ok(_) => {}
            }
        }
    }
    let sandbox = sandbox(config.process.sandbox);
    let mut paths = paths(config, file);
    // An upgrade may change to io_uring, unless everything is to be confined that can be.
    if sandbox != Sandbox::On || engine.backend().0 != "epoll" {
        paths.use_rings();
    }
    staunch_confine::confine(sandbox, paths, user).map_err(|missing| missing.to_string())
}

/// How much is confined, in the words of the crate that does it.
pub(crate) fn sandbox(told: choice::Sandbox) -> Sandbox {
    match told {
        choice::Sandbox::Auto => Sandbox::Auto,
        choice::Sandbox::On => Sandbox::On,
        choice::Sandbox::Off => Sandbox::Off,
    }
}

/// What to tell somebody who serves as root.
pub(crate) fn advice() -> Option<&'static str> {
    let root = rustix::process::geteuid().is_root();
    root.then_some(
        "root, which nothing needs once ports are open: --user www-data, or another user without rights",
    )
}

/// What the settings, and the file they stand in, want to be reached.
pub(crate) fn paths(config: &Config, file: Option<&Path>) -> Paths {
    let mut paths = Paths::default();
    if !config.process.gate.is_empty() {
        paths.use_maps();
    }
    if config.network.behind_khttpd {
        paths.take_from_khttpd(Path::new(khttpd::DEVICE), Path::new(khttpd::ROOT));
    }
    for site in &config.sites {
        site.roots().for_each(|root| paths.read_site(root));
        let passwords =
            site.paths.iter().filter_map(|rule| rule.basic_auth.as_ref()?.as_ref()?.users_file.as_deref());
        passwords.for_each(|file| paths.read_file(file));
    }
    let of_tls = certificates::files(config).into_iter().chain(certificates::state_file(config));
    of_tls.for_each(|file| paths.read_file(&file));
    let beside = |name: &PathBuf| file.and_then(Path::parent).map(|folder| folder.join(name));
    config.process.include.iter().filter_map(beside).for_each(|file| paths.read_file(&file));
    file.into_iter().chain(config.fabric.fabric_key_file.as_deref()).for_each(|file| paths.read_file(file));
    let with_state =
        config.sites.iter().filter_map(|site| site.live.live_state.as_ref().filter(|_| site.live.live));
    // Any name in it: which folder may be written to is all that is asked.
    with_state.for_each(|folder| paths.write_file(&folder.join("live.redb")));
    let listens = config.network.listen.iter().chain(&config.tls.tls_listen);
    proxy::ports(config).into_iter().for_each(|port| paths.connect_to(port));
    let files = listens.filter_map(|address| match address {
        ListenAddress::Unix(file) => Some(file),
        _ => None,
    });
    let admin = config.process.admin.iter().filter_map(|address| match address {
        AdminAddress::Unix(file) => Some(file),
        AdminAddress::Internet(_) => None,
    });
    files.chain(admin).for_each(|file| paths.make_socket(file));
    let access_logs = config.sites.iter().map(|site| &site.access_log.access_log);
    let logs = access_logs.chain([&config.logs.error_log]).filter_map(|log| match log {
        Some(Output::File(file)) => Some(file),
        Some(Output::Standard | Output::StandardError | Output::Syslog(_)) | None => None,
    });
    logs.chain(&config.process.pid_file).for_each(|file| paths.write_file(file));
    paths
}
