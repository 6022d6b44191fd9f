//! The thread that keeps a server: waits for signals and does what they ask for.
//!
//! It must never wake up while there is nothing to do, and never let one wish stop the server but the wish to
//! end it.

use std::os::fd::{AsFd, OwnedFd};
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_engine::Drain;
use staunch_netio::clock;

use super::duties::{DrainTimes, Duties, Reloaded};
use super::handover::{Handed, Ready};
use super::notify::Notify;
use super::pid_file::PidFile;
use super::program::Program;
use super::signals::{Signals, Wish};
use super::starter::Starter;
use super::upgrade::{Upgrade, UpgradeEnd};
use super::watchdog::Watchdog;

/// How long a connection may be idle once the server ends: clients that ask again and again do so within
/// milliseconds, and are told in the answer that it was the last. Longer would only delay the end for those
/// who do not.
const IDLE_MS: u32 = 500;

/// Signals to end within this time are one wish: `timeout`, `make` and `npm` signal a process, and then the
/// group it belongs to.
const ONE_WISH_MS: u64 = 1_000;

/// How long workers may take to leave their sockets: they do so between two turns.
const LEAVING_MAX: Duration = Duration::from_secs(2);

/// Starts the thread.
pub(super) fn start(
    signals: Signals,
    (program, starter): (Program, Option<Arc<Starter>>),
    handed: Vec<Handed>,
    ready: Option<Ready>,
    (duties, pid_file): (Duties, PidFile),
) -> Result<(), String> {
    let notify = Notify::from_environment();
    let watch = Watch { signals, program, starter, handed, duties, notify, pid_file };
    let thread = thread::Builder::new().name("life".into()).spawn(move || watch.run(ready));
    thread.map(|_| ()).map_err(|error| format!("cannot start a thread: {error}"))
}

/// The thread's own.
struct Watch {
    signals: Signals,
    program: Program,
    starter: Option<Arc<Starter>>,
    handed: Vec<Handed>,
    duties: Duties,
    notify: Notify,
    pid_file: PidFile,
}

/// What is under way.
#[derive(Default)]
struct Affairs {
    upgrade: Option<Upgrade>,
    /// Whether it drains: because it was told to end, or because another process serves now.
    ending: bool,
    /// Since when it was told to end.
    told_to_end_ms: Option<u64>,
    /// Readable when the process before this one has left the sockets.
    former: Option<OwnedFd>,
    /// An upgrade is to begin once it has left: until then this process has not taken over.
    is_upgrade_due: bool,
    /// The upgrade is what a reload came to: its outcome is the reload's.
    is_reload: bool,
}

impl Watch {
    fn run(mut self, ready: Option<Ready>) {
        let mut affairs = Affairs { former: self.begin(ready), ..Affairs::default() };
        let mut watchdog = Watchdog::from_environment(clock::now_ms());
        loop {
            self.wait(&affairs, watchdog.as_ref());
            for wish in self.signals.wishes() {
                self.obey(wish, &mut affairs);
            }
            self.follow(&mut affairs);
            if let Some(watchdog) = &mut watchdog
                && watchdog.is_alive(&self.duties.control, clock::now_ms())
            {
                self.notify.tell("WATCHDOG=1");
            }
        }
    }

    /// Says that the server serves, once every worker does.
    fn begin(&self, ready: Option<Ready>) -> Option<OwnedFd> {
        let (sender, answers) = mpsc::channel();
        self.duties.control.ping(&sender);
        // A worker that fails instead of answering ends the process.
        for _ in 0..self.duties.control.workers() {
            let _ = answers.recv();
        }
        if let Err(error) = self.duties.control.take_names() {
            self.fail(ready.as_ref(), &error.to_string());
        }
        self.duties.seeing.serve();
        let Some(ready) = ready else {
            self.notify.tell("READY=1\nSTATUS=Serving");
            return None;
        };
        if let Err(error) = self.pid_file.write() {
            self.say(&error);
        }
        // systemd hears of it by the former process, which it still believes.
        Some(ready.tell(self.duties.shares_queues))
    }

