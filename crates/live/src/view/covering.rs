//! Patterns that readers of a worker ask for, and the topics that each covers.
//!
//! It owns the comparison of patterns with topics, which goes on in steps: a worker has other things to do.
//! It must never be asked for the topics of a pattern whose turn has not come, nor hold a pattern that
//! nobody asks for any longer than its topics take to be told.
//!
//! Order: `ask` gives the places of an interest's patterns, or the turn to wait for; `enter` once a group has
//! them, `leave` when it is gone. Who waits calls `hold`, and `release` afterwards. `step` with each letter,
//! and by mail while `has_work`.

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt as _};

use super::topics::Topics;
use crate::interest::Interest;
use crate::limits::{PATTERN_PLACES_BYTES, PATTERNS_MAX, PATTERNS_PER_CLIENT_MAX, STEP_WORK_MAX};
use crate::name::TopicName;
use crate::pattern::Pattern;
use crate::pattern::table::PatternTable;
use crate::topic::TopicId;

/// What belongs to a pattern.
#[derive(Debug)]
struct Covering {
    /// The topics it covers, in order; none are listed for a pattern that covers all.
    topics: Vec<TopicId>,
    /// The groups that ask for it. It stands in the account of the first.
    groups: Vec<u32>,
    /// How often it is held by those that wait.
    holds: u32,
    /// When it has been compared with all topics: by the count of such turns.
    turn: u64,
    /// The client that asked for the pattern first.
    client: u64,
    is_all: bool,
    is_leaving: bool,
}

/// What becomes of patterns that are asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AskedPatterns {
    /// Their places, in order.
    Places(Vec<u32>),
    /// They are being compared with the topics until this turn.
    Turn(u64),
    /// There are as many as may be, or as many of this client.
    Full,
}

/// The patterns of a worker, and the topics that each covers.
pub(crate) struct Coverings {
    table: PatternTable<Covering>,
    /// Places of those that cover all.
    all: Vec<u32>,
    /// Places of those that have not been compared with all topics, the oldest first.
    line: VecDeque<u32>,
    /// The last name that the first of them was compared with.
    cursor: Option<TopicName>,
    /// Places of those whose topics are to be told that they are gone.
    leaving: VecDeque<u32>,
    /// Places of those that were asked for without a group.
    unused: Vec<u32>,
    by_client: HashMap<u64, u32>,
    turns: u64,
    compared_to: u64,
    /// What may be done until the next step.
    left: usize,
    work: u64,
}

impl Coverings {
    pub(crate) fn new() -> Self {
        Self {
            table: PatternTable::new(),
            all: Vec::new(),
            line: VecDeque::new(),
            cursor: None,
            leaving: VecDeque::new(),
            unused: Vec::new(),
            by_client: HashMap::new(),
            turns: 0,
            compared_to: 0,
            left: STEP_WORK_MAX,
            work: 0,
        }
    }

    /// The turn that is over.
    pub(crate) fn compared_to(&self) -> u64 {
        self.compared_to
    }

    /// What comparing has taken so far, see [`Pattern::compare`].
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Whether there is something for `step` to do.
    pub(crate) fn has_work(&self) -> bool {
        !self.line.is_empty() || !self.leaving.is_empty() || !self.unused.is_empty()
    }

    /// The places of an interest's patterns. Those that are new stand in line.
    pub(crate) fn ask(&mut self, interest: &Interest, client: u64, topics: &mut Topics) -> AskedPatterns {
        let is_new = |pattern: &&Pattern| self.table.find(pattern).is_none();
        let new = interest.patterns.iter().filter(is_new).count();
        let own = self.by_client.get(&client).map_or(0, |count| *count as usize);
        if new > 0 && (self.table.len() + new > PATTERNS_MAX || own + new > PATTERNS_PER_CLIENT_MAX) {
            return AskedPatterns::Full;
        }
        let mut places = Vec::with_capacity(interest.patterns.len());
        for pattern in &interest.patterns {
            let found = self.table.find(pattern);
            places.push(found.unwrap_or_else(|| self.add(pattern.clone(), client)));
        }
        self.compare(topics);
        let turn = places.iter().filter_map(|place| Some(self.get(*place)?.turn)).max().unwrap_or(0);
        if turn > self.compared_to {
            return AskedPatterns::Turn(turn);
        }
        places.sort_unstable();
        AskedPatterns::Places(places)
    }

