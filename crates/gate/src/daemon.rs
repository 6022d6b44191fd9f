//! The loop: observe, decide, order, tell.
//!
//! It owns the ticks and the life of the program on the interfaces. It must never decide how many are let in.
//! Order: [`Daemon::start`], while the process may do what BPF needs; then [`Daemon::run`] on a thread of its
//! own.

mod addresses;
mod aside;
mod doubt;
mod outlook;
mod plan;
mod port_line;
mod post;
mod rush;
mod tally;
mod telling;
mod ticks;
mod whole;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use staunch_netio::clock;
use staunch_netio::host::punctual;

use crate::controller::Decision;
use crate::layout::Counters;
use crate::observation::{Observation, Orders};
use crate::program::{Attach, Program, Way};
use crate::sensors::{Closeness, Sensors};
use crate::snapshot::{Board, StatusSocket, StatusSocketError};

pub use plan::Plan;
pub use telling::{Event, Say};

use addresses::Addresses;
use doubt::Doubt;
use port_line::{Around, PortLine};
use post::Post;
use rush::Rush;
use telling::{Teller, Tick};
use whole::Whole;

/// A gate that stands, and does nothing until it runs.
pub struct Daemon {
    program: Program,
    way: Way,
    posts: Vec<Post>,
    sensors: Sensors,
    addresses: Addresses,
    doubt: Doubt,
    /// A line for each port, in the order of lines.
    ports: Vec<PortLine>,
    teller: Teller,
    /// What each line has counted.
    counters: Vec<Counters>,
    totals: Counters,
    rush: Rush,
    before_ns: u64,
    status_sockets: Vec<StatusSocket>,
}

impl Daemon {
    /// Attaches the program to every interface; all come in until it runs.
    ///
    /// # Errors
    /// In a sentence: a privilege, an interface or a feature of the kernel is missing; another gate is there,
    /// or another program.
    pub fn start(plan: Plan, version: &str, say: Say) -> Result<Self, String> {
        let board = Board::default();
        let (status_sockets, mut notes) = make_status_sockets(&plan.interfaces)?;
        let (sensors, lost) = Sensors::open(&plan.ports);
        notes.extend(lost);
        let (mut program, mut posts) = attach(&plan)?;
        notes.extend(posts.iter_mut().filter_map(Post::moderate));
        for note in program.notes() {
            notes.push(note.clone());
        }
        let addresses = Addresses::new(program.take_followed());
        let now_ns = clock::now_ns();
        // So that who comes before the first turn is counted as let in, not as let in without orders.
        let give = program.give(&Orders::default(), now_ns);
        give.map_err(|error| format!("the program's orders cannot be written: {error}"))?;
        let lines = program.line_counters();
        let counters = lines.unwrap_or_else(|_| vec![Counters::default(); plan.ports.len()]);
        let ports = counters.iter().map(|line| PortLine::new(plan.settings, line.clone())).collect();
        let teller = Teller::new(&plan, version, notes, board, say, now_ns);
        Ok(Self {
            program,
            way: plan.way,
            posts,
            sensors,
            addresses,
            doubt: Doubt::new(&plan.ports),
            ports,
            teller,
            totals: Counters::together(&counters),
            counters,
            rush: Rush::default(),
            before_ns: now_ns,
            status_sockets,
        })
    }

    /// Where the latest figures stand.
    pub fn board(&self) -> Board {
        self.teller.board()
    }

    /// What is lost on this host, each in a sentence.
    pub fn notes(&self) -> &[String] {
        self.teller.notes()
    }

    /// Each interface, and the way the program took there.
    pub fn interfaces(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.posts.iter().map(|post| (post.name(), post.way_word().unwrap_or("missing")))
    }

    /// Works until it is stopped, and detaches.
    pub fn run(mut self, stop: &AtomicBool) {
        for post in &mut self.posts {
            post.begin(&self.teller);
        }
        if let Err(error) = self.addresses.begin() {
            self.teller.trouble("thread that follows addresses", &error);
        }
        if let Err(error) = self.doubt.begin() {
            self.teller.trouble("thread that asks sockets", &error);
        }
        // Without it waits end 50 us late: nothing that matters at 5 ms.
        let _ = clock::fine_timers();
        self.teller.begin(punctual::run_first());
        let board = self.board();
        for socket in &mut self.status_sockets {
            if let Err(error) = socket.open(&board) {
                self.teller.trouble("figures", &error);
            }
        }
        let mut due_ns = clock::now_ns();
        while !stop.load(Relaxed) {
            let now_ns = self.tick();
            let every_ns = self.ports.iter().map(PortLine::every_ns).min().unwrap_or(u64::MAX);
            due_ns += every_ns;
            if due_ns + every_ns < now_ns {
                // The daemon was not let run, or the host slept: what was missed is not made up for.
                self.teller.late();
                due_ns = now_ns + every_ns;
            }
            if self.wait(due_ns) {
                due_ns = clock::now_ns();
            }
        }
        self.teller.end(&self.totals);
    }

