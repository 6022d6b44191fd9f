//! Request and reply: repeated until it is answered, done at most once.
//!
//! Contract: a service does the work of a transaction at most once, whatever is lost or doubled; a caller
//! learns the outcome, or that its patience is over (then the work was done once or never). The first 8 bytes
//! of a REQUEST and of a REPLY are the number of the transaction; the message id is its low 16 bits.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Sender;

/// Bytes before a request or a reply.
const NUMBER_BYTES: usize = 8;

/// Transactions of one caller that are under way to one node: the window.
const WINDOW_COUNT: usize = 64;

/// The first guess of a round trip, with all that a busy service adds to it.
const FIRST_TIMEOUT_US: u64 = 20_000;

/// The least time until a repetition: scheduling takes that long now and then.
const TIMEOUT_US_MIN: u64 = 1_000;

/// The longest time until a repetition.
const TIMEOUT_US_MAX: u64 = 1_000_000;

/// How long a service remembers a transaction after its last request: ten of the longest repetitions.
const MEMORY_US: u64 = 10_000_000;

/// Transactions a service remembers, those under work included; beyond, new ones are not begun.
const REMEMBERED_MAX: usize = 65_536;

/// Bytes of replies a service keeps for repetitions; beyond, new ones are not begun.
const REPLY_BYTES_MAX: usize = 4 << 20;

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concluded {
    /// The service's reply.
    Reply(Vec<u8>),
    /// Nothing was heard in time: it was done once or never.
    Unknown,
}

#[derive(Debug)]
struct Pending {
    to: Sender,
    request: Vec<u8>,
    sent_us: u64,
    repeat_us: u64,
    timeout_us: u64,
    ends_us: u64,
    repeated: bool,
}

/// What is measured of the way to a node (RFC 6298).
#[derive(Debug, Clone, Copy)]
struct RoundTrip {
    mean_us: u64,
    deviation_us: u64,
}

/// The calling side.
#[derive(Debug)]
pub struct Caller {
    next: u64,
    pending: BTreeMap<u64, Pending>,
    trips: HashMap<u16, RoundTrip>,
    /// Requests that were sent again.
    pub repeated: u64,
}

impl Caller {
    /// Begins with this number: a random one.
    pub fn new(first: u64) -> Self {
        Self { next: first, pending: BTreeMap::new(), trips: HashMap::new(), repeated: 0 }
    }

    /// Begins a transaction; its number, and the payload of the REQUEST to be sent. `None` while the window
    /// to that node is full.
    pub fn begin(
        &mut self,
        to: Sender,
        request: &[u8],
        patience_us: u64,
        now_us: u64,
    ) -> Option<(u64, Vec<u8>)> {
        if self.pending.values().filter(|pending| pending.to.0 == to.0).count() >= WINDOW_COUNT {
            return None;
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let payload = [&number.to_be_bytes()[..], request].concat();
        let timeout_us = self.timeout_us(to.0);
        let pending = Pending {
            to,
            request: payload.clone(),
            sent_us: now_us,
            repeat_us: now_us + timeout_us,
            timeout_us,
            ends_us: now_us + patience_us,
            repeated: false,
        };
        self.pending.insert(number, pending);
        Some((number, payload))
    }

    /// Takes the payload of a REPLY. Whatever comes of it, an ACK with the same message id is to be sent.
    pub fn take(&mut self, from: Sender, payload: &[u8], now_us: u64) -> Option<(u64, Concluded)> {
        let (number, reply) = payload.split_first_chunk::<NUMBER_BYTES>()?;
        let number = u64::from_be_bytes(*number);
        let pending = self.pending.get(&number).filter(|pending| pending.to == from)?;
        // After a repetition nobody knows which of both was answered (Karn's rule).
        if !pending.repeated {
            let took_us = now_us.saturating_sub(pending.sent_us);
            self.measure(from.0, took_us);
        }
        self.pending.remove(&number);
        Some((number, Concluded::Reply(reply.to_vec())))
    }

    /// What is due: requests to be sent again, and transactions whose patience is over.
    pub fn due(&mut self, now_us: u64, repeat: &mut dyn FnMut(Sender, u64, &[u8])) -> Vec<(u64, Concluded)> {
        let ended: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.ends_us <= now_us)
            .map(|(number, _)| *number)
            .collect();
        for number in &ended {
            self.pending.remove(number);
        }
        for (number, pending) in &mut self.pending {
            if pending.repeat_us <= now_us {
                pending.timeout_us = (2 * pending.timeout_us).min(TIMEOUT_US_MAX);
                pending.repeat_us = now_us + pending.timeout_us;
                pending.repeated = true;
                self.repeated += 1;
                repeat(pending.to, *number, &pending.request);
            }
        }
        ended.into_iter().map(|number| (number, Concluded::Unknown)).collect()
    }

    /// When [`Caller::due`] has something to do at the earliest.
    pub fn due_us(&self) -> Option<u64> {
        self.pending.values().map(|pending| pending.repeat_us.min(pending.ends_us)).min()
    }

