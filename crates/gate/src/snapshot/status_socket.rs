//! The Unix socket where viewers get snapshots: one at once, then one a second, each a line of JSON.
//!
//! There is a socket for each interface, named after it, so that a viewer need not know the daemon. The
//! daemon must never wait for it: a viewer that reads too slowly is cut off.

use std::fs::{self, Permissions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use staunch_netio::clock;

use super::seats::Seats;
use super::{Board, Snapshot};

const FOLDER: &str = "/run/staunch";
/// Between two lines.
const STEP: Duration = Duration::from_secs(1);
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(3);
/// Anybody of this host may look: there are counts, and nobody's address.
const MODE: u32 = 0o666;

/// Why there is no socket.
#[derive(Debug)]
pub enum StatusSocketError {
    /// Another gate answers there, which is said in a sentence.
    Taken(String),
    /// The socket cannot be made, which is said in a sentence: nobody can look.
    Unusable(String),
}

/// The socket of an interface, which answers once it is opened. Dropping it removes the socket.
#[derive(Debug)]
pub struct StatusSocket {
    path: PathBuf,
    listener: Option<UnixListener>,
}

impl StatusSocket {
    /// Takes the place for an interface. Starts no thread.
    ///
    /// # Errors
    /// A daemon is there already, or the socket cannot be made.
    pub fn new(interface: &str) -> Result<Self, StatusSocketError> {
        let path = path(interface, is_first_namespace());
        let said = |error: io::Error| {
            StatusSocketError::Unusable(format!(
                "{}: {error}; `staunch gate status` will not work",
                path.display()
            ))
        };
        fs::create_dir_all(FOLDER).map_err(said)?;
        if UnixStream::connect(&path).is_ok() {
            let text = format!("another gate protects {interface}: it answers at {}", path.display());
            return Err(StatusSocketError::Taken(text));
        }
        // What a daemon left that was killed.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(said)?;
        fs::set_permissions(&path, Permissions::from_mode(MODE)).map_err(said)?;
        Ok(Self { path, listener: Some(listener) })
    }

    /// Lets people look at the board from now on.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(&mut self, board: &Board) -> io::Result<()> {
        let (listener, board) = (self.listener.take(), board.clone());
        let accept = move || listener.iter().for_each(|listener| accept(listener, &board));
        thread::Builder::new().name("gate-status".into()).spawn(accept)?;
        Ok(())
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, board: &Board) {
    let seats = Arc::new(Mutex::new(Seats::new()));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            clock::pause(STEP);
            continue;
        };
        let Some(number) = seat(&seats, &stream) else { continue };
        let (board, seen_off) = (board.clone(), Arc::clone(&seats));
        let tell = move || {
            // A viewer that goes away is the usual end.
            let _ = tell(stream, &board);
            lock(&seen_off).give_back(number);
        };
        if thread::Builder::new().name("gate-view".into()).spawn(tell).is_err() {
            lock(&seats).give_back(number);
        }
    }
}

/// A seat for who looks by this socket, which another may have to leave for it.
fn seat(seats: &Mutex<Seats<UnixStream>>, stream: &UnixStream) -> Option<u64> {
    // A user the kernel does not name has seats like any other.
    let user = socket_peercred(stream).map_or(u32::MAX, |peer| peer.uid.as_raw());
    let (number, leaves) = lock(seats).take(user, stream.try_clone().ok()?)?;
    if let Some(stream) = leaves {
        // Its thread sees the end.
        let _ = stream.shutdown(Shutdown::Both);
    }
    Some(number)
}

