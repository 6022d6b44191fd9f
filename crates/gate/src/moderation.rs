//! How often an interface's packets are taken while a flood or a large crowd comes, or people wait anyhow.
//!
//! Each look costs the kernel a wake-up, whatever has come: `c0` in `c(b) = c1 + c0/b` (docs/overload.md). So
//! while too many come the next look is put off until many have, by `gro_flush_timeout` and
//! `napi_defer_hard_irqs` (Linux 5.8; Documentation/networking/napi.rst, software IRQ coalescing).
//!
//! It owns these two settings of an interface while it has changed them, and puts them back; who is killed
//! leaves a record, and the next one puts them back. It must never look more often than was set before.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use staunch_netio::host::route::{self, Link};

/// A veth has place for 256 frames, cards for as many and more, and a flood comes in bursts.
const FRAMES: f64 = 100.0;
/// A delay that is longer by less than this, or shorter by less than that, is not worth a system call.
const LONGER: f64 = 1.5;
const SHORTER: f64 = 0.9;

/// The settings of one interface. Dropping puts back what was changed.
#[derive(Debug)]
pub(crate) struct Moderation {
    /// Open since the start, so that a new name of the interface does not matter.
    files: [File; 2],
    longest: Duration,
    record: PathBuf,
    /// Number and address: another interface of this name has other settings.
    identity: String,
    /// What it was, while it is something else.
    before: Option<Pace>,
    now: Pace,
    /// How many frames a second came when this was asked last.
    came_per_s: Option<f64>,
}

/// When the kernel looks again after it has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pace {
    /// `gro_flush_timeout`, in nanoseconds.
    timeout_ns: u64,
    /// `napi_defer_hard_irqs`: after so many looks in vain it waits for an interrupt; 0: it always does.
    deferred: u64,
}

impl Moderation {
    /// Takes the settings of an interface, and puts back what a killed process has left in its record. A look
    /// is never put off for longer than `longest`; nothing is taken where that is zero.
    ///
    /// # Errors
    /// In words: the settings are not there, or may not be changed.
    pub(crate) fn of(name: &str, longest: Duration, record: PathBuf) -> Result<Option<Self>, String> {
        if longest.is_zero() && !record.exists() {
            return Ok(None);
        }
        let link = route::link(name).map_err(|error| lost(name, &error))?;
        let files = open(name, &link).map_err(|error| lost(name, &error))?;
        let identity = format!("{} {}", link.index, address(&link).unwrap_or_default());
        let now = Pace { timeout_ns: 0, deferred: 0 };
        let mut moderation = Self { longest, record, identity, before: None, now, came_per_s: None, files };
        moderation.begin().map_err(|error| lost(name, &error))?;
        Ok((!longest.is_zero()).then_some(moderation))
    }

    fn begin(&mut self) -> io::Result<()> {
        self.now = self.read()?;
        let Ok(record) = fs::read_to_string(&self.record) else { return Ok(()) };
        self.before = record.strip_suffix(&self.identity).and_then(Pace::parse);
        // What is not of this interface is of none: its name is taken.
        if self.before.is_some() { self.put_back() } else { fs::remove_file(&self.record) }
    }

    /// So many frames come a second, while too many do; to be asked a few times a second. The higher of two
    /// rates counts, for a flood that has just begun seems smaller than it is, and a ring that runs over
    /// loses clients. Says whether looks are put off from now on, or no longer are.
    ///
    /// # Errors
    /// What the kernel says. All is as it was before then, if it can be.
    pub(crate) fn pace(&mut self, rush_per_s: Option<f64>) -> io::Result<bool> {
        let had_begun = self.before.is_some();
        let result = match (rush_per_s, self.came_per_s) {
            (Some(per_s), Some(before)) => self.put_off(per_s.max(before)),
            (Some(_), None) => Ok(()),
            (None, _) => self.put_back(),
        };
        self.came_per_s = rush_per_s;
        if result.is_err() {
            // The first error is told.
            let _ = self.put_back();
        }
        result.map(|()| had_begun != self.before.is_some())
    }

    /// For how long looks are put off, while they are.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.before.map(|_| Duration::from_nanos(self.now.timeout_ns))
    }

    fn put_off(&mut self, per_s: f64) -> io::Result<()> {
        let before = self.before.unwrap_or(self.now);
        let pace = before.slower(per_s, self.longest);
        if !self.now.gives_way_to(pace) {
            return Ok(());
        }
        if pace == before {
            return self.put_back();
        }
        if self.before.is_none() {
            self.keep_record(before)?;
            self.before = Some(before);
        }
        self.write(pace)
    }

    fn put_back(&mut self) -> io::Result<()> {
        let Some(before) = self.before else { return Ok(()) };
        // An interface that is gone took its settings along.
        let is_gone = |error: &io::Error| error.raw_os_error() == Some(Errno::NODEV.raw_os_error());
        self.write(before).or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })?;
        self.before = None;
        fs::remove_file(&self.record)
    }

    fn keep_record(&self, pace: Pace) -> io::Result<()> {
        self.record.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&self.record, format!("{} {} {}", pace.timeout_ns, pace.deferred, self.identity))
    }

    fn read(&self) -> io::Result<Pace> {
        let [timeout_ns, deferred] = [number(&self.files[0])?, number(&self.files[1])?];
        Ok(Pace { timeout_ns, deferred })
    }

    fn write(&mut self, pace: Pace) -> io::Result<()> {
        for (file, value) in self.files.iter().zip([pace.timeout_ns, pace.deferred]) {
            file.write_all_at(value.to_string().as_bytes(), 0)?;
        }
        self.now = pace;
        Ok(())
    }
}

