//! The threads behind all sites: they load, prepare, encode, watch, and check credentials.
//!
//! There are as many whether there is one site or a thousand. They take work of whichever site has some, the
//! encoders in turn. They end when the crew is told to, and keep nothing of a site that was removed beyond
//! the work they are at. It must never serve a request.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use staunch_engine::{Notice, Post};

use crate::checks::Turn;
use crate::config::SiteError;
use crate::content::encoder::Wish;
use crate::content::signal::Signal;
use crate::content::store::Room;
use crate::content::watch::Watch;
use crate::limits::{CHECKER_THREADS, LOADER_THREADS, WATCH_REST_MS};
use crate::looks::{Look, LookJob};
use crate::mail::Mail;
use crate::shared::{CheckJob, Letter, Queues, SiteShared};

/// The threads behind all sites, and their work.
pub(crate) struct Crew {
    pub(crate) queues: Arc<Queues>,
    work: Mutex<Work>,
    walk_signal: Signal,
    /// Wakes the watching thread.
    changed: OwnedFd,
    /// Told that a site is not what it was opened as.
    reopen: OnceLock<Box<dyn Fn() + Send + Sync>>,
    ended: AtomicBool,
}

#[derive(Default)]
struct Work {
    sites: Vec<Arc<SiteShared>>,
    unwalked: VecDeque<Arc<SiteShared>>,
    /// Whose turn it is to be encoded.
    turn: usize,
}