    fn add(&mut self, pattern: Pattern, client: u64) -> u32 {
        let is_all = pattern.is_all();
        self.turns += u64::from(!is_all);
        let turn = if is_all { 0 } else { self.turns };
        let (topics, groups) = (Vec::new(), Vec::new());
        let covering = Covering { topics, groups, holds: 0, turn, client, is_all, is_leaving: false };
        let place = self.table.add(pattern, covering);
        if is_all {
            self.all.push(place)
        } else {
            self.line.push_back(place)
        }
        self.unused.push(place);
        *self.by_client.entry(client).or_default() += 1;
        place
    }

    /// The place of a pattern.
    pub(crate) fn find(&self, pattern: &Pattern) -> Option<u32> {
        self.table.find(pattern)
    }

    fn get(&self, place: u32) -> Option<&Covering> {
        self.table.get(place).map(|(_, covering)| covering)
    }

    /// A group has the pattern.
    pub(crate) fn enter(&mut self, place: u32, group: u32) {
        if let Some(covering) = self.table.get_mut(place) {
            covering.groups.push(group);
        }
    }

    /// A group has it no more. Gives the group in whose account the pattern is from now on, if that was this
    /// group's.
    pub(crate) fn leave(&mut self, place: u32, group: u32) -> Option<u32> {
        let covering = self.table.get_mut(place)?;
        let index = covering.groups.iter().position(|own| *own == group)?;
        // The first of them may be any.
        covering.groups.swap_remove(index);
        let next = covering.groups.first().copied();
        self.drop_unused(place);
        next.filter(|_| index == 0)
    }

    /// Keeps the patterns of an interest while a reader waits for them.
    pub(crate) fn hold(&mut self, interest: &Interest) {
        for pattern in &interest.patterns {
            if let Some(place) = self.table.find(pattern)
                && let Some(covering) = self.table.get_mut(place)
            {
                covering.holds += 1;
            }
        }
    }

    /// The waiting that `hold` began is over.
    pub(crate) fn release(&mut self, interest: &Interest) {
        for pattern in &interest.patterns {
            if let Some(place) = self.table.find(pattern)
                && let Some(covering) = self.table.get_mut(place)
            {
                covering.holds = covering.holds.saturating_sub(1);
                self.unused.push(place);
            }
        }
    }

    /// Lets a pattern go that neither a group nor somebody who waits has.
    fn drop_unused(&mut self, place: u32) {
        let Some(covering) = self.table.get_mut(place) else { return };
        if covering.is_leaving || covering.holds > 0 || !covering.groups.is_empty() {
            return;
        }
        covering.is_leaving = true;
        self.table.hide(place);
        self.all.retain(|own| *own != place);
        self.leaving.push_back(place);
    }

    /// Goes on for a while: lets those go that nobody has, and compares the others with topics.
    pub(crate) fn step(&mut self, topics: &mut Topics) {
        self.left = STEP_WORK_MAX;
        for place in std::mem::take(&mut self.unused) {
            self.drop_unused(place);
        }
        while self.left > 0
            && let Some(place) = self.leaving.front().copied()
        {
            self.tell_topics(place, topics);
        }
        self.compare(topics);
    }