fn lock(seats: &Mutex<Seats<UnixStream>>) -> std::sync::MutexGuard<'_, Seats<UnixStream>> {
    seats.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(mut stream: UnixStream, board: &Board) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(STEP))?;
    loop {
        let mut line = serde_json::to_vec(&board.latest())?;
        line.push(b'\n');
        stream.write_all(&line)?;
        // Nothing is expected: it waits for a second, or until the other side is gone.
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Err(error) if !is_over(&error) => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Whether a time to wait is over.
fn is_over(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The latest snapshot of the daemon at an interface; of the first there is, when none is named.
///
/// # Errors
/// In a sentence: none is there.
pub fn ask(interface: Option<&str>) -> Result<Snapshot, String> {
    let mut latest = None;
    follow(interface, |snapshot| {
        latest = Some(snapshot);
        false
    })?;
    latest.ok_or_else(|| "the gate said nothing".to_owned())
}

/// Gives each snapshot, one a second, until `more` says no or the daemon ends.
///
/// # Errors
/// As for [`ask`].
pub fn follow(interface: Option<&str>, more: impl FnMut(Snapshot) -> bool) -> Result<(), String> {
    let of = interface.map(|interface| format!(" for {interface}")).unwrap_or_default();
    let path = find(interface).ok_or_else(|| {
        format!("no gate answers{of} in {FOLDER}; is `staunch gate` running, in this network namespace?")
    })?;
    read(&path, more)
}

fn read(path: &Path, mut more: impl FnMut(Snapshot) -> bool) -> Result<(), String> {
    let said = |error: io::Error| format!("{}: {error}", path.display());
    let stream = UnixStream::connect(path).map_err(said)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(said)?;
    let mut lines = BufReader::new(stream).lines().peekable();
    if lines.peek().is_none() {
        return Err(format!("{}: the gate has no place for one more who looks", path.display()));
    }
    for line in lines {
        let line = line.map_err(said)?;
        let snapshot = serde_json::from_str(&line)
            .map_err(|error| format!("{}: no figures of this version of staunch: {error}", path.display()))?;
        if !more(snapshot) {
            return Ok(());
        }
    }
    Ok(())
}

/// The first process's network namespace needs no number in the name; others may have interfaces of the same
/// names, and share the folder.
fn path(interface: &str, is_first: bool) -> PathBuf {
    let name = match namespace() {
        Some(inode) if !is_first => format!("gate-{interface}@{inode}.sock"),
        _ => format!("gate-{interface}.sock"),
    };
    Path::new(FOLDER).join(name)
}

/// Where it is kept what the settings of an interface were before the gate changed them.
pub(crate) fn record(interface: &str) -> PathBuf {
    path(interface, is_first_namespace()).with_extension("before")
}

/// The socket of a gate of this network namespace, which is known by what it says: its name may not tell.
fn find(interface: Option<&str>) -> Option<PathBuf> {
    let is_asked_for = |name: &str| {
        let name = name.strip_prefix("gate-").and_then(|name| name.strip_suffix(".sock"));
        let name = name.map(|name| name.rsplit_once('@').map_or(name, |(name, _)| name));
        name.is_some_and(|name| interface.is_none_or(|interface| interface == name))
    };
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_asked_for));
    let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().find(|path| {
        let mut is_here = false;
        let answered = read(path, |snapshot| {
            is_here = Some(snapshot.network_namespace) == namespace();
            false
        });
        // What cannot be understood is shown to whoever asked, not passed over.
        is_here || (interface.is_some() && answered.is_err() && UnixStream::connect(path).is_ok())
    })
}

/// Inode of the network namespace of this process.
pub(crate) fn namespace() -> Option<u64> {
    Some(fs::metadata("/proc/self/ns/net").ok()?.ino())
}

/// Whether it is that of the first process; not if one may not know.
fn is_first_namespace() -> bool {
    fs::metadata("/proc/1/ns/net").is_ok_and(|first| Some(first.ino()) == namespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_namespaces_apart() {
        let here = namespace().unwrap();
        assert_eq!(path("eth0", true), Path::new("/run/staunch/gate-eth0.sock"));
        assert_eq!(path("eth0", false), PathBuf::from(format!("/run/staunch/gate-eth0@{here}.sock")));
        assert!(ask(Some("no-such-interface")).is_err_and(|text| text.contains("is `staunch gate` running")));
    }

    #[test]
    fn who_looks_gets_a_line_at_once() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let board = Board::default();
        board.set(Snapshot { process_id: 7, ..Snapshot::default() });
        let teller = thread::spawn(move || tell(theirs, &board));
        let line = BufReader::new(ours).lines().next().unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&line).unwrap().process_id, 7);
        // The reader is gone by now.
        assert!(teller.join().unwrap().is_ok());
    }
}
