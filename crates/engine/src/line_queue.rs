//! Lines for people, written by a thread of their own: whoever says one never waits for whoever reads it.
//!
//! It owns the lines that wait, and the thread. A line that finds no room, or cannot be written, is lost and
//! counted, and the next line that can be written is preceded by one that says how many. It must never fail,
//! end or hold up who says a line.
//!
//! Order of calls: [`LineQueue::new`], [`LineQueue::say`] at any time, [`LineQueue::start`] once the process
//! is who it will be, [`LineQueue::finish`] at its end. Dropped, it writes what waits, and its thread ends.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use staunch_netio::descriptors;

use crate::limits::LINES_WAITING_MAX;

/// What is said of lost lines, behind their number.
const ABOUT_LOST: &str = "lines before this were lost";

/// Where lines for the operator go. Called by workers: it must never wait.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// Gives a text the form it is written in, with the line's end.
pub type Form = Box<dyn Fn(&str) -> String + Send + Sync>;

/// What became of lines; shared by queues that follow each other.
#[derive(Debug, Default)]
pub struct LineCounts {
    written: AtomicU64,
    lost: AtomicU64,
}

impl LineCounts {
    /// Lines written.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Lines that found no room or could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

/// Lines that wait to be written, and the thread that writes them.
pub struct LineQueue {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// There is something to do.
    work: Condvar,
    /// Nothing waits, and nothing is being written.
    rest: Condvar,
    form: Form,
    counts: Arc<LineCounts>,
}

#[derive(Default)]
struct State {
    lines: VecDeque<String>,
    /// Where to write from the next line on.
    next: Option<File>,
    started: bool,
    writing: bool,
    ended: bool,
    /// Lines lost that were not spoken of.
    lost: u64,
}

impl LineQueue {
    /// Lines for `file`, in this form. No thread is started yet.
    pub fn new(file: File, form: Form, counts: Arc<LineCounts>) -> Self {
        let state = State { next: Some(file), ..State::default() };
        let (work, rest) = (Condvar::new(), Condvar::new());
        Self { inner: Arc::new(Inner { state: Mutex::new(state), work, rest, form, counts }) }
    }

    /// Lines for standard error, each as `staunch: TEXT`.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn of_standard_error(counts: Arc<LineCounts>) -> io::Result<Self> {
        let file = io::stderr().as_fd().try_clone_to_owned()?.into();
        Ok(Self::new(file, Box::new(|text| format!("staunch: {text}\n")), counts))
    }

