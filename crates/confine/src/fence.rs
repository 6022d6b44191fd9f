//! The fence around files, the network and other processes (Landlock).
//!
//! It owns what the server itself needs beside what it serves: its own program and libraries, for an upgrade,
//! and what the kernel tells. It must never be raised twice with the same rules: the kernel allows sixteen.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::inherited::Inherited;
use crate::paths::Paths;

/// The newest version whose restrictions are all wanted. Later ones keep sockets of the service manager away.
const NEWEST: ABI = ABI::V7;

/// The version that can do all that is asked for: files (1 to 5), the network (4), signals (6).
const WHOLE: i32 = 6;

/// What the kernel tells: about the machine, this process and its group. Of other processes it tells their
/// names; their memory and environment need a right that a confined process does not have over them. Not the
/// process's own folder alone, because its name changes in an upgrade.
const SYSTEM: &[&str] = &["/proc", "/sys/fs/cgroup", "/sys/devices/system", "/etc/ld.so.cache"];

/// By what the names of addresses are known to this machine, since those to listen at are looked up again
/// with new settings. Other machines are not asked.
const NAMES: &[&str] = &["/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/resolv.conf"];

const READ: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{ReadFile | ReadDir});
const RUN: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{ReadFile | Execute});
const WRITE: BitFlags<AccessFs> =
    landlock::make_bitflags!(AccessFs::{ReadFile | ReadDir | WriteFile | Truncate | MakeReg | RemoveFile});
/// Rights to a folder in which files are kept: folders may be made, too.
const STORE: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | RemoveFile | MakeDir
});
const SOCKET: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{MakeSock | RemoveFile});
/// What is done with a device from which connections are taken.
const DEVICE: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{ReadFile | IoctlDev});
const SINK: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{ReadFile | WriteFile});

/// A fence that stands.
pub(crate) struct Fence {
    /// Version of the kernel's Landlock.
    pub(crate) abi: String,
    /// Of its rules.
    pub(crate) digest: u64,
}

impl Fence {
    /// Whether everything asked for is confined.
    ///
    /// # Errors
    /// What is not, in words.
    pub(crate) fn is_whole(&self) -> Result<(), String> {
        match self.abi.parse::<i32>() {
            Ok(abi) if abi < WHOLE => Err(format!(
                "Landlock of this kernel (ABI {abi}) cannot confine all of files, network and signals \
                 (ABI {WHOLE}, Linux 6.12)"
            )),
            _ => Ok(()),
        }
    }
}

/// The rules in full.
struct Rules<'a> {
    paths: &'a Paths,
    run: BTreeSet<PathBuf>,
}

/// Raises the fence, unless this process was born within it.
///
/// # Errors
/// Why there is none, in words.
pub(crate) fn raise(paths: &Paths, inherited: &Inherited) -> Result<Fence, String> {
    let rules = Rules { paths, run: programs() };
    let digest = rules.digest();
    if let Some((abi, before)) = &inherited.fence
        && *before == digest
        && stands(paths)
    {
        return Ok(Fence { abi: abi.clone(), digest });
    }
    let status = rules.enforce().map_err(|error| format!("Landlock: {}", innermost(&error)))?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi }
            if status.ruleset != RulesetStatus::NotEnforced =>
        {
            let abi = kernel_abi.map_or_else(|| effective_abi.to_string(), |abi| abi.to_string());
            Ok(Fence { abi, digest })
        }
        LandlockStatus::NotEnabled => {
            Err("Landlock is switched off in this kernel (its parameter lsm= leaves it out)".into())
        }
        _ => Err("this kernel has no Landlock, or a container's filter hides it (Linux 5.13, \
                  CONFIG_SECURITY_LANDLOCK)"
            .into()),
    }
}

