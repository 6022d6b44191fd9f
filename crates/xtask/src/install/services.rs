//! Packages of servers start them at once. Here nothing is started, and nothing is left enabled.
//!
//! It owns Debian's own switch for that, `policy-rc.d`, for the length of an installation. It must never
//! touch a service that was there before.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// Debian asks this program before it starts a service.
pub(crate) const POLICY_FILE: &str = "/usr/sbin/policy-rc.d";
/// "Action forbidden by policy", in the words of Debian's invoke-rc.d.
const DENY_ALL: &str = "#!/bin/sh\nexit 101\n";
/// Packages that bring a service, and its name.
const SERVICES: &[(&str, &str)] = &[
    ("nginx-light", "nginx"),
    ("apache2", "apache2"),
    ("lighttpd", "lighttpd"),
    ("h2o", "h2o"),
    ("haproxy", "haproxy"),
    ("caddy", "caddy"),
    ("prometheus", "prometheus"),
    ("varnish", "varnish"),
    ("varnish", "varnishncsa"),
];

/// While it lives, packages start no service. Then the policy is as it was.
pub(crate) struct Guard {
    policy: PathBuf,
    saved: Option<PathBuf>,
}

/// Denies the start of services. A policy that is there is put aside, and back by the guard.
///
/// # Errors
/// When the folder of the policy cannot be written.
pub(crate) fn hold_back(policy: &Path) -> io::Result<Guard> {
    let aside = policy.with_extension("staunch-saved");
    // An interrupted installation may have left the real one aside: it is not overwritten by our own.
    if policy.exists() && !aside.exists() {
        fs::rename(policy, &aside)?;
    }
    let guard = Guard { policy: policy.to_path_buf(), saved: aside.exists().then_some(aside) };
    fs::write(policy, DENY_ALL)?;
    fs::set_permissions(policy, fs::Permissions::from_mode(0o755))?;
    Ok(guard)
}

impl Drop for Guard {
    fn drop(&mut self) {
        let restored = match &self.saved {
            Some(aside) => fs::rename(aside, &self.policy),
            None => fs::remove_file(&self.policy),
        };
        if let Err(error) = restored {
            eprintln!("install: {} could not be put back: {error}", self.policy.display());
        }
    }
}

/// Where systemd rules, a new service would start with the next boot: it is disabled.
pub(crate) fn disable_new(packages: &[&str]) {
    if !Path::new("/run/systemd/system").is_dir() {
        return;
    }
    for (_, service) in SERVICES.iter().filter(|(package, _)| packages.contains(package)) {
        let done = Command::new("systemctl").args(["disable", "--quiet", service]).status();
        if !done.is_ok_and(|status| status.success()) {
            eprintln!(
                "install: the service `{service}` could not be disabled; it may start with the next boot"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("staunch-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        folder
    }

    #[test]
    fn a_policy_is_put_back() {
        let folder = folder("policy-kept");
        let policy = folder.join("policy-rc.d");
        fs::write(&policy, "theirs").expect("write");
        let guard = hold_back(&policy).expect("held back");
        assert_eq!(fs::read_to_string(&policy).expect("read"), DENY_ALL);
        drop(guard);
        assert_eq!(fs::read_to_string(&policy).expect("read"), "theirs");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn without_a_policy_none_stays() {
        let folder = folder("policy-none");
        let policy = folder.join("policy-rc.d");
        drop(hold_back(&policy).expect("held back"));
        assert!(fs::read_dir(&folder).expect("read").next().is_none());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_policy_left_aside_is_found_again() {
        let folder = folder("policy-aside");
        let policy = folder.join("policy-rc.d");
        fs::write(&policy, "theirs").expect("write");
        std::mem::forget(hold_back(&policy).expect("held back, then interrupted"));
        drop(hold_back(&policy).expect("held back again"));
        assert_eq!(fs::read_to_string(&policy).expect("read"), "theirs");
        fs::remove_dir_all(folder).expect("removed");
    }
}
