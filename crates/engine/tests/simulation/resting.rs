//! Answers that go on and rest: whenever an update comes each reader gets it, in order, and a worker whose
//! readers all rest holds nothing for them.
//!
//! Readers leave, half-close, speak, stall and come back while they rest; the worker is told to drain and to
//! change meanwhile.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use staunch_engine::{
    Address, Answer, Answered, Control, Drain, Ended, Finished, Handler, Mailbox, Open, Outbox, Owner, Piece,
    Post, Pressure, Slice, Stats, Worker, WorkerParts,
};
use staunch_netio::simulated::{End, Faults, PeerId, Random, Simulated, Step, Transcript};
use staunch_netio::{Io, Tuning};
use staunch_protocol::{Request, Status};

use crate::{TIMEOUTS, TURNS_MAX, seeds};

/// Updates of a world; the last one ends all answers.
const UPDATES: u64 = 40;
const FOREVER_MS: u64 = 10_000_000;
const HEAD: &[u8] = b"GET /read HTTP/1.1\r\nHost: h\r\n\r\n";
/// Its answer ends with the connection.
const OLD_HEAD: &[u8] = b"GET /read HTTP/1.0\r\n\r\n";
/// More than a reader may send behind its request.
const TOO_MUCH: usize = 70_000;

/// Exchanges of readers are the largest owner's, so that no bit of it is lost while they rest.
const OWNER: Owner = Owner(u16::MAX);

/// An update was published.
struct News(u64);

/// How far a reader came, by its exchange.
type Readers = Rc<RefCell<HashMap<Address, u64>>>;

/// Sends each update to every reader.
struct Press {
    readers: Readers,
    number: u64,
    ended: Rc<RefCell<Vec<Ended>>>,
    /// A canary: requests are not given back.
    keeps: bool,
}

impl Handler for Press {
    type Mail = News;

    fn handle(&mut self, request: &Request<'_>, answer: Answer<'_>) -> Answered {
        self.readers.borrow_mut().insert(answer.address(), self.number);
        answer.open(request, Status::OK, b"", None, false).owned_by(OWNER)
    }

    fn resume(&mut self, _: News, _: &Request<'_>, _: Answer<'_>) -> Answered {
        unreachable!("nothing waits")
    }

    fn ready(&mut self, open: &mut Open<'_>) {
        assert_eq!(open.owner(), OWNER);
        open.ignore_input();
        open.keep_little_unsent();
        if !self.keeps {
            open.release_request();
        }
        let mut readers = self.readers.borrow_mut();
        let number = readers.get_mut(&open.address()).expect("an answer that is not over");
        if open.peer_has_ended() {
            return open.end();
        }
        if open.has_unsent() {
            return open.call_when_sent();
        }
        while *number < self.number && open.has_room() {
            *number += 1;
            let bytes: Arc<[u8]> = format!("{number}\n").into_bytes().into();
            open.push(Piece::Shared(Slice { start: 0, end: bytes.len(), bytes }));
        }
        if open.has_unsent() {
            open.call_when_sent();
        } else if *number == UPDATES {
            open.end();
        }
    }

    fn mail(&mut self, _: Owner, News(number): News, outbox: &Outbox) {
        self.number = number;
        self.readers.borrow().keys().for_each(|address| outbox.wake(*address));
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        let reader = self.readers.borrow_mut().remove(&finished.address);
        assert!(reader.is_some(), "an exchange is finished twice, or was never open");
        assert_eq!((finished.status, finished.owner), (Status::OK, OWNER));
        let is_kept = finished.request.is_some();
        assert!(
            !is_kept || finished.why == Ended::Gone || self.keeps,
            "a request was kept to an end in order"
        );
        self.ended.borrow_mut().push(finished.why);
    }
}

/// The end that a reader is to come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Everything has come.
    Stays,
    /// The reader is taken for gone, or says too much: its answer is ended in order.
    IsEnded,
    /// The reader leaves.
    Leaves,
}