impl Crew {
    /// A crew without threads.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub(crate) fn new(notice: Notice) -> Result<Self, SiteError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let changed = eventfd(0, flags).map_err(|errno| SiteError::Thread(errno.into()))?;
        let (work, walk_signal) = (Mutex::default(), Signal::default());
        let queues = Arc::new(Queues::new(notice));
        let (reopen, ended) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { queues, work, walk_signal, changed, reopen, ended })
    }

    /// What is to be done when a site is not what it was opened as: once, before the threads are started.
    pub(crate) fn when_other(&self, reopen: impl Fn() + Send + Sync + 'static) {
        // The cell is empty: nothing else sets it.
        let _ = self.reopen.set(Box::new(reopen));
    }

    /// Starts the threads. They run until [`Crew::end`].
    ///
    /// # Errors
    /// If one cannot be started.
    pub(crate) fn start(self: &Arc<Self>, post: &Post<Mail>) -> Result<(), SiteError> {
        for number in 0..LOADER_THREADS {
            let post = post.clone();
            self.spawn(&format!("load {number}"), move |crew| crew.load(&post))?;
        }
        for number in 0..CHECKER_THREADS {
            let post = post.clone();
            self.spawn(&format!("check {number}"), move |crew| crew.check(&post))?;
        }
        self.spawn("watch", Self::watch)?;
        self.spawn("walk", Self::walk)?;
        self.spawn("look", Self::look)?;
        for number in 0..encoder_threads() {
            self.spawn(&format!("encode {number}"), Self::encode)?;
        }
        Ok(())
    }

    /// From now on these are the sites; new ones are prepared, others are forgotten.
    pub(crate) fn take_on(&self, sites: Vec<Arc<SiteShared>>) {
        let mut work = self.lock();
        let is_new = |site: &&Arc<SiteShared>| !work.sites.iter().any(|old| Arc::ptr_eq(old, site));
        let new: Vec<_> = sites.iter().filter(is_new).cloned().collect();
        work.unwalked.retain(|waiting| sites.iter().any(|site| Arc::ptr_eq(site, waiting)));
        for site in new {
            if site.load.config.no_cache {
                site.walk.skip();
            } else {
                work.unwalked.push_back(site);
            }
        }
        work.sites = sites;
        drop(work);
        self.walk_signal.ring();
        self.wake_watch();
    }

    /// Lets all threads end.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        *self.lock() = Work::default();
        self.queues.loads.end();
        self.queues.checks.end();
        self.queues.encode_signal.ring_for_all();
        self.walk_signal.ring_for_all();
        self.queues.looks.clear();
        self.queues.looks.signal.ring_for_all();
        self.wake_watch();
    }

    fn spawn(
        self: &Arc<Self>,
        name: &str,
        run: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<(), SiteError> {
        let crew = Arc::clone(self);
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || run(&crew));
        spawned.map(drop).map_err(SiteError::Thread)
    }

    fn load(&self, post: &Post<Mail>) {
        self.queues.loads.run(
            |key, job| {
                job.site.ask_to_look(job.unix_s);
                job.site.load.load(key, job.unix_s, Room::Made)
            },
            |(address, purpose), job, outcome| {
                let (site, letter) = (Arc::clone(&job.site), Letter::Loaded(outcome, purpose));
                post.send(address, Mail::of_site(site, letter));
            },
        );
    }

    fn check(&self, post: &Post<Mail>) {
        step_back(10);
        while let Some(turn) = self.queues.checks.next() {
            let (site, addresses, found) = match turn {
                Turn::Check(tag, CheckJob { site, auth, field, now_s }) => {
                    let since_s = auth.verify(&field, now_s);
                    let waiters = self.queues.checks.finish(auth.number(), tag, since_s.is_some());
                    (site, waiters, Ok((tag, since_s)))
                }
                Turn::PutOff(job, addresses, excess) => (job.site, addresses, Err(excess)),
            };
            for address in addresses {
                let letter = match found {
                    Ok((tag, since_s)) => Letter::Checked { tag, since_s },
                    Err(excess) => Letter::PutOff(excess),
                };
                post.send(address, Mail::of_site(Arc::clone(&site), letter));
            }
        }
    }

    fn encode(&self) {
        step_back(19);
        self.take_turns(&self.queues.encode_signal, |crew| {
            let (site, wish) = crew.next_wish()?;
            let load = &site.load;
            load.encoder.encode(&wish, &load.store, &load.versions, &load.config.encodings);
            Some(())
        });
    }

    fn walk(&self) {
        step_back(19);
        self.take_turns(&self.walk_signal, |crew| {
            let site = crew.lock().unwalked.pop_front()?;
            site.walk.run(&site.load);
            Some(())
        });
    }

    fn look(&self) {
        self.take_turns(&self.queues.looks.signal, |crew| {
            let LookJob { site, look, unix_s } = crew.queues.looks.take()?;
            // A site that was replaced meanwhile is not looked at.
            let Some(site) = site.upgrade() else { return Some(()) };
            if !site.is_as_opened(unix_s) {
                crew.reopen.get().iter().for_each(|reopen| reopen());
            }
            match look {
                Look::Site => {}
                Look::Entry(entry) => site.load.look_at(&entry),
                Look::All => site.load.store.all().iter().for_each(|entry| site.load.look_at(entry)),
            }
            Some(())
        });
    }

    /// Does what there is to do, and waits for the signal when there is nothing.
    fn take_turns(&self, signal: &Signal, turn: impl Fn(&Self) -> Option<()>) {
        loop {
            let seen = signal.count();
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            if turn(self).is_none() {
                signal.wait_beyond(seen);
            }
        }
    }

    fn next_wish(&self) -> Option<(Arc<SiteShared>, Wish)> {
        let mut work = self.lock();
        let count = work.sites.len();
        let (place, wish) = (0..count).map(|step| (work.turn + step) % count).find_map(|place| {
            let wish = work.sites[place].load.encoder.take()?;
            Some((place, wish))
        })?;
        work.turn = place + 1;
        Some((Arc::clone(&work.sites[place]), wish))
    }

    fn watch(&self) {
        while !self.ended.load(Ordering::Acquire) {
            let sites = self.lock().sites.clone();
            for (site, watch, prefix) in self.await_events(&sites) {
                site.load.follow(watch, prefix);
                if watch.is_lost() {
                    // Long before any request: another folder may have its name at once.
                    site.look_later(Look::Site, site.next_look_s());
                }
            }
            drop(sites);
            // tidy: allow(clock): a thread of its own rests between bursts of events.
            thread::sleep(Duration::from_millis(WATCH_REST_MS));
        }
    }

    /// The watches of the sites in whose folders something has happened; waits until it has, or the sites
    /// change.
    fn await_events<'a>(&self, sites: &'a [Arc<SiteShared>]) -> Vec<Watched<'a>> {
        let all = sites
            .iter()
            .flat_map(|site| site.load.watches().map(move |(watch, prefix)| (site, watch, prefix)));
        let watched: Vec<_> = all.filter_map(|one| Some((one, one.1.events()?))).collect();
        let mut ready: Vec<_> =
            watched.iter().map(|(_, events)| PollFd::new(events, PollFlags::IN)).collect();
        ready.push(PollFd::new(&self.changed, PollFlags::IN));
        if poll(&mut ready, None).is_err() {
            return Vec::new();
        }
        // Nothing to read is as good.
        let _ = rustix::io::read(&self.changed, &mut [0_u8; 8]);
        let happened = watched.iter().zip(&ready).filter(|(_, ready)| !ready.revents().is_empty());
        happened.map(|((one, _), _)| *one).collect()
    }

    fn wake_watch(&self) {
        // Writing fails only if the signal was given already.
        let _ = rustix::io::write(&self.changed, &1_u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A watch of a site, and the path below which its folder is served.
type Watched<'a> = (&'a Arc<SiteShared>, &'a Watch, &'a [u8]);

/// Behind everyone else; where that is not allowed the thread works all the same.
fn step_back(nice: i32) {
    let _ = rustix::process::setpriority_process(None, nice);
}

/// Half of the processors, since encoding is the only work that never ends soon.
fn encoder_threads() -> usize {
    thread::available_parallelism().map_or(1, |count| (count.get() / 2).max(1))
}