    /// Tells topics of a pattern that it is gone, and removes it once all of them know.
    fn tell_topics(&mut self, place: u32, topics: &mut Topics) {
        let Some(covering) = self.table.get_mut(place) else {
            self.leaving.pop_front();
            return;
        };
        let told = covering.topics.len().saturating_sub(self.left);
        self.left -= (covering.topics.len() - told).max(1);
        covering.topics.drain(told..).for_each(|id| topics.uncover(id, place));
        if !covering.topics.is_empty() {
            return;
        }
        self.leaving.pop_front();
        if self.line.front() == Some(&place) {
            self.cursor = None;
        }
        self.line.retain(|own| *own != place);
        let Some(covering) = self.table.remove(place) else { return };
        if let Some(count) = self.by_client.get_mut(&covering.client) {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&covering.client);
            }
        }
    }

    /// Compares the first of the line with topics, and those behind it, as long as work is left.
    fn compare(&mut self, topics: &mut Topics) {
        while self.left > 0
            && let Some(place) = self.line.front().copied()
        {
            let Some((pattern, covering)) = self.table.get(place) else { return };
            let (turn, mut work, mut found) = (covering.turn, 0, Vec::new());
            let (mut last, mut is_over) = (None, true);
            for (name, id) in topics.beginning_with(pattern.begin(), self.cursor.as_ref()) {
                if work >= self.left || covering.is_leaving {
                    is_over = covering.is_leaving;
                    break;
                }
                if pattern.compare(name, &mut work) {
                    found.push(id);
                }
                last = Some(name);
            }
            let last = last.cloned();
            found.iter().for_each(|id| topics.cover(*id, place));
            if let Some(covering) = self.table.get_mut(place) {
                covering.topics.extend(found);
                if is_over {
                    covering.topics.sort_unstable();
                    covering.topics.dedup();
                    covering.topics.shrink_to_fit();
                }
            }
            self.left = self.left.saturating_sub(work);
            self.work += work as u64;
            if !is_over {
                self.cursor = last;
                return;
            }
            (self.cursor, self.compared_to) = (None, turn);
            self.line.pop_front();
        }
    }

    /// Places of the patterns that cover a new topic, those that cover all aside.
    pub(crate) fn of_new_topic(&mut self, name: &TopicName, id: TopicId) -> Vec<u32> {
        let mut work = 0;
        let covers = |place: &u32| {
            self.table
                .get(*place)
                .is_some_and(|(pattern, own)| !own.is_all && pattern.compare(name, &mut work))
        };
        let mut places: Vec<u32> = self.table.candidates(name).filter(covers).collect();
        places.sort_unstable();
        self.work += work as u64;
        for place in &places {
            let Some(covering) = self.table.get_mut(*place) else { continue };
            // While a pattern stands in line its topics are not in order.
            match covering.topics.binary_search(&id) {
                _ if covering.turn > self.compared_to => covering.topics.push(id),
                Err(index) => covering.topics.insert(index, id),
                Ok(_) => {}
            }
        }
        places
    }

    /// A topic is gone that these places covered.
    pub(crate) fn forget(&mut self, places: &[u32], id: TopicId) {
        for place in places {
            let Some(covering) = self.table.get_mut(*place) else { continue };
            match covering.topics.binary_search(&id) {
                _ if covering.turn > self.compared_to => covering.topics.retain(|own| *own != id),
                Ok(index) => {
                    covering.topics.remove(index);
                }
                Err(_) => {}
            }
        }
    }

    /// The groups that ask for patterns of these places, or for all.
    pub(crate) fn groups<'a>(&'a self, places: &'a [u32]) -> impl Iterator<Item = u32> {
        let all = self.all.iter().chain(places);
        all.filter_map(move |place| self.get(*place)).flat_map(|covering| &covering.groups).copied()
    }

    /// Whether one of these places covers all.
    pub(crate) fn covers_all(&self, places: &[u32]) -> bool {
        places.iter().any(|place| self.all.contains(place))
    }

    /// The topics that these places cover, some maybe twice; for places that do not cover all.
    pub(crate) fn topics<'a>(&'a self, places: &'a [u32]) -> impl Iterator<Item = TopicId> {
        let coverings = places.iter().filter_map(move |place| self.get(*place));
        coverings.flat_map(|covering| &covering.topics).copied()
    }

    /// How many those are.
    pub(crate) fn topics_count(&self, places: &[u32]) -> usize {
        places.iter().filter_map(|place| self.get(*place)).map(|covering| covering.topics.len()).sum()
    }

    /// Bytes that these places hold in the account of a group.
    pub(crate) fn held_bytes(&self, places: &[u32], group: u32) -> usize {
        let is_own = |place: &u32| self.get(*place).is_some_and(|own| own.groups.first() == Some(&group));
        places.iter().filter(|place| is_own(place)).map(|place| self.bytes(&[*place])).sum()
    }

    /// Bytes that these places hold, in whichever account.
    pub(crate) fn bytes(&self, places: &[u32]) -> usize {
        let all = places.iter().filter_map(|place| self.table.get(*place));
        all.map(|(pattern, covering)| {
            let topics_bytes = 2 * covering.topics.capacity() * size_of::<TopicId>();
            PATTERN_PLACES_BYTES + pattern.held_bytes() + 2 * pattern.begin().len() + topics_bytes
        })
        .sum()
    }
}
