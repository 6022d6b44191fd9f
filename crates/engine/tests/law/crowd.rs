//! A crowd before an application with the law between them: events in order of their time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use staunch_engine::{LimitLaw, Observation, Served, WaitingLine};

use crate::application::{Application, Random};

/// Seconds that a client waits.
const PATIENCE_S: f64 = 1.0;
/// Seconds between two observations of the law.
const STEP_S: f64 = 0.01;

/// The device between the crowd and the application.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Front {
    /// The law and its line.
    Law,
    /// None: all requests go in at once.
    Nothing,
}

/// Counts of a crowd's answers.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Answers within the patience, in each second.
    pub(crate) good: Vec<f64>,
    /// Requests that came, and of them those refused or answered too late, behind the first seconds.
    pub(crate) came: f64,
    pub(crate) lost: f64,
    /// Seconds that good answers took.
    pub(crate) took_s: Vec<f64>,
    pub(crate) limit: u32,
}

impl Outcome {
    /// Good answers a second between two seconds.
    pub(crate) fn rate(&self, from: usize, until: usize) -> f64 {
        self.good[from..until].iter().sum::<f64>() / (until - from) as f64
    }

    /// Seconds within which 99 % of the good answers came.
    pub(crate) fn p99_s(&mut self) -> f64 {
        self.took_s.sort_by(f64::total_cmp);
        self.took_s.get(self.took_s.len() * 99 / 100).copied().unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
enum Event {
    Arrival,
    /// The request with this number is answered.
    Answer(usize),
    Step,
}

/// An event at its time; `number` tells those of the same time apart.
struct Timed {
    at_s: f64,
    number: u64,
    event: Event,
}

impl Ord for Timed {
    /// The earliest is the greatest, for the heap gives that first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at_s.total_cmp(&self.at_s).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timed {}

#[derive(Clone, Copy)]
struct Request {
    came_s: f64,
    begun_s: f64,
}

/// A simulation under way.
struct Crowd<'a> {
    application: &'a Application,
    front: Front,
    random: Random,
    now_s: f64,
    events: BinaryHeap<Timed>,
    events_ever: u64,
    requests: Vec<Request>,
    /// Numbers of requests: waiting for their turn, in work but not served yet.
    waiting: VecDeque<usize>,
    inside: VecDeque<usize>,
    in_work: usize,
    served: usize,
    law: LimitLaw,
    line: WaitingLine,
    seen: Observation,
    outcome: Outcome,
    /// From this second on what is lost counts: the law has begun by then.
    counted_from_s: f64,
}

/// Runs a crowd of so many a second for some seconds.
pub(crate) fn run(
    application: &Application,
    front: Front,
    seed: u64,
    offered: f64,
    seconds: usize,
    counted_from_s: f64,
) -> Outcome {
    let mut crowd = Crowd {
        application,
        front,
        random: Random(seed),
        now_s: 0.0,
        events: BinaryHeap::new(),
        events_ever: 0,
        requests: Vec::new(),
        waiting: VecDeque::new(),
        inside: VecDeque::new(),
        in_work: 0,
        served: 0,
        law: LimitLaw::new(PATIENCE_S),
        line: WaitingLine::new(PATIENCE_S),
        seen: Observation::default(),
        outcome: Outcome { good: vec![0.0; seconds + 1], ..Outcome::default() },
        counted_from_s,
    };
    crowd.plan(0.0, Event::Arrival);
    crowd.plan(STEP_S, Event::Step);
    while let Some(Timed { at_s, event, .. }) = crowd.events.pop()
        && at_s <= seconds as f64
    {
        crowd.now_s = at_s;
        match event {
            Event::Arrival => crowd.arrive(offered),
            Event::Answer(number) => crowd.answer(number),
            Event::Step => crowd.step(),
        }
        crowd.give_up();
        crowd.begin();
        crowd.serve();
    }
    crowd.outcome.limit = crowd.law.limit();
    crowd.outcome
}

impl Crowd<'_> {
    fn plan(&mut self, in_s: f64, event: Event) {
        self.events_ever += 1;
        self.events.push(Timed { at_s: self.now_s + in_s, number: self.events_ever, event });
    }

    fn limit(&self) -> usize {
        match self.front {
            Front::Law => self.law.limit() as usize,
            Front::Nothing => usize::MAX,
        }
    }

    fn lose(&mut self) {
        if self.now_s >= self.counted_from_s {
            self.outcome.lost += 1.0;
        }
    }

    fn arrive(&mut self, offered: f64) {
        let next_s = self.random.exponential(1.0 / offered);
        self.plan(next_s, Event::Arrival);
        if self.now_s >= self.counted_from_s {
            self.outcome.came += 1.0;
        }
        self.line.came(self.now_s, 1);
        let number = self.requests.len();
        self.requests.push(Request { came_s: self.now_s, begun_s: 0.0 });
        if self.in_work >= self.limit() {
            self.seen.was_full = true;
            let waited_s =
                self.waiting.front().map_or(0.0, |first| self.now_s - self.requests[*first].came_s);
            let served = Served { rate: self.law.rate(), in_work_s: self.law.in_work_s() };
            if self.waiting.len() >= self.line.room(served, waited_s) as usize {
                self.seen.was_shedding = true;
                return self.lose();
            }
        }
        self.waiting.push_back(number);
    }

    fn answer(&mut self, number: usize) {
        let Request { came_s, begun_s } = self.requests[number];
        self.served -= 1;
        self.in_work -= 1;
        let in_work_s = self.now_s - begun_s;
        self.seen.answers += 1;
        self.seen.in_work_s += in_work_s;
        self.seen.in_work_s_squared += in_work_s * in_work_s;
        let took_s = self.now_s - came_s;
        if took_s > PATIENCE_S {
            return self.lose();
        }
        self.outcome.good[self.now_s as usize] += 1.0;
        self.outcome.took_s.push(took_s);
    }

    fn step(&mut self) {
        let in_work = self.in_work as u32;
        let seen = std::mem::take(&mut self.seen);
        self.law.step(&Observation { interval_s: STEP_S, in_work, ..seen });
        self.plan(STEP_S, Event::Step);
    }

    /// Clients whose patience is over leave the line.
    fn give_up(&mut self) {
        while self.waiting.front().is_some_and(|first| self.now_s - self.requests[*first].came_s > PATIENCE_S)
        {
            self.waiting.pop_front();
            self.lose();
        }
    }

    /// Requests go to the application while it is given more.
    fn begin(&mut self) {
        while self.in_work < self.limit()
            && let Some(number) = self.waiting.pop_front()
        {
            self.requests[number].begun_s = self.now_s;
            self.in_work += 1;
            self.inside.push_back(number);
        }
        self.seen.was_full |= !self.waiting.is_empty();
    }

    /// The application serves as many as it has places.
    fn serve(&mut self) {
        while self.served < (self.application.places)(self.now_s)
            && let Some(number) = self.inside.pop_front()
        {
            self.served += 1;
            let service_s = self.application.serve(self.now_s, self.in_work, &mut self.random);
            self.plan(service_s, Event::Answer(number));
        }
    }
}
