//! Where things stand in the maps shared with the BPF programs: the counterpart of `bpf/gate.h`.
//!
//! Each protected port has a line, by its place among them: an entry in the maps of orders, of credits spent,
//! of counters and of connections.
//!
//! It owns the order of the words, and what they say in the words of the gate. It must never open a map.

use crate::observation::{Orders, State};

/// Known, verified and unknown clients, in the order in which they are served.
pub const CLASS_COUNT: usize = 3;
/// What may become of a SYN; see [`Outcome`].
pub const OUTCOME_COUNT: usize = 6;
/// Lines of people, one for each protected port: as many ports may be protected.
pub const LINES_MAX: usize = 64;
/// Counters of ages: quarters of an octave, the first from 2^14 ns (16 us), the last from a second.
pub const AGE_COUNT: usize = 64;

/// Single addresses of this host of each family, at most.
pub(crate) const ADDRESSES_MAX: usize = 16_384;

/// Clients that share a place in the map `known`.
pub(crate) const KNOWN_WAYS: usize = 4;
/// Words that share a place in `again`.
pub(crate) const AGAIN_WORDS: usize = 2;
/// Parts of `again`, one after another in time.
pub(crate) const AGAIN_PARTS: usize = 1 << TICK_BITS;

/// Windows in which connections are counted for [`Orders::alarm`].
pub(crate) const ALARM_NS: u64 = 1 << 23;

const AGE_SHIFT: u32 = 14;
const TICK_BITS: usize = 3;
const OUTCOMES_AT: usize = 9;
const CLOCK_WORDS: usize = 3;
const SPENT_STRIDE: usize = 8;
const GRANTED_AT: usize = 7;
const AGES_AT: usize = 9;

/// Words of the map `counters`; the last are the program's clock.
pub(crate) const COUNTERS: usize = OUTCOMES_AT + CLASS_COUNT * OUTCOME_COUNT + CLOCK_WORDS;
/// Words of the map `orders`.
pub(crate) const ORDERS: usize = GRANTED_AT + CLASS_COUNT;
/// Words of the map `spent`.
pub(crate) const SPENT: usize = CLASS_COUNT * SPENT_STRIDE;
/// Words of the map `flows`.
pub(crate) const FLOWS: usize = AGES_AT + AGE_COUNT;

/// What became of a SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Let in.
    Passed,
    /// Shed: its class has no credit left.
    Credit,
    /// Shed: its prefix has had its share.
    Fair,
    /// Shed: it is on the list.
    Deny,
    /// Let in: it is on the list. Counted as unknown, like the next one.
    Allowed,
    /// Let in: there was no heartbeat for too long.
    LeaseOver,
}

impl Outcome {
    /// All, in the order of the program.
    pub const ALL: [Self; OUTCOME_COUNT] =
        [Self::Passed, Self::Credit, Self::Fair, Self::Deny, Self::Allowed, Self::LeaseOver];

    /// Whether it was not let in.
    pub fn is_shed(self) -> bool {
        matches!(self, Self::Credit | Self::Fair | Self::Deny)
    }
}

/// What was counted since the program was attached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that are not TCP to a protected port.
    pub other: u64,
    /// Segments to a protected port that are not judged, in frames of at most 128 bytes. All SYN are small.
    pub small: u64,
    /// Segments to a protected port that are not judged, in larger frames.
    pub large: u64,
    /// Fragments; they pass.
    pub fragments: u64,
    /// Frames that are cut short or contradict themselves; they pass.
    pub malformed: u64,
    /// Prefixes seen for the first time in a window, while connections are shed.
    pub prefixes: u64,
    /// Let in although counted as shed, because it is a dry run.
    pub dry: u64,
    /// Shed and answered by a reset or a cookie.
    pub answered: u64,
    /// SYN to a protected port at addresses that are not this host's; they pass.
    pub elsewhere: u64,
    /// SYN by class and [`Outcome`].
    pub outcomes: [[u64; OUTCOME_COUNT]; CLASS_COUNT],
    /// What became of connections; needs the tracker.
    pub flows: Option<Flows>,
}

