//! Reads parts of files in threads that may wait for a disk or for a server behind a mount, so that no worker
//! does.
//!
//! It owns a few threads for the process, started as they are needed, and the line of what is to be read. It
//! must never touch a socket or a connection, and a device that hangs must never hold more than its share of
//! the threads. Order of calls: a backend makes one [`Warmed`]; for each range `ask`; after the waker was
//! used, `take` tells which requests are done. A request that fails is done too.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use rustix::io::Errno;

use crate::file_stamp::has_changed;
use crate::outgoing::FilePart;
use crate::wake::Waker;

/// Requests that may wait for one device; beyond, `ask` refuses and the backend asks again a little later.
const REQUESTS_WAITING_MAX: usize = 1024;

/// Devices that may have requests waiting: a server's mounts, and few enough that the line stays short.
const DEVICES_MAX: usize = 64;

/// Threads of the process: each that waits costs a stack of which some KiB are touched.
const THREADS_MAX: usize = 32;

/// Threads that one device may hold: enough that a disk has something to reorder, and that seven devices
/// which hang leave some to an eighth.
const THREADS_A_DEVICE_MAX: usize = 4;

/// A thread's stack: it calls the kernel, and little else.
const STACK_BYTES: usize = 128 * 1024;

/// How many bytes a thread reads at a time, to throw away.
const SCRATCH_BYTES: usize = 256 * 1024;

const _: () = assert!(THREADS_A_DEVICE_MAX * 8 <= THREADS_MAX);

/// What is wanted of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColdRead {
    /// That its pages are in memory afterwards, where the worker finds them.
    Pages,
    /// The bytes themselves: where nothing tells whether a read would wait, the worker must not read.
    Bytes,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) token: u64,
    /// The bytes, of the version that was announced, if they were asked for; else an `errno`.
    pub(crate) read: Option<Result<Vec<u8>, i32>>,
}

/// Requests of a backend that the warming thread has done.
#[derive(Debug)]
pub(crate) struct Warmed {
    done: Mutex<Vec<Done>>,
    waker: Waker,
}

impl Warmed {
    /// An empty list; `waker` is used when something is put into it.
    pub(crate) fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self { done: Mutex::new(Vec::new()), waker })
    }

    /// Takes all requests done since the last call.
    pub(crate) fn take(&self) -> Vec<Done> {
        mem::take(&mut *self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn put(&self, done: Done) {
        self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(done);
        self.waker.wake();
    }
}

/// Asks for a range of a part, counted from the file's beginning; it comes out of `home` afterwards. `false`
/// if too many wait already or no thread can be had: nothing comes then.
pub(crate) fn ask(
    home: &Arc<Warmed>,
    token: u64,
    part: &FilePart,
    (offset, length): (u64, u64),
    wanted: ColdRead,
) -> bool {
    let request = Request { home: Arc::clone(home), token, part: part.clone(), offset, length, wanted };
    READERS.ask(request)
}

struct Request {
    home: Arc<Warmed>,
    token: u64,
    part: FilePart,
    offset: u64,
    length: u64,
    wanted: ColdRead,
}

/// All threads, and what waits for them.
struct Readers {
    line: Mutex<Line>,
    comes: Condvar,
}

static READERS: Readers = Readers { line: Mutex::new(Line::EMPTY), comes: Condvar::new() };

/// What waits, by device, and who is at work.
struct Line {
    /// Devices with requests that wait, in turn.
    turns: VecDeque<u64>,
    waiting: BTreeMap<u64, VecDeque<Request>>,
    /// How many threads read from a device.
    busy: BTreeMap<u64, usize>,
    threads: usize,
    /// Threads that wait for a request, and have not seen those put into the line since they were woken.
    idle: usize,
}

impl Line {
    const EMPTY: Self =
        Self { turns: VecDeque::new(), waiting: BTreeMap::new(), busy: BTreeMap::new(), threads: 0, idle: 0 };

    fn busy_at(&self, device: u64) -> usize {
        self.busy.get(&device).copied().unwrap_or(0)
    }

    /// Puts a request at the end of its device's line. `false` if that is full.
    fn put(&mut self, request: Request) -> bool {
        let device = request.part.stamp.device;
        if !self.waiting.contains_key(&device) {
            if self.waiting.len() >= DEVICES_MAX {
                return false;
            }
            self.turns.push_back(device);
        }
        let waiting = self.waiting.entry(device).or_default();
        if waiting.len() >= REQUESTS_WAITING_MAX {
            return false;
        }
        waiting.push_back(request);
        true
    }

    /// The next request of the device whose turn it is, among those that hold less than their share.
    fn next(&mut self) -> Option<Request> {
        let turn = self.turns.iter().position(|device| self.busy_at(*device) < THREADS_A_DEVICE_MAX)?;
        let device = self.turns.remove(turn)?;
        let waiting = self.waiting.get_mut(&device)?;
        let request = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&device);
        } else {
            self.turns.push_back(device);
        }
        *self.busy.entry(device).or_default() += 1;
        request
    }

    fn end(&mut self, device: u64) {
        if let Some(busy) = self.busy.get_mut(&device) {
            *busy -= 1;
            if *busy == 0 {
                self.busy.remove(&device);
            }
        }
    }
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn ask(&'static self, request: Request) -> bool {
        let mut line = self.lock();
        let has_share = line.busy_at(request.part.stamp.device) < THREADS_A_DEVICE_MAX;
        let waiting = line.waiting.values().map(VecDeque::len).sum::<usize>();
        if has_share && line.idle <= waiting && line.threads < THREADS_MAX {
            let thread = std::thread::Builder::new().name("warming".into()).stack_size(STACK_BYTES);
            line.threads += usize::from(thread.spawn(move || self.serve()).is_ok());
        }
        let taken = line.threads > 0 && line.put(request);
        drop(line);
        if taken {
            self.comes.notify_one();
        }
        taken
    }

    fn serve(&self) {
        let mut scratch = Vec::new();
        let mut line = self.lock();
        loop {
            let Some(request) = line.next() else {
                line.idle += 1;
                line = self.comes.wait(line).unwrap_or_else(|poisoned| poisoned.into_inner());
                line.idle -= 1;
                continue;
            };
            drop(line);
            let device = request.part.stamp.device;
            carry_out(request, &mut scratch);
            line = self.lock();
            line.end(device);
        }
    }
}

