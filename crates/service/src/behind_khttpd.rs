//! Serving what khttpd does not: its device is opened, and both must give one site.
//!
//! It must be used before the process becomes another user, for the device is root's.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use staunch_config::Config;
use staunch_engine::Engine;
use staunch_netio::host::khttpd;

/// Lets the engine take connections from khttpd, if that is asked for.
///
/// # Errors
/// khttpd is not loaded, hands nothing over or serves another folder; a missing right. In a sentence.
pub(crate) fn open<M: Send + 'static>(engine: &mut Engine<M>, config: &Config) -> Result<(), String> {
    if !config.network.behind_khttpd {
        return Ok(());
    }
    let folder = folder(config);
    let root = khttpd::root()
        .ok_or_else(|| format!("behind_khttpd: khttpd is not loaded: {}", how_to_load(&folder)))?;
    if root != folder {
        let (root, folder) = (root.display(), folder.display());
        return Err(format!(
            "behind_khttpd: khttpd serves {root} and this server {folder}; both must give one site"
        ));
    }
    let device = khttpd::open().map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::NotFound => format!("khttpd hands nothing over: {}", how_to_load(&folder)),
            ErrorKind::PermissionDenied => {
                format!(
                    "{error}; start the server as root with --user, or give {} to its user",
                    khttpd::DEVICE
                )
            }
            _ => error.to_string(),
        };
        format!("behind_khttpd: cannot open {}: {reason}", khttpd::DEVICE)
    })?;
    engine.take_from(&device).map_err(|error| format!("behind_khttpd: {error}"))
}

/// The folder of the site that is served when no other is meant.
fn folder(config: &Config) -> PathBuf {
    let root = config.default_site().content.root.clone().unwrap_or_default();
    root.canonicalize().unwrap_or(root)
}

fn how_to_load(folder: &Path) -> String {
    format!("load it by `staunch kernel load --root {} hand_over=`", folder.display())
}