/// What became of connections since the tracker was attached. A connection is silent until its first bytes
/// come, and then waits until the server begins with it: reads, or says something itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flows {
    /// Handshakes completed.
    pub established: u64,
    /// Connections that are followed until the server begins: those found at the start, and all whose
    /// handshake was completed since, but those beyond the map's size.
    pub tracked: u64,
    /// Of these: began to wait.
    pub asked: u64,
    /// Of these: the server has begun.
    pub begun: u64,
    /// Of these: the server spoke first.
    pub spoken: u64,
    /// Ended before a byte had come.
    pub left_silent: u64,
    /// Ended while they waited.
    pub left_waiting: u64,
    /// Connections that have ended.
    pub ended: u64,
    /// Reads by the server.
    pub reads: u64,
    /// How long those begun had waited.
    pub ages: [u64; AGE_COUNT],
}

impl Counters {
    /// What several lines have counted, together.
    pub fn together(lines: &[Self]) -> Self {
        let mut all = Self::default();
        lines.iter().for_each(|line| all.add(line));
        all
    }

    fn add(&mut self, line: &Self) {
        self.other += line.other;
        self.small += line.small;
        self.large += line.large;
        self.fragments += line.fragments;
        self.malformed += line.malformed;
        self.prefixes += line.prefixes;
        self.dry += line.dry;
        self.answered += line.answered;
        self.elsewhere += line.elsewhere;
        let (counts, more) = (self.outcomes.as_flattened_mut(), line.outcomes.as_flattened());
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        match (&mut self.flows, &line.flows) {
            (Some(flows), Some(more)) => flows.add(more),
            (flows, more) => *flows = flows.take().or_else(|| more.clone()),
        }
    }

    /// SYN of a class that came.
    pub fn syn(&self, class: usize) -> u64 {
        self.outcomes[class].iter().sum()
    }

    /// SYN with this outcome.
    pub fn with(&self, outcome: Outcome) -> u64 {
        self.outcomes.iter().map(|class| class[outcome as usize]).sum()
    }

    /// SYN of a class that were let in.
    pub fn passed(&self, class: usize) -> u64 {
        Outcome::ALL
            .iter()
            .filter(|outcome| !outcome.is_shed())
            .map(|outcome| self.outcomes[class][*outcome as usize])
            .sum()
    }

    /// SYN that were not let in, or would not have been.
    pub fn shed(&self) -> u64 {
        Outcome::ALL.into_iter().filter(|outcome| outcome.is_shed()).map(|outcome| self.with(outcome)).sum()
    }

    /// All frames that came.
    pub fn frames(&self) -> u64 {
        let judged: u64 = (0..CLASS_COUNT).map(|class| self.syn(class)).sum();
        judged + self.other + self.elsewhere + self.small + self.large + self.fragments + self.malformed
    }

    /// From the words of all processors.
    pub(crate) fn read(sets: &[[u64; COUNTERS]]) -> Self {
        let word = |at: usize| sets.iter().map(|set| set[at]).sum();
        let outcomes = std::array::from_fn(|class| {
            std::array::from_fn(|outcome| word(OUTCOMES_AT + class * OUTCOME_COUNT + outcome))
        });
        Self {
            other: word(0),
            small: word(1),
            large: word(2),
            fragments: word(3),
            malformed: word(4),
            prefixes: word(5),
            dry: word(6),
            answered: word(7),
            elsewhere: word(8),
            outcomes,
            flows: None,
        }
    }
}

impl Flows {
    fn add(&mut self, line: &Self) {
        self.established += line.established;
        self.tracked += line.tracked;
        self.asked += line.asked;
        self.begun += line.begun;
        self.spoken += line.spoken;
        self.left_silent += line.left_silent;
        self.left_waiting += line.left_waiting;
        self.ended += line.ended;
        self.reads += line.reads;
        self.ages.iter_mut().zip(&line.ages).for_each(|(count, more)| *count += more);
    }