/// A reader's script, and what is expected of it.
fn draw(random: &mut Random) -> (Vec<Step>, Fate) {
    let head = if random.chance(250) { OLD_HEAD } else { HEAD };
    let pause = Step::Wait(random.below(300) as u64);
    let everything = Step::UntilReceived(usize::MAX);
    let (then, fate) = match random.below(8) {
        0 => (vec![pause, Step::Close], Fate::Leaves),
        1 => (vec![pause, Step::Reset], Fate::Leaves),
        2 => (vec![pause, Step::HalfClose, everything], Fate::IsEnded),
        // Says little, as some clients ping.
        3 => (vec![pause, Step::Send(HEAD.repeat(1 + random.below(9))), everything], Fate::Stays),
        4 => (vec![pause, Step::Send(vec![b'x'; TOO_MUCH]), everything], Fate::IsEnded),
        // Stands still for less than the deadline of a send, and takes all that it has missed.
        5 => (vec![Step::Stall, pause, Step::Read, everything], Fate::Stays),
        _ => (vec![everything], Fate::Stays),
    };
    let asks = [Step::Wait(random.below(100) as u64), Step::Send(head.to_vec())];
    (asks.into_iter().chain(then).collect(), fate)
}

/// What is done to the worker while readers rest.
struct Orders {
    control: Control,
    drain: Drain,
    drain_turn: Option<u64>,
}

impl Orders {
    fn draw(control: Control, random: &mut Random) -> Self {
        let idle_ms = random.chance(700).then(|| random.below(200) as u32);
        let cap_ms = if random.chance(200) { random.below(300) as u32 } else { FOREVER_MS as u32 };
        let drain_turn = random.chance(400).then(|| random.below(120) as u64);
        Self { control, drain: Drain { cap_ms, idle_ms, leave_queues: false }, drain_turn }
    }

    /// Whether readers may be cut off by it.
    fn cuts(&self) -> bool {
        self.drain_turn.is_some() && u64::from(self.drain.cap_ms) < FOREVER_MS
    }

    fn give(&self, turn: u64, random: &mut Random) {
        if self.drain_turn == Some(turn) {
            drop(self.control.drain(self.drain));
        }
        match random.below(60) {
            0 => self.control.set_timeouts(TIMEOUTS),
            1 => self.control.set_pressure(Pressure::NONE),
            2 => self.control.look_again(),
            _ => {}
        }
    }
}

/// Plays a seed; gives how answers ended, and how often everybody rested.
fn run(seed: u64, keeps: bool) -> (Vec<Ended>, u64) {
    let mut random = Random::new(seed ^ 0x4e57);
    let faults = [Faults::NONE, Faults::GENTLE, Faults::HOSTILE][seed as usize % 3];
    let count = 1 + random.below(6);
    let mut world = Simulated::new(seed, faults, count as u32 + 1);
    let scripts: Vec<(Vec<Step>, Fate)> = (0..count).map(|_| draw(&mut random)).collect();
    // What a peer does not take is held for it.
    let all_read = !scripts.iter().any(|(steps, _)| steps.contains(&Step::Stall));
    let fates: Vec<(PeerId, Fate)> =
        scripts.into_iter().map(|(steps, fate)| (world.peer(steps), fate)).collect();
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let orders = Orders::draw(Control::new(&[Arc::clone(&mailbox)]), &mut random);
    let (readers, ended) = (Readers::default(), Rc::<RefCell<Vec<Ended>>>::default());
    let handler = Press { readers: Rc::clone(&readers), number: 0, ended: Rc::clone(&ended), keeps };
    let stats = Arc::new(Stats::default());
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::clone(&stats), timeouts: TIMEOUTS, index: 0 },
    );
    let (mut number, mut rests) = (0, 0);
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "the worker spins");
        let is_drained = orders.drain_turn.is_some() && worker.is_over();
        if worker.io().finished() || is_drained {
            break;
        }
        orders.give(turn, &mut random);
        let is_calm = !worker.io().is_restless();
        if is_calm {
            if all_read && !readers.borrow().is_empty() {
                rests += 1;
                assert_eq!(worker.held_bytes(), 0, "something is held for readers at rest");
            }
            let now_ms = worker.io().now_ms();
            worker.io().set_alarm(now_ms + 10);
        }
        worker.turn().expect("the simulator does not fail");
        if is_calm && number < UPDATES {
            number += 1;
            post.send_to_worker(0, Owner::default(), News(number));
        }
    }
    worker.io().check_empty();
    assert_eq!(worker.held_bytes(), 0, "memory stays in the account");
    assert_eq!(stats.connections.accepted.get(), stats.connections.closed.get(), "a connection is leaked");
    assert!(readers.borrow().is_empty(), "an exchange was not finished");
    for (peer, fate) in fates {
        let is_cut = faults == Faults::HOSTILE || orders.cuts();
        judge(worker.io().transcript(peer), fate, is_cut, orders.drain_turn.is_some());
    }
    let ended = ended.borrow().clone();
    (ended, rests)
}