    /// Ends instead of serving where nobody would find it; the process before this one goes on.
    #[cold]
    fn fail(&self, ready: Option<&Ready>, why: &str) -> ! {
        self.say(why);
        self.duties.control.remove_files();
        self.duties.seeing.finish();
        if let Some(last_words) = ready.and_then(Ready::last_words) {
            last_words.say(why);
        }
        process::exit(1)
    }

    /// Waits for a signal, for the process that takes over, or for a moment that was set.
    fn wait(&self, affairs: &Affairs, watchdog: Option<&Watchdog>) {
        let upgrade = affairs.upgrade.as_ref();
        let next_ms = [upgrade.map(Upgrade::until_ms), watchdog.map(Watchdog::next_ms)];
        let timeout = next_ms.into_iter().flatten().min().map(|next_ms| {
            let left = Duration::from_millis(next_ms.saturating_sub(clock::now_ms()));
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        let signals = self.signals.as_fd();
        let mut awaited = vec![PollFd::new(&signals, PollFlags::IN)];
        let pipe = upgrade.map(Upgrade::as_fd);
        awaited.extend(pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        awaited.extend(affairs.former.as_ref().map(|former| PollFd::new(former, PollFlags::IN)));
        // EINTR is a signal, and is seen at once.
        let _ = poll(&mut awaited, timeout.as_ref());
    }

    fn obey(&mut self, wish: Wish, affairs: &mut Affairs) {
        match wish {
            Wish::End => match affairs.told_to_end_ms {
                None => self.end(affairs),
                Some(since_ms) if clock::now_ms() - since_ms < ONE_WISH_MS => {}
                Some(_) => {
                    self.say("ended at once, by a second signal");
                    self.pid_file.remove();
                    self.duties.finish();
                    process::exit(0);
                }
            },
            Wish::Reopen => self.duties.seeing.reopen(),
            Wish::Reload | Wish::Upgrade if affairs.ending => {
                self.ignore(wish, "this process is ending: the signal is ignored");
            }
            Wish::Reload | Wish::Upgrade if affairs.upgrade.is_some() || affairs.is_upgrade_due => {
                self.ignore(wish, "an upgrade is under way: the signal is ignored");
            }
            Wish::Reload => self.reload(affairs),
            Wish::Upgrade => affairs.is_upgrade_due = true,
        }
    }

    fn end(&mut self, affairs: &mut Affairs) {
        if let Some(upgrade) = affairs.upgrade.take() {
            self.conclude(affairs, upgrade.give_up("the server is ended before it serves"));
        }
        affairs.told_to_end_ms = Some(clock::now_ms());
        let seconds = self.duties.drain.stop.as_secs_f64();
        self.say(&format!(
            "ending: answers under way have {seconds} s; a further signal after 1 s ends at once"
        ));
        self.notify.tell("STOPPING=1\nSTATUS=Ending");
        drop(self.drain(affairs, Some(IDLE_MS), false));
    }

    fn ignore(&mut self, wish: Wish, why: &str) {
        self.say(why);
        if wish == Wish::Reload {
            self.note_reload(false, why);
        }
    }

    fn reload(&mut self, affairs: &mut Affairs) {
        let now_us = clock::now_ns() / 1000;
        self.notify.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=Reading the configuration"));
        match (self.duties.reload)() {
            Ok(Reloaded::Applied { lines, drain }) => {
                self.duties.drain = drain;
                lines.iter().for_each(|line| self.say(line));
                self.duties.seeing.reopen();
                self.say("the configuration was read again");
                let text = [&["the configuration was read again".to_owned()], &lines[..]].concat().join("\n");
                self.note_reload(true, &text);
                self.notify.tell("READY=1\nSTATUS=Serving");
            }
            Ok(Reloaded::Beyond(_)) if process::id() == 1 => {
                self.refuse_reload(
                    "this is the first process of its container, which would end with it: restart the \
                     container",
                );
            }
            Ok(Reloaded::Beyond(why)) => {
                self.say(&format!("{why}: another process takes the place of this one"));
                (affairs.is_upgrade_due, affairs.is_reload) = (true, true);
            }
            Err(error) => self.refuse_reload(&error),
        }
    }

    fn refuse_reload(&mut self, why: &str) {
        self.say(&format!("the configuration stays as it was: {why}"));
        self.note_reload(false, why);
        self.notify.tell("READY=1\nSTATUS=Serving; the new configuration was refused");
    }

    /// Notes what came of a reload, for who waits for it.
    fn note_reload(&mut self, is_applied: bool, text: &str) {
        self.duties.seeing.note_reload(is_applied, text);
        if let Err(error) = self.pid_file.note_reload(is_applied, text) {
            self.say(&error);
        }
    }

    fn upgrade(&mut self, affairs: &mut Affairs) {
        let begun = self.duties.parts.lend().and_then(|lent| {
            Upgrade::start(
                &self.program,
                self.starter.as_ref(),
                &self.handed,
                &self.duties,
                lent,
                clock::now_ms(),
            )
        });
        match begun {
            Ok(upgrade) => {
                let path = self.program.path.display();
                self.say(&format!("upgrading: {path} was started as process {}", upgrade.process()));
                affairs.upgrade = Some(upgrade);
            }
            Err(error) => self.conclude(affairs, UpgradeEnd::Failed(error)),
        }
    }

    /// Looks how far an upgrade is.
    fn follow(&mut self, affairs: &mut Affairs) {
        if affairs.former.as_ref().is_some_and(has_news) {
            affairs.former = None;
            self.duties.parts.take_over();
            self.duties.control.look_again();
            let text = format!("process {} serves, with the configuration as it is now", process::id());
            self.note_reload(true, &text);
        }
        if affairs.is_upgrade_due && affairs.former.is_none() {
            affairs.is_upgrade_due = false;
            if !affairs.ending {
                self.upgrade(affairs);
            }
        }
        let Some(upgrade) = affairs.upgrade.take() else { return };
        if has_news(&upgrade.as_fd()) {
            self.conclude(affairs, upgrade.hear());
        } else if clock::now_ms() >= upgrade.until_ms() {
            self.conclude(affairs, upgrade.give_up("it did not serve in time"));
        } else {
            affairs.upgrade = Some(upgrade);
        }
    }

    /// What is said of an upgrade is true when it is said: the workers have left their sockets, unless one of
    /// them is held up.
    fn conclude(&mut self, affairs: &mut Affairs, outcome: UpgradeEnd) {
        match outcome {
            UpgradeEnd::Serves { process, shares_queues, left } => {
                let ready = if affairs.is_reload { "READY=1\n" } else { "" };
                self.notify.tell(&format!("{ready}MAINPID={process}\nSTATUS=Serving, after an upgrade"));
                let all_left = self.drain(affairs, None, shares_queues);
                // Nothing is sent: it ends when the last worker has left its sockets, in a moment.
                let _ = all_left.recv_timeout(LEAVING_MAX);
                drop(left);
                self.say(&format!("process {process} serves now; this one ends when its connections do"));
            }
            UpgradeEnd::Failed(why) => {
                self.duties.parts.take_back();
                self.say(&format!("the upgrade failed, this process goes on: {why}"));
                if std::mem::take(&mut affairs.is_reload) {
                    self.refuse_reload(&why);
                }
            }
        }
    }

    fn drain(&self, affairs: &mut Affairs, idle_ms: Option<u32>, leave_queues: bool) -> Receiver<u16> {
        affairs.ending = true;
        let hands_over = idle_ms.is_none();
        self.duties.leave(hands_over);
        let DrainTimes { stop, upgrade } = self.duties.drain;
        let cap = if hands_over { upgrade } else { stop };
        let cap_ms = u32::try_from(cap.as_millis()).unwrap_or(u32::MAX);
        self.duties.control.drain(Drain { cap_ms, idle_ms, leave_queues })
    }

    fn say(&self, line: &str) {
        self.duties.say(line);
    }
}

/// Whether something was said on the pipe, or its other end is gone.
fn has_news(pipe: &impl AsFd) -> bool {
    let looked: io::Result<usize> =
        poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&Timespec::default())).map_err(Into::into);
    looked.is_ok_and(|count| count > 0)
}