    /// Connections that wait for the server to begin.
    pub fn waiting(&self) -> u64 {
        self.asked.saturating_sub(self.begun + self.left_waiting)
    }

    /// Connections on which nothing has come.
    pub fn silent(&self) -> u64 {
        self.tracked.saturating_sub(self.asked + self.left_silent)
    }

    /// From the words of all processors.
    pub(crate) fn read(sets: &[[u64; FLOWS]]) -> Self {
        let word = |at: usize| sets.iter().map(|set| set[at]).sum();
        Self {
            established: word(0),
            tracked: word(1),
            asked: word(2),
            begun: word(3),
            spoken: word(4),
            left_silent: word(5),
            left_waiting: word(6),
            ended: word(7),
            reads: word(8),
            ages: std::array::from_fn(|age| word(AGES_AT + age)),
        }
    }
}

/// The smallest age counted at this index of [`Flows::ages`], in nanoseconds. The first counts younger ones
/// too.
pub fn age_ns(index: usize) -> u64 {
    let (octave, quarter) = (index / 4, index as u64 % 4);
    ((4 + quarter) << octave) << (AGE_SHIFT - 2)
}

/// The orders in words. `granted` is what the classes may have spent in all.
pub(crate) fn order_words(orders: &Orders, granted: &[u64; CLASS_COUNT], now_ns: u64) -> [u64; ORDERS] {
    let mut words = [0; ORDERS];
    words[0] = now_ns;
    words[1] = u64::from(orders.state == State::Shedding);
    words[2] = u64::from(orders.verify);
    words[3] = u64::from(orders.window);
    words[4] = u64::from(orders.prefix_limit);
    words[5] = orders.alarm;
    words[6] = u64::from(orders.speaks_first);
    words[GRANTED_AT..].copy_from_slice(granted);
    words
}

/// What the classes have spent, from the words of the map.
pub(crate) fn spent(words: &[u64; SPENT]) -> [u64; CLASS_COUNT] {
    std::array::from_fn(|class| words[class * SPENT_STRIDE])
}