/// Updates came without a hole, and all of them to whom was there to the end.
fn judge(transcript: &Transcript, fate: Fate, is_cut: bool, is_drained: bool) {
    let Some((numbers, is_whole)) = read(&transcript.received) else {
        // A peer that had not asked when the worker ended was idle.
        return assert!(is_cut || is_drained || fate == Fate::Leaves, "no answer came");
    };
    assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "{numbers:?}");
    if is_cut {
        return;
    }
    match fate {
        Fate::Stays => assert!(is_whole && numbers.last().is_none_or(|last| *last == UPDATES), "{numbers:?}"),
        Fate::IsEnded => assert!(is_whole, "{numbers:?}"),
        Fate::Leaves => {}
    }
    assert!(fate == Fate::Leaves || is_drained || transcript.ended != Some(End::Reset), "{numbers:?}");
}

/// The numbers of an answer, as far as they came whole, and whether its end came too; nothing without a head,
/// and of a refusal: where time jumps, heads take too long.
fn read(received: &[u8]) -> Option<(Vec<u64>, bool)> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = received.split_at(end);
    if !head.starts_with(b"HTTP/1.1 200 ") {
        return None;
    }
    let body = String::from_utf8_lossy(&body[4..]).into_owned();
    let is_chunked = head.windows(7).any(|seven| seven == b"chunked");
    let (data, is_whole) = if is_chunked { chunks(&body) } else { (body, true) };
    let whole = data.rfind('\n').map_or("", |last| &data[..last]);
    let number = |line: &str| line.parse().unwrap_or_else(|_| panic!("no number: {whole:?}"));
    Some((whole.lines().map(number).collect(), is_whole))
}

fn chunks(mut body: &str) -> (String, bool) {
    let mut data = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            // Behind it another answer may come: whoever says something once all is over has asked again.
            return (data, rest.starts_with("\r\n"));
        }
        let Some(piece) = rest.get(..size) else { break };
        data.push_str(piece);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    (data, false)
}

#[test]
fn every_seed_wakes_readers_for_each_update() {
    let seeds = seeds(1_000);
    let count = seeds.end - seeds.start;
    let (mut ended, mut rests) = (Vec::new(), 0);
    for seed in seeds {
        let Ok((ways, times)) = catch_unwind(AssertUnwindSafe(|| run(seed, false))) else {
            panic!(
                "seed {seed} fails; again: STAUNCH_SEED={seed} cargo test --test simulation every_seed_wakes"
            );
        };
        ended.extend(ways);
        rests += times;
    }
    println!("{count} seeds: {} answers ended, readers rested {rests} times", ended.len());
    for way in [Ended::Complete, Ended::Gone] {
        assert!(count < 500 || ended.contains(&way), "no answer ended so: {way:?}");
    }
    assert!(rests > 0);
}