impl Drop for Moderation {
    fn drop(&mut self) {
        // The interface may be gone, and its settings with it.
        let _ = self.put_back();
    }
}

impl Pace {
    /// Slow enough for many frames to come, unless it is already.
    fn slower(self, per_s: f64, longest: Duration) -> Self {
        let wanted_ns = (FRAMES / per_s.max(1.0) * 1e9).min(longest.as_nanos() as f64) as u64;
        if wanted_ns <= self.delay_ns() {
            return self;
        }
        Self { timeout_ns: wanted_ns, deferred: self.deferred.max(1) }
    }

    /// A shorter delay is needed sooner than a longer one is worth it.
    fn gives_way_to(self, other: Self) -> bool {
        let (now_ns, then_ns) = (self.delay_ns() as f64, other.delay_ns() as f64);
        then_ns < now_ns * SHORTER || then_ns > now_ns * LONGER
    }

    /// The timeout alone puts nothing off.
    fn delay_ns(self) -> u64 {
        if self.deferred == 0 { 0 } else { self.timeout_ns }
    }

    fn parse(text: &str) -> Option<Self> {
        let (timeout_ns, deferred) = text.trim().split_once(' ')?;
        Some(Self { timeout_ns: timeout_ns.parse().ok()?, deferred: deferred.parse().ok()? })
    }
}

/// Opens both settings. Where sysfs cannot be used, because it is another network namespace's or may not be
/// written, one of our own is mounted nowhere (Linux 5.2, CAP_SYS_ADMIN).
fn open(name: &str, link: &Link) -> io::Result<[File; 2]> {
    settings(Path::new("/sys"), name, link).or_else(|error| {
        let own = own_sysfs().map_err(|_| error)?;
        settings(&Path::new("/proc/self/fd").join(own.as_raw_fd().to_string()), name, link)
    })
}

fn own_sysfs() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// Those of this very interface: another namespace may have one of its name.
fn settings(sysfs: &Path, name: &str, link: &Link) -> io::Result<[File; 2]> {
    let folder = sysfs.join("class/net").join(name);
    let shown = |what: &str| fs::read_to_string(folder.join(what)).map(|text| text.trim().to_owned());
    let is_it = shown("ifindex")? == link.index.to_string()
        && address(link).is_none_or(|address| shown("address").is_ok_and(|shown| shown == address));
    if !is_it {
        return Err(io::Error::other("sysfs is another network namespace's"));
    }
    let setting = |what: &str| File::options().read(true).write(true).open(folder.join(what));
    Ok([setting("gro_flush_timeout")?, setting("napi_defer_hard_irqs")?])
}

fn address(link: &Link) -> Option<String> {
    link.address.map(|bytes| bytes.map(|byte| format!("{byte:02x}")).join(":"))
}

fn number(file: &File) -> io::Result<u64> {
    let mut text = [0; 24];
    let length = file.read_at(&mut text, 0)?;
    let number = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no number"))
}

fn lost(name: &str, error: &io::Error) -> String {
    format!("gro_flush_timeout of {name}: {error}; under load its packets are taken as often as ever")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(500);

    #[test]
    fn a_look_waits_for_many_but_not_for_long() {
        let after = |timeout_ns, deferred, per_s| {
            let slower = Pace { timeout_ns, deferred }.slower(per_s, LONGEST);
            (slower.timeout_ns, slower.deferred)
        };
        // No interrupt is put off, so a timeout says nothing.
        assert_eq!(after(0, 0, 200e3), (500_000, 1));
        assert_eq!(after(20_000, 0, 400e3), (250_000, 1));
        assert_eq!(after(20_000, 0, 0.0), (500_000, 1));
        // Already as slow, or slower.
        assert_eq!(after(125_000, 200, 200e3), (500_000, 200));
        assert_eq!(after(125_000, 200, 1e6), (125_000, 200));
        assert_eq!(after(900_000, 1, 200e3), (900_000, 1));
    }

    #[test]
    fn a_faster_flood_is_followed_at_once() {
        let after = |now_ns, then_ns| {
            let [now, then] = [now_ns, then_ns].map(|timeout_ns| Pace { timeout_ns, deferred: 1 });
            now.gives_way_to(then)
        };
        assert!(after(181_000, 125_000) && after(0, 500_000) && after(125_000, 190_000));
        assert!(!after(125_000, 125_000) && !after(125_000, 181_000) && !after(500_000, 483_000));
    }

    #[test]
    fn a_record_says_what_was_before() {
        assert_eq!(Pace::parse("125000 200 "), Some(Pace { timeout_ns: 125_000, deferred: 200 }));
        for text in ["", "1", "1 2 3", "x 1", "-1 1"] {
            assert_eq!(Pace::parse(text), None, "{text}");
        }
    }
}
