//! Another user: found by name or number, and become for good.
//!
//! It owns the order in which root is given up, and the proof that it cannot be taken back. It must never go
//! on half way: an error means that the process has to end.

use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::unix::fs::{fchown, lchown};
use std::path::Path;
use std::{fmt, io};

use nix::errno::Errno;
use nix::unistd::{self, Gid, Group, Uid, User};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::inherited::Inherited;

/// A user and a group to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// As it was asked for.
    name: String,
    user: Uid,
    group: Gid,
    /// The name in the user database, if it has one: by it further groups are found.
    login: Option<CString>,
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// A user or group that nobody knows, or that gives up nothing. Its `Display` is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownIdentity(String);

impl fmt::Display for UnknownIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UnknownIdentity {}

/// The number of the group of this name or number.
///
/// # Errors
/// The host knows no group of that name.
pub fn group_number(text: &str) -> Result<u32, UnknownIdentity> {
    group_of(text).map(Gid::as_raw).map_err(UnknownIdentity)
}

/// Why the user could not be changed. Its `Display` is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumeError(String);

impl fmt::Display for AssumeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for AssumeError {}

impl Identity {
    /// The user of this name, such as `www-data`, `www-data:adm`, `33` or `33:4`. Without a group it is the
    /// user's own.
    ///
    /// # Errors
    /// Nobody has that name, a number without entry comes without a group, or it is root.
    pub fn find(text: &str) -> Result<Self, UnknownIdentity> {
        // A process that was upgraded may no longer read the user database, and need not.
        match Inherited::from_environment().user {
            Some((name, user, group)) if name == text => {
                Ok(Self { name, user: Uid::from_raw(user), group: Gid::from_raw(group), login: None })
            }
            _ => Self::look_up(text).map_err(UnknownIdentity),
        }
    }

    fn look_up(text: &str) -> Result<Self, String> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let unreadable = |error: Errno| format!("the user database cannot be read: {error}");
        let entry = match user.parse() {
            // Numbers need no database, which a small container does not have.
            Ok(number) => User::from_uid(Uid::from_raw(number)).unwrap_or(None),
            Err(_) => User::from_name(user).map_err(unreadable)?,
        };
        let number = match (&entry, user.parse()) {
            (Some(entry), _) => entry.uid,
            (None, Ok(number)) => Uid::from_raw(number),
            (None, Err(_)) => return Err(format!("there is no user {user} (see /etc/passwd)")),
        };
        let group = match (group, &entry) {
            (Some(group), _) => group_of(group)?,
            (None, Some(entry)) => entry.gid,
            (None, None) => {
                return Err(format!(
                    "user {user} is not in /etc/passwd, so write its group too: {user}:GROUP"
                ));
            }
        };
        if number.is_root() {
            return Err("root gives nothing up; leave `user` out to stay root".into());
        }
        let login = entry.and_then(|entry| CString::new(entry.name).ok());
        Ok(Self { name: text.into(), user: number, group, login })
    }

    /// Becomes this user for good, without any capability, and makes sure of it. Call it before any other
    /// thread is started.
    ///
    /// # Errors
    /// Only root can become somebody else. After an error end the process.
    pub fn assume(&self) -> Result<(), AssumeError> {
        if !self.is_assumed() {
            if !Uid::effective().is_root() {
                let own = Uid::effective();
                return Err(AssumeError(format!(
                    "only root can become user {}, this is user {own}: start as root, or start as that user \
                     (sudo -u, systemd's User=) and leave --user out",
                    self.name
                )));
            }
            self.change().map_err(|error| self.failed("cannot become", &error.to_string()))?;
        }
        give_up_the_rest().map_err(|error| self.failed("cannot give up the privileges kept as", &error))?;
        self.prove().map_err(|why| self.failed("did not become for good", why))
    }

    /// Gives a file or a folder to this user, and to its group. A link is given itself, not what it leads
    /// to.
    ///
    /// # Errors
    /// Those of lchown(2).
    pub fn give(&self, path: &Path) -> io::Result<()> {
        lchown(path, Some(self.user.as_raw()), Some(self.group.as_raw()))
    }

    /// Gives a file or folder that is open to this user, and to its group.
    ///
    /// # Errors
    /// Those of fchown(2).
    pub fn give_open(&self, file: impl AsFd) -> io::Result<()> {
        fchown(file, Some(self.user.as_raw()), Some(self.group.as_raw()))
    }

    /// Gives a socket that this process has made to this user: others of the same user may then listen at its
    /// address beside it (SO_REUSEPORT, socket(7)).
    ///
    /// # Errors
    /// Those of fchown(2).
    pub fn give_socket(&self, socket: impl AsFd) -> io::Result<()> {
        if self.is_assumed() {
            return Ok(());
        }
        fchown(socket, Some(self.user.as_raw()), Some(self.group.as_raw()))
    }

    /// The user as it was named, and the numbers of user and group.
    pub(crate) fn to_hand_on(&self) -> (String, u32, u32) {
        (self.name.clone(), self.user.as_raw(), self.group.as_raw())
    }

    fn failed(&self, what: &str, why: &str) -> AssumeError {
        AssumeError(format!("{what} user {}: {why}", self.name))
    }

    fn is_assumed(&self) -> bool {
        let users = unistd::getresuid().map(|ids| [ids.real, ids.effective, ids.saved]);
        let groups = unistd::getresgid().map(|ids| [ids.real, ids.effective, ids.saved]);
        users == Ok([self.user; 3]) && groups == Ok([self.group; 3])
    }

    /// Groups first: who is no longer root can change nothing more.
    fn change(&self) -> nix::Result<()> {
        match &self.login {
            Some(login) => unistd::initgroups(login, self.group)?,
            None => unistd::setgroups(&[self.group])?,
        }
        unistd::setresgid(self.group, self.group, self.group)?;
        unistd::setresuid(self.user, self.user, self.user)
    }

    /// Looks whether there is a way back.
    fn prove(&self) -> Result<(), &'static str> {
        let root = Uid::from_raw(0);
        let capabilities = rustix::thread::capabilities(None).map_err(|_| "capabilities cannot be read")?;
        match () {
            () if !self.is_assumed() => Err("the old user or group is kept"),
            () if unistd::setresuid(root, root, root).is_ok() => Err("root can be had back"),
            () if capabilities != NONE => Err("capabilities are left"),
            () if !rustix::thread::no_new_privs().unwrap_or(false) => Err("programs could gain privileges"),
            () => Ok(()),
        }
    }
}