/// A reader's connection holds little in the kernel while it reads, and as much as others once it does not.
#[test]
fn the_kernel_keeps_little_of_a_reader_alone() {
    let mut world = Simulated::new(1, Faults::NONE, 1);
    let ends = b"\r\n0\r\n\r\n";
    let peer = world.peer(vec![Step::Send(HEAD.to_vec()), Step::UntilReceived(usize::MAX)]);
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let handler = Press { readers: Readers::default(), number: 0, ended: Rc::default(), keeps: false };
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::default(), timeouts: TIMEOUTS, index: 0 },
    );
    let turn_until = |worker: &mut Worker<Simulated, Press>, wanted: &[u8]| {
        let mut turns = 0;
        while !worker.io().transcript(peer).received.ends_with(wanted) || worker.io().is_restless() {
            turns += 1;
            assert!(turns < TURNS_MAX, "never: {wanted:?}");
            let soon_ms = worker.io().now_ms() + 10;
            worker.io().set_alarm(soon_ms);
            worker.turn().expect("the simulator does not fail");
        }
        worker.io().tunings(0).to_vec()
    };
    let reading = [Tuning::Unsent(16 * 1024)];
    turn_until(&mut worker, b"\r\n\r\n");
    post.send_to_worker(0, Owner::default(), News(1));
    assert_eq!(turn_until(&mut worker, b"2\r\n1\n\r\n"), reading);
    post.send_to_worker(0, Owner::default(), News(UPDATES));
    let usual = [Tuning::UNSENT_AT_FIRST];
    assert_eq!(turn_until(&mut worker, ends), [reading, usual].concat());
}

/// How long a reader stays that does this while an update comes every 45 s, 900 s at most; and what it got.
fn stays_ms(then: impl IntoIterator<Item = Step>) -> (u64, usize) {
    let mut world = Simulated::new(1, Faults::NONE, 1);
    let begin = [Step::Queue(16 * 1024), Step::Stall, Step::Send(HEAD.to_vec())];
    let peer = world.peer(begin.into_iter().chain(then).collect());
    let mailbox = Arc::new(Mailbox::new(Box::new(world.waker())));
    let post = Post::new(vec![Arc::clone(&mailbox)]);
    let handler = Press { readers: Readers::default(), number: 0, ended: Rc::default(), keeps: false };
    let mut worker = Worker::new(
        world,
        handler,
        WorkerParts { listeners: 1, mailbox, stats: Arc::default(), timeouts: TIMEOUTS, index: 0 },
    );
    let started_ms = worker.io().now_ms();
    for number in 1..=20 {
        post.send_to_worker(0, Owner::default(), News(number));
        let until_ms = started_ms + number * 45_000;
        while worker.io().now_ms() < until_ms {
            worker.io().set_alarm(until_ms);
            worker.turn().expect("the simulator does not fail");
        }
        let transcript = worker.io().transcript(peer);
        if transcript.ended.is_some() {
            return (transcript.ended_ms - started_ms, transcript.received.len());
        }
    }
    (900_000, worker.io().transcript(peer).received.len())
}

/// All that readers are sent here has room in the kernel: only what they acknowledge tells of them.
#[test]
fn a_reader_that_acknowledges_a_little_stays_and_one_that_does_not_goes() {
    let a_little = (1..=50).flat_map(|time| [Step::Wait(20_000), Step::TakeUpTo(time * 16)]);
    let (stayed_ms, _) = stays_ms(a_little);
    assert_eq!(stayed_ms, 900_000, "it takes 16 bytes every 20 s");
    let (stayed_ms, got_bytes) = stays_ms([Step::Read]);
    assert_eq!((stayed_ms, got_bytes > 20 * 7), (900_000, true), "it takes all");
    let (stayed_ms, _) = stays_ms([]);
    assert!((100_000..150_000).contains(&stayed_ms), "it takes nothing: {stayed_ms} ms");
    let (stayed_ms, _) = stays_ms([Step::TakeUpTo(150), Step::Wait(200_000), Step::TakeUpTo(160)]);
    assert!((250_000..500_000).contains(&stayed_ms), "it takes something until 200 s: {stayed_ms} ms");
}

#[test]
fn canary_readers_that_keep_their_requests_are_found() {
    let found = (0..50).filter(|seed| catch_unwind(AssertUnwindSafe(|| run(*seed, true))).is_err()).count();
    assert!(found > 0, "the account does not tell what is held");
}