    /// Waits until it is time, or until it is woken: then it says so.
    fn wait(&mut self, due_ns: u64) -> bool {
        let length = Duration::from_nanos(due_ns.saturating_sub(clock::now_ns()));
        self.program.wait(length).unwrap_or_else(|error| {
            self.teller.trouble("the alarm", &error);
            clock::pause(length);
            false
        })
    }

    /// Says when it looked.
    fn tick(&mut self) -> u64 {
        let began_ns = clock::now_ns();
        for post in &mut self.posts {
            post.look(began_ns, self.rush.frames_per_s(), &mut self.program, self.way, &self.teller);
        }
        self.addresses.look(began_ns, &self.teller);
        let observations = self.observe();
        let now_ns = self.before_ns;
        let decisions: Vec<Decision> =
            self.ports.iter_mut().zip(&observations).map(|(port, seen)| port.step(seen)).collect();
        self.order(&decisions, now_ns);
        let doubted = decisions.iter().enumerate().filter(|(_, decision)| decision.asks_sockets);
        self.doubt.ask(doubted.map(|(place, _)| place));
        let whole = Whole::of(&decisions);
        let interfaces = || self.posts.iter().map(Post::figures).collect();
        let (lines, totals) = (&self.counters[..], &self.totals);
        let tick = Tick { now_ns, observations: &observations, decisions: &decisions, lines, totals };
        self.teller.tick(&tick, &whole, &interfaces);
        self.rush.see(&whole, &self.totals, now_ns);
        now_ns
    }

    /// What came to each line.
    fn observe(&mut self) -> Vec<Observation> {
        let closeness = match self.program.is_tracking() {
            true if self.ports.iter().all(PortLine::is_idle) => Closeness::Idle,
            true => Closeness::Calm,
            false => Closeness::Close,
        };
        let host = self.sensors.read(clock::now_ns(), closeness);
        // What counts is when these were read, however long all before them took.
        let now_ns = clock::now_ns();
        match self.program.line_counters() {
            Ok(counters) => self.counters = counters,
            Err(error) => self.teller.trouble("counters", &error),
        }
        self.totals = Counters::together(&self.counters);
        let interval_ns = now_ns.saturating_sub(std::mem::replace(&mut self.before_ns, now_ns));
        let around = Around { now_ns, interval_ns, host: &host };
        let answers = self.doubt.answers();
        let told = |place| answers.iter().find(|(one, _)| *one == place).map(|(_, waiting)| *waiting);
        let ports = self.ports.iter_mut().zip(&self.counters).enumerate();
        let mut observations: Vec<Observation> =
            ports.map(|(place, (port, line))| port.observe(place, line, told(place), &around)).collect();
        tally::tell_of_others(&mut observations);
        observations
    }

    /// Tells the program what to do, and that the daemon lives.
    fn order(&mut self, decisions: &[Decision], now_ns: u64) {
        for (place, (port, decision)) in self.ports.iter_mut().zip(decisions).enumerate() {
            let Some(orders) = port.orders_due(decision, now_ns) else { continue };
            if let Err(error) = self.program.give_line(place, &orders, now_ns) {
                self.teller.trouble("orders", &error);
            }
        }
    }
}

/// Loads the program and puts it on every interface.
fn attach(plan: &Plan) -> Result<(Program, Vec<Post>), String> {
    let Some((first, others)) = plan.interfaces.split_first() else {
        return Err("no interface is named".to_owned());
    };
    let attach = Attach {
        interface: first,
        ports: &plan.ports,
        way: plan.way,
        reject: plan.reject,
        dry_run: plan.dry_run,
        allow: &plan.allow,
        deny: &plan.deny,
        addresses: &plan.addresses,
        tracker: true,
    };
    let mut program = Program::attach(&attach).map_err(|error| error.to_string())?;
    let mut posts = vec![Post::new(first, program.way(), plan)?];
    for name in others {
        let way = program.add(name, plan.way).map_err(|error| error.to_string())?;
        posts.push(Post::new(name, way, plan)?);
    }
    Ok((program, posts))
}

/// Makes a socket of status for each interface. A socket that cannot be made is a note.
fn make_status_sockets(interfaces: &[String]) -> Result<(Vec<StatusSocket>, Vec<String>), String> {
    let (mut sockets, mut notes) = (Vec::new(), Vec::new());
    for interface in interfaces {
        match StatusSocket::new(interface) {
            Ok(socket) => sockets.push(socket),
            Err(StatusSocketError::Unusable(note)) => notes.push(note),
            Err(StatusSocketError::Taken(text)) => return Err(text),
        }
    }
    Ok((sockets, notes))
}