/// What a class may have spent in all from now on: what is left is bounded, what was overdrawn is kept, and
/// the new credits come on top.
pub(crate) fn grant(granted: u64, spent: u64, credits: u64, burst: u64) -> u64 {
    granted.min(spent.saturating_add(burst)).saturating_add(credits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `#define NAME VALUE` says, if it is a plain number.
    fn defined(name: &str) -> u64 {
        let header = include_str!("../../../bpf/gate.h");
        let prefix = format!("#define {name} ");
        let line = header.lines().find_map(|line| line.strip_prefix(&prefix));
        line.unwrap_or_else(|| panic!("gate.h does not define {name}")).parse().expect("a number")
    }

    #[test]
    fn both_sides_agree() {
        let agreed = [
            ("LINES_MAX", LINES_MAX),
            ("CLASS_COUNT", CLASS_COUNT),
            ("OUTCOME_COUNT", OUTCOME_COUNT),
            ("COUNT_OUTCOMES", OUTCOMES_AT),
            ("COUNT_ELSEWHERE", OUTCOMES_AT - 1),
            ("COUNT_ANSWERED", OUTCOMES_AT - 2),
            ("ADDRESSES_MAX", ADDRESSES_MAX),
            ("ORDER_GRANTED", GRANTED_AT),
            ("ORDER_SPEAKS_FIRST", GRANTED_AT - 1),
            ("ORDER_ALARM", GRANTED_AT - 2),
            ("ORDER_PREFIX_LIMIT", GRANTED_AT - 3),
            ("ALARM_SHIFT", ALARM_NS.trailing_zeros() as usize),
            ("SPENT_STRIDE", SPENT_STRIDE),
            ("KNOWN_WAYS", KNOWN_WAYS),
            ("AGAIN_WORDS", AGAIN_WORDS),
            ("TICK_BITS", TICK_BITS),
            ("FLOW_AGES", AGES_AT),
            ("FLOW_READS", AGES_AT - 1),
            ("AGE_COUNT", AGE_COUNT),
            ("AGE_SHIFT", AGE_SHIFT as usize),
            ("OUTCOME_PASSED", Outcome::Passed as usize),
            ("OUTCOME_SHED_CREDIT", Outcome::Credit as usize),
            ("OUTCOME_SHED_FAIR", Outcome::Fair as usize),
            ("OUTCOME_SHED_DENY", Outcome::Deny as usize),
            ("OUTCOME_ALLOWED", Outcome::Allowed as usize),
            ("OUTCOME_LEASE_OVER", Outcome::LeaseOver as usize),
        ];
        for (name, here) in agreed {
            assert_eq!(defined(name), here as u64, "{name}");
        }
    }

    #[test]
    fn counters_of_processors_are_added_up() {
        let mut first = [0; COUNTERS];
        let mut second = [0; COUNTERS];
        (first[0], second[0]) = (3, 4);
        first[OUTCOMES_AT] = 10;
        second[OUTCOMES_AT + OUTCOME_COUNT * 2 + Outcome::Credit as usize] = 7;
        first[OUTCOMES_AT + OUTCOME_COUNT * 2 + Outcome::Allowed as usize] = 2;
        let counters = Counters::read(&[first, second]);
        assert_eq!(counters.other, 7);
        assert_eq!([0, 1, 2].map(|class| counters.syn(class)), [10, 0, 9]);
        assert_eq!([0, 1, 2].map(|class| counters.passed(class)), [10, 0, 2]);
        assert_eq!((counters.shed(), counters.with(Outcome::Credit)), (7, 7));
    }

    #[test]
    fn lines_are_added_up() {
        let mut sets = [[0; COUNTERS]; 2];
        (sets[0][0], sets[1][1], sets[0][5], sets[1][5]) = (3, 4, 1, 2);
        (sets[0][OUTCOMES_AT], sets[1][OUTCOMES_AT], sets[1][OUTCOMES_AT + 7]) = (10, 20, 5);
        let mut words = [[0; FLOWS]; 2];
        (words[0][3], words[1][3], words[1][FLOWS - 1]) = (6, 7, 8);
        let line = |at: usize| Counters {
            flows: Some(Flows::read(&words[at..=at])),
            ..Counters::read(&sets[at..=at])
        };
        let all = Counters { flows: Some(Flows::read(&words)), ..Counters::read(&sets) };
        assert_eq!(Counters::together(&[line(0), line(1)]), all);
        assert_eq!(Counters::together(&[line(1)]), line(1));
        assert_eq!(Counters::together(&[Counters::default(), line(1)]).flows, line(1).flows);
    }

    #[test]
    fn ages_grow_by_quarters_of_an_octave() {
        assert_eq!(age_ns(0), 16_384);
        assert_eq!(age_ns(1), 20_480);
        assert_eq!(age_ns(4), 32_768);
        assert!(age_ns(AGE_COUNT - 1) < 1_000_000_000 && age_ns(AGE_COUNT) > 1_000_000_000);
    }

    #[test]
    fn what_is_left_is_bounded_and_what_was_overdrawn_is_kept() {
        for (granted, spent, credits, burst, expected) in [
            (0, 0, 10, 5, 10),
            (10, 10, 10, 5, 20),
            (10, 7, 10, 5, 20),
            (100, 7, 10, 5, 22),
            (10, 12, 10, 5, 20),
            (100, 7, 0, 0, 7),
            (u64::MAX, 7, u64::MAX, u64::MAX, u64::MAX),
        ] {
            assert_eq!(
                grant(granted, spent, credits, burst),
                expected,
                "{granted} {spent} {credits} {burst}"
            );
        }
    }
}