    /// Lines for standard output, as they are.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn of_standard_output(counts: Arc<LineCounts>) -> io::Result<Self> {
        let file = io::stdout().as_fd().try_clone_to_owned()?.into();
        Ok(Self::new(file, Box::new(|text| format!("{text}\n")), counts))
    }

    /// Starts the thread, once.
    ///
    /// # Errors
    /// If it cannot be started: then lines wait, up to their bound.
    pub fn start(&self) -> io::Result<()> {
        let mut state = self.inner.lock();
        if !state.started {
            let inner = Arc::clone(&self.inner);
            thread::Builder::new().name("lines".into()).spawn(move || inner.run())?;
            state.started = true;
        }
        Ok(())
    }

    /// Says one line, or several. Never waits for them to be written.
    pub fn say(&self, text: &str) {
        let line = (self.inner.form)(text);
        let mut state = self.inner.lock();
        if state.lines.len() < LINES_WAITING_MAX {
            state.lines.push_back(line);
            self.inner.work.notify_one();
        } else {
            state.lose(&line, &self.inner.counts);
        }
    }

    /// Writes to another file from the next line on.
    pub fn exchange(&self, file: File) {
        self.inner.lock().next = Some(file);
    }

    /// Waits until everything said before is written or lost, but no longer than `patience`. Whether it is.
    pub fn finish(&self, patience: Duration) -> bool {
        if self.start().is_err() {
            return false;
        }
        let state = self.inner.lock();
        let is_busy = |state: &mut State| state.writing || !state.lines.is_empty();
        let waited = self.inner.rest.wait_timeout_while(state, patience, is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for LineQueue {
    fn drop(&mut self) {
        self.inner.lock().ended = true;
        self.inner.work.notify_one();
    }
}

impl State {
    fn lose(&mut self, line: &str, counts: &LineCounts) {
        let lines = lines_of(line);
        self.lost += lines;
        counts.lost.fetch_add(lines, Relaxed);
    }
}

impl Inner {
    fn run(&self) {
        let (mut file, mut torn) = (None, false);
        while let Some((line, next, lost)) = self.next() {
            if let Some(next) = next {
                (file, torn) = (Some(next), false);
            }
            // `new` brings the first file, so there is one.
            let Some(file) = &mut file else { continue };
            let about_lost = (lost > 0).then(|| (self.form)(&format!("{lost} {ABOUT_LOST}")));
            let told = about_lost.is_none_or(|text| write(file, &text, &mut torn).is_ok());
            let written = told && write(file, &line, &mut torn).is_ok();
            let mut state = self.lock();
            if told {
                state.lost -= lost;
            }
            if written {
                self.counts.written.fetch_add(lines_of(&line), Relaxed);
            } else {
                state.lose(&line, &self.counts);
            }
            state.writing = false;
        }
    }

    /// The next line, where to write it if that has changed, and how many lost ones to speak of before;
    /// `None` if there will be none.
    fn next(&self) -> Option<(String, Option<File>, u64)> {
        let mut state = self.lock();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.writing = true;
                return Some((line, state.next.take(), state.lost));
            }
            self.rest.notify_all();
            if state.ended {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lines_of(text: &str) -> u64 {
    text.matches('\n').count() as u64
}

/// Writes all of it. `torn`: the last line was cut off, and is ended first.
fn write(file: &mut File, text: &str, torn: &mut bool) -> io::Result<()> {
    let mut rest = text.as_bytes();
    let ended;
    if *torn {
        ended = [b"\n", rest].concat();
        rest = &ended;
    }
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => {
                *torn = rest[length - 1] != b'\n';
                rest = &rest[length..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Another process that shares the file may have made it one that does not wait: this thread can.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => descriptors::await_room(&mut *file)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::fd::OwnedFd;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn plain(file: impl Into<OwnedFd>) -> (LineQueue, Arc<LineCounts>) {
        let counts = Arc::<LineCounts>::default();
        let form: Form = Box::new(|text| format!("{text}\n"));
        (LineQueue::new(File::from(file.into()), form, Arc::clone(&counts)), counts)
    }

    #[test]
    fn lines_said_before_the_thread_starts_are_written() {
        let (mut read, write) = io::pipe().unwrap();
        let (queue, counts) = plain(write);
        queue.say("one");
        queue.say("two\nthree");
        assert!(queue.finish(PATIENCE));
        assert_eq!((counts.written(), counts.lost()), (3, 0));
        drop(queue);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\nthree\n");
    }

    #[test]
    fn a_pipe_that_nobody_reads_holds_up_nobody_and_the_lost_are_spoken_of() {
        let (read, write) = io::pipe().unwrap();
        let (queue, counts) = plain(write);
        queue.start().unwrap();
        let line = "x".repeat(4095);
        let mut said = 0_u64;
        while counts.lost() < 10 {
            queue.say(&line);
            said += 1;
        }
        assert!(!queue.finish(Duration::ZERO));
        drop(queue);
        let lines = BufReader::new(read).lines().map(Result::unwrap);
        let spoken = lines.filter_map(|line| line.strip_suffix(ABOUT_LOST)?.trim().parse::<u64>().ok());
        assert_eq!(spoken.sum::<u64>(), 10);
        assert_eq!((counts.written(), counts.lost()), (said - 10, 10));
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_writing_goes_on_elsewhere() {
        let (mut read, write) = io::pipe().unwrap();
        let (queue, counts) = plain(File::options().write(true).open("/dev/full").unwrap());
        queue.say("one");
        queue.say("two\nthree");
        assert!(queue.finish(PATIENCE));
        assert_eq!((counts.written(), counts.lost()), (0, 3));
        queue.exchange(File::from(OwnedFd::from(write)));
        queue.say("four");
        assert!(queue.finish(PATIENCE));
        drop(queue);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "3 lines before this were lost\nfour\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_end() {
        let (read, write) = io::pipe().unwrap();
        let (queue, counts) = plain(write);
        drop(read);
        queue.say("one");
        assert!(queue.finish(PATIENCE));
        assert_eq!((counts.written(), counts.lost()), (0, 1));
    }
}