/// Raises the fence of a process that asks others and serves nobody: it reads these files and folders, writes
/// within one folder at most, and may connect.
///
/// # Errors
/// Why there is none, or what it leaves open, in words.
pub(crate) fn raise_for_client(read: &BTreeSet<PathBuf>, write: Option<&Path>) -> Result<(), String> {
    let enforce = || -> Result<RestrictionStatus, RulesetError> {
        Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::BindTcp)?
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rules(path_beneath_rules(read, READ))?
            .add_rules(path_beneath_rules(write, STORE))?
            .add_rules(path_beneath_rules(programs(), RUN))?
            .add_rules(path_beneath_rules(SYSTEM.iter().chain(NAMES), READ))?
            .add_rules(path_beneath_rules(["/dev/null"], SINK))?
            .restrict_self()
    };
    let status = enforce().map_err(|error| format!("Landlock: {}", innermost(&error)))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock, or it is switched off".into()),
        _ => Ok(()),
    }
}

/// Whether the kernel can confine files, network and signals, all of them.
///
/// # Errors
/// Restrictions that cannot be had, in words.
pub(crate) fn can_be_whole() -> Result<(), String> {
    let asked = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let asked = asked.handle_access(AccessFs::from_all(ABI::V6)).and_then(|set| set.scope(Scope::Signal));
    asked.map(drop).map_err(|error| format!("Landlock: {}", innermost(&error)))
}

impl Rules<'_> {
    /// Files are what was asked for, and what an upgrade runs. Connecting is forbidden, since a server of
    /// files calls nobody, but to the ports of applications. Binding is left free, since addresses may be
    /// added later.
    fn enforce(&self) -> Result<RestrictionStatus, RulesetError> {
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::ConnectTcp)?;
        // A service manager may listen at an abstract name, outside of the fence.
        let manager = std::env::var_os("NOTIFY_SOCKET").unwrap_or_default();
        let abstract_manager = manager.as_bytes().starts_with(b"@");
        let ruleset = match abstract_manager {
            true => ruleset.scope(Scope::Signal)?,
            false => ruleset.scope(Scope::from_all(NEWEST))?,
        };
        ruleset
            .create()?
            .add_rules(path_beneath_rules(&self.paths.read, READ))?
            .add_rules(path_beneath_rules(&self.paths.write, WRITE))?
            .add_rules(path_beneath_rules(&self.paths.sockets, SOCKET))?
            .add_rules(path_beneath_rules(&self.run, RUN))?
            .add_rules(path_beneath_rules(SYSTEM.iter().chain(NAMES), READ))?
            .add_rules(path_beneath_rules(["/dev/null"], SINK))?
            .add_rules(path_beneath_rules(&self.paths.devices, DEVICE))?
            .add_rules(
                self.paths
                    .ports
                    .iter()
                    .map(|port| Ok::<NetPort, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp))),
            )?
            .restrict_self()
    }

    fn digest(&self) -> u64 {
        let Self { paths: Paths { read, write, sockets, devices, ports, .. }, run } = self;
        xxh3_64(
            format!(
                "{NEWEST} {read:?} {write:?} {sockets:?} {devices:?} {ports:?} {run:?} {SYSTEM:?} {NAMES:?}"
            )
            .as_bytes(),
        )
    }
}

/// The folders of this program and of the libraries it has loaded, the loader included.
fn programs() -> BTreeSet<PathBuf> {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let libraries = maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let start = line.iter().position(|byte| *byte == b'/')?;
        let is_code = line.split(|byte| *byte == b' ').nth(1).is_some_and(|rights| rights.contains(&b'x'));
        is_code.then(|| PathBuf::from(OsStr::from_bytes(&line[start..])))
    });
    let own = std::env::current_exe().ok();
    libraries.chain(own).filter_map(|file| file.parent().map(Path::to_path_buf)).collect()
}

/// Whether files are fenced, seen by one that is open to everybody else.
fn stands(paths: &Paths) -> bool {
    let everything = Path::new("/");
    paths.read.contains(everything)
        || std::fs::read_dir(everything).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// The last cause of an error, which is the system's word.
fn innermost(error: &RulesetError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
