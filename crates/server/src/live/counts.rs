//! What is counted of live data.
//!
//! It owns the counters and their figures of one moment. It must never be on the way of an update but for an
//! addition.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};
use staunch_live::Transport;

use crate::dictionary::{DictionaryCounts, DictionaryFigures};

/// Counters of the writer.
#[derive(Debug, Default)]
pub(crate) struct WriterCounts {
    pub(crate) published: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) compressions: AtomicU64,
    pub(crate) memory_bytes: AtomicU64,
    pub(crate) topics: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) state_batches: AtomicU64,
    pub(crate) state_failures: AtomicU64,
    pub(crate) state_failing: AtomicU64,
}

/// Counters of one worker. Only that worker writes them.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounts {
    /// Readers by transport, in the order of [`TRANSPORTS`].
    pub(crate) readers: [AtomicU64; 3],
    pub(crate) joined: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) deliveries: AtomicU64,
    pub(crate) passed_by: AtomicU64,
    pub(crate) heartbeats: AtomicU64,
    pub(crate) unknown_versions: AtomicU64,
    pub(crate) slow: AtomicU64,
    pub(crate) polls: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) socket_faults: AtomicU64,
    pub(crate) socket_silences: AtomicU64,
    pub(crate) dictionary: DictionaryCounts,
}

/// Names of transports, as metrics have them.
pub(crate) const TRANSPORTS: [&str; 3] = ["sse", "websocket", "longpoll"];

/// UpdateKey of a transport in [`TRANSPORTS`].
pub(crate) fn place(transport: Transport) -> usize {
    usize::from(transport.language().is_some())
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl WorkerCounts {
    /// Readers of all transports.
    pub(crate) fn all_readers(&self) -> u64 {
        self.readers.iter().map(|readers| readers.load(Relaxed)).sum()
    }
}

/// Live data at one moment. Everything but readers, topics and memory counts from the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveFigures {
    /// Readers by the name of their transport.
    pub readers: Vec<(String, u64)>,
    /// Most readers at a time.
    pub readers_max: u64,
    /// Times a token was refused, by the reason.
    #[serde(default)]
    pub tokens_refused: Vec<(String, u64)>,
    /// Readers that joined.
    pub joined: u64,
    /// Readers refused because there were as many as may be.
    pub refused: u64,
    /// Topics there are now.
    pub topics: u64,
    /// Updates numbered.
    pub published: u64,
    /// Publications refused.
    pub not_published: u64,
    /// Deliveries to readers: each may carry several updates.
    pub deliveries: u64,
    /// Times a reader was passed by because its last delivery was under way.
    pub passed_by: u64,
    /// Signs of life sent.
    pub heartbeats: u64,
    /// Readers that came back with a version that is not known here.
    pub unknown_versions: u64,
    /// Readers closed because they took nothing.
    pub slow: u64,
    /// Polled values.
    pub polls: u64,
    /// Commands obeyed or refused.
    pub commands: u64,
    /// WebSockets closed because the peer broke the protocol or a limit.
    pub socket_faults: u64,
    /// WebSockets closed because they gave no sign of life.
    pub socket_silences: u64,
    /// Compressions of updates.
    pub compressions: u64,
    /// Bytes of values, rings and forms.
    pub memory_bytes: u64,
    /// Bytes that they may have.
    pub memory_bytes_max: u64,
    /// Updates that wait for the writer.
    pub queued: u64,
    /// Times the writer waited for a worker.
    pub waits: u64,
    /// Batches written to the store.
    pub state_batches: u64,
    /// Failed writes, syncs and reopenings of the store, tries after a failure included.
    pub state_failures: u64,
    /// 1 while the store fails and publications are refused, else 0.
    pub state_failing: u64,
    /// Polled values as differences.
    #[serde(default)]
    pub dictionary: DictionaryFigures,
}

impl LiveFigures {
    /// Adds those of another site. The state fails if that of one site does.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { readers, tokens_refused, state_failing, dictionary, .. } = other;
        for (sums, named) in [(&mut self.readers, readers), (&mut self.tokens_refused, tokens_refused)] {
            sums.resize_with(named.len(), Default::default);
            for (sum, (name, count)) in sums.iter_mut().zip(named) {
                *sum = (name.clone(), sum.1 + count);
            }
        }
        self.state_failing = self.state_failing.max(*state_failing);
        self.dictionary.add(dictionary);
        for (sum, count) in self.sums_mut().into_iter().zip(other.clone().sums_mut()) {
            *sum += *count;
        }
    }

    /// What is added up when figures are of several sites.
    fn sums_mut(&mut self) -> [&mut u64; 22] {
        [
            &mut self.readers_max,
            &mut self.joined,
            &mut self.refused,
            &mut self.topics,
            &mut self.published,
            &mut self.not_published,
            &mut self.deliveries,
            &mut self.passed_by,
            &mut self.heartbeats,
            &mut self.unknown_versions,
            &mut self.slow,
            &mut self.polls,
            &mut self.commands,
            &mut self.socket_faults,
            &mut self.socket_silences,
            &mut self.compressions,
            &mut self.memory_bytes,
            &mut self.memory_bytes_max,
            &mut self.queued,
            &mut self.waits,
            &mut self.state_batches,
            &mut self.state_failures,
        ]
    }
}

/// Sums up what the writer and the workers have counted.
pub(crate) fn figures(writer: &WriterCounts, workers: &[WorkerCounts]) -> LiveFigures {
    let sum = |of: fn(&WorkerCounts) -> &AtomicU64| -> u64 {
        workers.iter().map(|counts| of(counts).load(Relaxed)).sum()
    };
    let mut dictionary = DictionaryFigures::default();
    workers.iter().for_each(|counts| dictionary.add(&counts.dictionary.figures()));
    let readers = |place: usize| workers.iter().map(|counts| counts.readers[place].load(Relaxed)).sum();
    LiveFigures {
        readers: TRANSPORTS.iter().enumerate().map(|(at, name)| ((*name).to_owned(), readers(at))).collect(),
        joined: sum(|counts| &counts.joined),
        refused: sum(|counts| &counts.refused),
        topics: writer.topics.load(Relaxed),
        published: writer.published.load(Relaxed),
        not_published: writer.refused.load(Relaxed),
        deliveries: sum(|counts| &counts.deliveries),
        passed_by: sum(|counts| &counts.passed_by),
        heartbeats: sum(|counts| &counts.heartbeats),
        unknown_versions: sum(|counts| &counts.unknown_versions),
        slow: sum(|counts| &counts.slow),
        polls: sum(|counts| &counts.polls),
        commands: sum(|counts| &counts.commands),
        socket_faults: sum(|counts| &counts.socket_faults),
        socket_silences: sum(|counts| &counts.socket_silences),
        compressions: writer.compressions.load(Relaxed),
        memory_bytes: writer.memory_bytes.load(Relaxed),
        waits: writer.waits.load(Relaxed),
        state_batches: writer.state_batches.load(Relaxed),
        state_failures: writer.state_failures.load(Relaxed),
        state_failing: writer.state_failing.load(Relaxed),
        dictionary,
        ..LiveFigures::default()
    }
}