const NONE: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Capabilities, what a program could gain them by, and the right of others of this user to look inside.
fn give_up_the_rest() -> Result<(), String> {
    let told = |error: rustix::io::Errno| error.to_string();
    rustix::thread::set_capabilities(None, NONE).map_err(told)?;
    rustix::thread::set_no_new_privs(true).map_err(told)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(told)
}

fn group_of(group: &str) -> Result<Gid, String> {
    if let Ok(number) = group.parse() {
        return Ok(Gid::from_raw(number));
    }
    match Group::from_name(group) {
        Ok(Some(entry)) => Ok(entry.gid),
        Ok(None) => Err(format!("there is no group {group} (see /etc/group)")),
        Err(error) => Err(format!("the group database cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let nobody = Identity::find("nobody").unwrap();
        assert_eq!(nobody.user.as_raw(), 65534);
        let by_number = Identity::find("65534").unwrap();
        assert_eq!((by_number.user, by_number.group), (nobody.user, nobody.group));
        assert_eq!(Identity::find("nobody:root").unwrap().group.as_raw(), 0);
        assert_eq!(Identity::find("nobody:17").unwrap().group.as_raw(), 17);
        let unlisted = Identity::find("4000000:4000001").unwrap();
        assert_eq!((unlisted.user.as_raw(), unlisted.group.as_raw()), (4_000_000, 4_000_001));
    }

    #[test]
    fn groups_are_found_by_name_and_number() {
        assert_eq!(group_number("root"), Ok(0));
        assert_eq!(group_number("4000001"), Ok(4_000_001));
        assert!(group_number("nosuchgroup").unwrap_err().to_string().contains("no group nosuchgroup"));
    }

    #[test]
    fn who_cannot_be_is_refused_by_name() {
        let table = [
            ("nosuchuser", "there is no user nosuchuser"),
            ("nobody:nosuchgroup", "there is no group nosuchgroup"),
            ("4000000", "4000000:GROUP"),
            ("root", "gives nothing up"),
            ("0:0", "gives nothing up"),
            ("", "there is no user"),
        ];
        for (text, expected) in table {
            let error = Identity::find(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