/// Reads, and tells. The file is let go of before: closing it may wait for a server too.
fn carry_out(request: Request, scratch: &mut Vec<u8>) {
    let Request { home, token, part, offset, length, wanted } = request;
    let read = match wanted {
        ColdRead::Pages => {
            read_through(&part.file, offset, length, scratch);
            None
        }
        ColdRead::Bytes => Some(read_bytes(&part, offset, length)),
    };
    drop(part);
    home.put(Done { token, read });
}

fn read_through(file: &OwnedFd, mut offset: u64, length: u64, scratch: &mut Vec<u8>) {
    scratch.resize(SCRATCH_BYTES, 0);
    let end = offset.saturating_add(length);
    while offset < end {
        let wanted = scratch.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
        match rustix::io::pread(file, &mut scratch[..wanted], offset) {
            Ok(0) | Err(_) => return,
            Ok(count) => offset += count as u64,
        }
    }
}

/// Some bytes of the version that was announced. In this order: a writer changes the stamp before it changes
/// a byte, so bytes read before the stamp was found unchanged are bytes of that version.
fn read_bytes(part: &FilePart, offset: u64, length: u64) -> Result<Vec<u8>, i32> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    let count = loop {
        match rustix::io::pread(&*part.file, &mut bytes[..], offset) {
            Err(Errno::INTR) => {}
            outcome => break outcome.map_err(Errno::raw_os_error)?,
        }
    };
    if count == 0 || has_changed(part).map_err(Errno::raw_os_error)? {
        return Err(Errno::STALE.raw_os_error());
    }
    bytes.truncate(count);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_stamp::stamp;

    fn part(path: &str, device: Option<u64>) -> FilePart {
        let file = Arc::new(OwnedFd::from(std::fs::File::open(path).unwrap()));
        let mut stamp = stamp(&*file).unwrap();
        stamp.device = device.unwrap_or(stamp.device);
        FilePart { file, offset_bytes: 0, length_bytes: 1, stamp }
    }

    fn request(token: u64, device: u64) -> Request {
        let (home, part) = (Warmed::new(Waker::new().unwrap()), part("/proc/self/exe", Some(device)));
        Request { home, token, part, offset: 0, length: 1, wanted: ColdRead::Pages }
    }

    #[test]
    fn every_request_is_reported_once_even_one_that_cannot_be_read() {
        let waker = Waker::new().unwrap();
        let home = Warmed::new(waker.clone());
        let (program, folder) = (part("/proc/self/exe", None), part("/", None));
        assert!(ask(&home, 7, &program, (0, 1_000_000), ColdRead::Pages));
        assert!(ask(&home, 8, &folder, (0, 10), ColdRead::Pages));
        assert!(ask(&home, 9, &program, (u64::MAX - 1, 10), ColdRead::Pages));
        assert!(ask(&home, 10, &program, (0, 10), ColdRead::Bytes));
        assert!(ask(&home, 11, &folder, (0, 10), ColdRead::Bytes));
        let mut done = Vec::new();
        while done.len() < 5 {
            let mut wait =
                [rustix::event::PollFd::from_borrowed_fd(waker.as_fd(), rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut wait, None).unwrap();
            waker.drain();
            done.extend(home.take());
        }
        done.sort_unstable_by_key(|done| done.token);
        assert!(done.iter().map(|done| done.token).eq(7..12));
        assert!(done[..3].iter().all(|done| done.read.is_none()));
        assert!(matches!(&done[3].read, Some(Ok(bytes)) if bytes.starts_with(b"\x7fELF")));
        assert!(matches!(done[4].read, Some(Err(libc::EISDIR))));
    }

    #[test]
    fn a_device_that_hangs_holds_its_share_and_fills_its_own_line_alone() {
        let mut line = Line::EMPTY;
        for token in 0..REQUESTS_WAITING_MAX as u64 {
            assert!(line.put(request(token, 1)));
        }
        assert!(!line.put(request(0, 1)), "its line is full");
        for _ in 0..THREADS_A_DEVICE_MAX {
            assert!(line.next().is_some_and(|request| request.part.stamp.device == 1));
        }
        assert!(line.next().is_none(), "it holds its share");
        assert!(line.put(request(5_000, 2)), "others have lines of their own");
        assert!(line.next().is_some_and(|request| request.token == 5_000));
        assert!(line.next().is_none());
        line.end(1);
        assert!(line.next().is_some_and(|request| request.token == THREADS_A_DEVICE_MAX as u64));
    }

    #[test]
    fn devices_take_turns() {
        let mut line = Line::EMPTY;
        for (token, device) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
            assert!(line.put(request(token, device)));
        }
        let tokens: Vec<_> = std::iter::from_fn(|| line.next()).map(|request| request.token).collect();
        assert_eq!(tokens, [1, 3, 2, 4]);
        assert!(line.waiting.is_empty() && line.turns.is_empty());
        [1, 1, 2, 2].into_iter().for_each(|device| line.end(device));
        assert!(line.busy.is_empty());
    }
}
