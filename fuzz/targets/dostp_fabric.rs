//! Datagrams from other nodes to a fabric: no bound of what it holds and sends is passed. The first byte of
//! each says what it is, and what a message begins with is made right; it must never spend its time on
//! numbers of versions and layouts.
#![cfg_attr(fuzzing, no_main)]

use staunch_dostp::Kind;
use staunch_dostp::fabric::{
    Became, Fabric, FabricSettings, FabricSite, HeardMessage, Held, Now, Stamp, Updated, limits,
};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

/// The port of all fabrics.
const PORT: u16 = 5290;

/// Topics that a site may have.
const TOPICS_MAX: usize = 8;

/// The time of day at the begin.
const WALL_MS: u64 = 1_700_000_000_000;

#[derive(Clone)]
struct Handle(Vec<String>, Vec<u8>);

impl Held for Handle {
    fn topics(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.1);
    }

    fn length(&self) -> usize {
        self.1.len()
    }
}

/// A datagram from the bytes of one, with what is known of its begin.
fn datagram(kind: u8, rest: &[u8], number: Option<u64>) -> (Kind, Vec<u8>) {
    let number = number.unwrap_or(1).to_be_bytes();
    let buckets = vec![rest.len() as u8; 4 * limits::BUCKETS];
    match kind % 7 {
        // A report.
        0 => (Kind::Data, [&[1, 1, 0, 0], &number[4..], &[1], rest].concat()),
        // Updates: epoch, topic, version, and a record whose length is right.
        1 => {
            let length = (rest.len() as u32).to_be_bytes();
            (Kind::Data, [&[2, 1, 0, 0, 0, 0, 0, 7], &[0; 8][..], &number, &length, rest].concat())
        }
        // A question.
        2 => (Kind::Request, [&number[..], &[1], rest, &buckets].concat()),
        // A page that ends, and one that does not.
        3 => {
            let length = (rest.len() as u32).to_be_bytes();
            (Kind::Reply, [&number[..], &[1, 0, 0], &length, rest].concat())
        }
        4 => (Kind::Reply, [&number[..], &[1, 0, 1, b'a'], rest].concat()),
        // Updates with a deadline: what stands behind the head is as without.
        5 => {
            let head = [&[3, 1, 0, 0, 0, 0, 19, 136], &number[..], &[2, 1, 0, 0]].concat();
            (Kind::Data, [&head[..], rest].concat())
        }
        // Whatever it is.
        _ => (Kind::Data, rest.to_vec()),
    }
}

pub(crate) fn judge(bytes: &[u8]) {
    let site = |name: &str| FabricSite { name: name.to_owned(), topics_max: TOPICS_MAX };
    let sites = vec![site(""), site("b")];
    let mut fabric =
        Fabric::new(FabricSettings { address: 8, port: PORT, epoch: 9, seed: 5, sites, deadline_ms: 5 });
    let mut now = Now { ms: 0, wall_ms: WALL_MS };
    let (mut asked, mut input, mut sequence) = (None, bytes, 0);
    while let Some((&[kind, from, length, pause], behind)) = input.split_first_chunk::<4>() {
        let (rest, behind) = behind.split_at(behind.len().min(length.into()));
        input = behind;
        now.ms += u64::from(pause) * 40;
        now.wall_ms = WALL_MS + now.ms;
        let (kind, payload) = datagram(kind, rest, asked);
        let from = (u16::from(from), PORT);
        let mut told = Vec::new();
        fabric.heard(&HeardMessage { from, kind, message_id: 1, payload: &payload }, now, &mut |update| {
            assert!(!update.topics.is_empty() && update.body.len() <= limits::RECORD_BYTES_MAX);
            assert!(update.stamp.ms <= now.wall_ms + limits::AHEAD_MS_MAX);
            let topics = update.topics.iter().map(|topic| (*topic).to_owned()).collect();
            let handle = Handle(topics, update.body.to_vec());
            told.push((update.site, update.stamp, update.is_gone, handle));
            [Became::Taken, Became::Taken, Became::Full, Became::Refused][usize::from(pause % 4)]
        });
        for (site, stamp, is_gone, handle) in told.into_iter().filter(|_| pause % 4 < 2) {
            fabric.updated(site, &Updated { stamp, is_own: false, is_gone, is_realtime: false, handle }, now);
        }
        if length % 16 == 1 {
            sequence += 1;
            let (stamp, is_gone) = (Stamp { ms: now.wall_ms, node: 8, sequence }, pause % 2 == 1);
            let handle = Handle(vec![sequence.to_string()], rest.to_vec());
            let is_realtime = pause % 3 == 1;
            fabric.updated(0, &Updated { stamp, is_own: true, is_gone, is_realtime, handle }, now);
            fabric.flush(now);
        }
        fabric.tick(now);
        let mut questions = 0;
        while let Some(message) = fabric.poll_outgoing() {
            // A page may end with one record more than fits.
            let bytes_max = limits::PAGE_BYTES + limits::RECORD_BYTES_MAX + (1 << 10);
            assert!(message.payload.len() <= bytes_max);
            if message.kind == Kind::Request {
                questions += 1;
                asked = message.payload.first_chunk().map(|number| u64::from_be_bytes(*number));
            }
        }
        // Those that go on, and those that begin.
        assert!(questions <= 3 * limits::ASKING_MAX, "{questions} questions at once");
        let (held, marks) = fabric.topics();
        assert!(held <= 2 * TOPICS_MAX && marks <= 2 * limits::MARKS_MAX);
        assert!(fabric.nodes(now).len() <= limits::NODES_MAX);
        while fabric.poll_notice().is_some() {}
    }
}
