//! Reads parts of files that are not in memory yet, in a thread that may wait for a disk, so that no worker
//! does.
//!
//! It owns one thread a process, started on first use, and one scratch buffer. It must never touch a socket
//! or a connection. Order of calls: a backend makes one [`Warmed`]; for each cold range `warm`; after the
//! waker was used, `take` tells which requests are done. A request that fails to read is done too: the error
//! shows when the worker reads the same range.

use std::mem;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};

use crate::wake::Waker;

/// Requests that may wait; beyond, `warm` refuses and the backend asks again a little later.
const REQUESTS_WAITING_MAX: usize = 1024;

/// How many bytes the thread reads at a time, to throw away.
const SCRATCH_BYTES: usize = 256 * 1024;

/// One backend's list of requests done.
#[derive(Debug)]
pub(crate) struct Warmed {
    tokens: Mutex<Vec<u64>>,
    waker: Waker,
}

impl Warmed {
    /// An empty list; `waker` is used when a token is put into it.
    pub(crate) fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self { tokens: Mutex::new(Vec::new()), waker })
    }

    /// Takes the tokens of all requests done since the last call.
    pub(crate) fn take(&self) -> Vec<u64> {
        mem::take(&mut *self.tokens.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn put(&self, token: u64) {
        self.tokens.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(token);
        self.waker.wake();
    }
}

/// Asks for a range of a file to be read; `token` comes out of `home` afterwards. `false` if too many wait
/// already or no thread can be had: nothing comes then.
pub(crate) fn warm(home: &Arc<Warmed>, token: u64, file: &Arc<OwnedFd>, offset: u64, length: u64) -> bool {
    static THREAD: OnceLock<Option<SyncSender<Request>>> = OnceLock::new();
    let Some(requests) = THREAD.get_or_init(start) else { return false };
    let request = Request { home: Arc::clone(home), token, file: Arc::clone(file), offset, length };
    requests.try_send(request).is_ok()
}

struct Request {
    home: Arc<Warmed>,
    token: u64,
    file: Arc<OwnedFd>,
    offset: u64,
    length: u64,
}

fn start() -> Option<SyncSender<Request>> {
    let (sender, receiver) = sync_channel(REQUESTS_WAITING_MAX);
    let thread = std::thread::Builder::new().name("warming".into());
    thread.spawn(move || serve(&receiver)).ok()?;
    Some(sender)
}

fn serve(requests: &Receiver<Request>) {
    let mut scratch = vec![0; SCRATCH_BYTES];
    for request in requests {
        read_through(&request, &mut scratch);
        request.home.put(request.token);
    }
}

fn read_through(request: &Request, scratch: &mut [u8]) {
    let mut offset = request.offset;
    let end = request.offset.saturating_add(request.length);
    while offset < end {
        let wanted = scratch.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
        match rustix::io::pread(&*request.file, &mut scratch[..wanted], offset) {
            Ok(0) | Err(_) => return,
            Ok(count) => offset += count as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_reported_once_even_one_that_cannot_be_read() {
        let waker = Waker::new().unwrap();
        let home = Warmed::new(waker.clone());
        let program = std::fs::File::open("/proc/self/exe").unwrap();
        let program = Arc::new(OwnedFd::from(program));
        let folder = Arc::new(OwnedFd::from(std::fs::File::open("/").unwrap()));
        assert!(warm(&home, 7, &program, 0, 1_000_000));
        assert!(warm(&home, 8, &folder, 0, 10));
        assert!(warm(&home, 9, &program, u64::MAX - 1, 10));
        let mut tokens = Vec::new();
        while tokens.len() < 3 {
            let mut wait =
                [rustix::event::PollFd::from_borrowed_fd(waker.as_fd(), rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut wait, None).unwrap();
            waker.drain();
            tokens.extend(home.take());
        }
        assert_eq!(tokens, [7, 8, 9]);
    }
}