    fn timeout_us(&self, node: u16) -> u64 {
        let trip = self.trips.get(&node);
        let measured = trip.map(|trip| trip.mean_us + 4 * trip.deviation_us);
        measured.map_or(FIRST_TIMEOUT_US, |timeout_us| timeout_us.clamp(TIMEOUT_US_MIN, TIMEOUT_US_MAX))
    }

    fn measure(&mut self, node: u16, took_us: u64) {
        let first = RoundTrip { mean_us: took_us, deviation_us: took_us / 2 };
        let trip = self.trips.entry(node).or_insert(first);
        trip.deviation_us = (3 * trip.deviation_us + trip.mean_us.abs_diff(took_us)) / 4;
        trip.mean_us = (7 * trip.mean_us + took_us) / 8;
    }
}

/// What a service is to do with a REQUEST.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// The work, once; [`Service::answer`] follows.
    Work {
        /// The number, by which it is answered.
        number: u64,
        /// The bytes of the request.
        request: &'a [u8],
    },
    /// The work was done before: this reply is to be sent again.
    Again(Vec<u8>),
    /// Nothing: it is being done, or was and has been acknowledged, or there is no room, or it is no request.
    Nothing,
}

#[derive(Debug)]
enum State {
    Working,
    Answered(Vec<u8>),
    Acknowledged,
}

#[derive(Debug)]
struct Known {
    state: State,
    until_us: u64,
}

/// The serving side.
#[derive(Debug, Default)]
pub struct Service {
    known: HashMap<(Sender, u64), Known>,
    /// Each with the time at which its memory is looked at: it may be over then, unless it was prolonged.
    order: VecDeque<(u64, (Sender, u64))>,
    reply_bytes: usize,
    /// Transactions whose reply is kept, by the message id an ACK bears.
    unacknowledged: HashMap<(Sender, u16), u64>,
    /// Requests that were not begun because too much is remembered.
    pub refused: u64,
}

impl Service {
    /// Takes the payload of a REQUEST.
    pub fn take<'a>(&mut self, from: Sender, payload: &'a [u8], now_us: u64) -> Asked<'a> {
        self.forget(now_us);
        let Some((number, request)) = payload.split_first_chunk::<NUMBER_BYTES>() else {
            return Asked::Nothing;
        };
        let number = u64::from_be_bytes(*number);
        if let Some(known) = self.known.get_mut(&(from, number)) {
            known.until_us = now_us + MEMORY_US;
            return if let State::Answered(reply) = &known.state {
                Asked::Again(reply.clone())
            } else {
                Asked::Nothing
            };
        }
        if self.known.len() >= REMEMBERED_MAX || self.reply_bytes >= REPLY_BYTES_MAX {
            self.refused += 1;
            return Asked::Nothing;
        }
        self.known.insert((from, number), Known { state: State::Working, until_us: now_us + MEMORY_US });
        self.order.push_back((now_us + MEMORY_US, (from, number)));
        Asked::Work { number, request }
    }

    /// The work is done: the payload of the REPLY to be sent.
    pub fn answer(&mut self, to: Sender, number: u64, reply: &[u8], now_us: u64) -> Vec<u8> {
        let payload = [&number.to_be_bytes()[..], reply].concat();
        if let Some(known) = self.known.get_mut(&(to, number))
            && matches!(known.state, State::Working)
        {
            known.state = State::Answered(payload.clone());
            known.until_us = now_us + MEMORY_US;
            self.reply_bytes += payload.len();
            self.unacknowledged.insert((to, number as u16), number);
        }
        payload
    }

    /// Takes an ACK: the replies with this message id need not be kept. That they were given is remembered.
    pub fn acknowledged(&mut self, from: Sender, message_id: u16) {
        let Some(number) = self.unacknowledged.remove(&(from, message_id)) else { return };
        if let Some(known) = self.known.get_mut(&(from, number))
            && let State::Answered(reply) = &known.state
        {
            self.reply_bytes -= reply.len();
            known.state = State::Acknowledged;
        }
    }

    /// Bytes of replies that are kept, and transactions that are remembered.
    pub fn remembered(&self) -> (usize, usize) {
        (self.reply_bytes, self.known.len())
    }

    fn forget(&mut self, now_us: u64) {
        while let Some((look_us, key)) = self.order.front().copied()
            && look_us <= now_us
        {
            self.order.pop_front();
            let Some(known) = self.known.get(&key) else { continue };
            let is_working = matches!(known.state, State::Working);
            if is_working || now_us < known.until_us {
                // The transaction is looked at again when what is known now is over.
                let until_us = if is_working { now_us + MEMORY_US } else { known.until_us };
                self.order.push_back((until_us, key));
                continue;
            }
            if let State::Answered(reply) = &known.state {
                self.reply_bytes -= reply.len();
                let id = (key.0, key.1 as u16);
                if self.unacknowledged.get(&id) == Some(&key.1) {
                    self.unacknowledged.remove(&id);
                }
            }
            self.known.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
