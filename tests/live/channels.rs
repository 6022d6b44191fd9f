//! Channels of WebSockets: what comes back after a cut, and what comes while they change.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::socket::TestSocket;
use crate::world::{ENGINES, World, ask, publisher};

const LOG: &str = "live_topic = [{ match = \"l.*\", kind = \"log\", ring = 8 }]";

/// Subscribes to a channel from an epoch and offset; whether the server says that all was recovered.
pub(crate) fn recover(socket: &mut TestSocket, channel: &str, epoch: &Value, offset: u64) -> bool {
    let more = format!(",\"recover\":true,\"epoch\":{epoch},\"offset\":{offset}");
    let begun = socket.subscribe(channel, &more);
    assert_eq!(begun["was_recovering"], true, "{begun}");
    begun["recovered"].as_bool().expect("whether it was recovered")
}

#[test]
fn who_comes_back_lacks_nothing_and_gets_nothing_twice() {
    for io in ENGINES {
        let world = World::with_settings(io, &[], LOG);
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        let epoch = socket.subscribe("l.a", "")["epoch"].clone();
        let publish = |number: u64| world.publish(&format!("{{\"topic\":\"l.a\",\"data\":{number}}}"));
        (1..=3).for_each(|number| drop(publish(number)));
        let mut offset = 0;
        for number in 1..=3 {
            let (_, came) = socket.push();
            assert_eq!(came["data"], number);
            offset = came["offset"].as_u64().expect("an offset");
        }
        drop(socket);
        (4..=6).for_each(|number| drop(publish(number)));
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        assert!(recover(&mut socket, "l.a", &epoch, offset), "{io}");
        for number in 4..=6 {
            assert_eq!(socket.data(), number);
        }
        drop(socket);
        // Its ring has eight: of fourteen since, six are gone.
        (7..=17).for_each(|number| drop(publish(number)));
        let mut socket = TestSocket::connect(world.address(), "/ws", "");
        assert!(!recover(&mut socket, "l.a", &epoch, offset));
        let gap: Value = serde_json::from_str(&socket.text()).unwrap();
        assert_eq!(gap["push"]["message"]["data"]["missed"], 6, "{gap}");
        for number in 10..=17 {
            assert_eq!(socket.data(), number);
        }
        // From another epoch, or the future: what there is, and never silence.
        for (epoch, offset) in [(json!("0"), offset), (json!("nonsense"), 1), (epoch.clone(), 1 << 40)] {
            let mut socket = TestSocket::connect(world.address(), "/ws", "");
            assert!(!recover(&mut socket, "l.a", &epoch, offset));
            assert_eq!(socket.data(), 10, "{io} {epoch}");
        }
    }
}

/// Updates of the flood.
const UPDATES: u64 = 3000;

/// A client whose channels come and go.
struct Wavering {
    socket: TestSocket,
    epoch: Value,
    came: BTreeMap<String, Vec<u64>>,
    offsets: BTreeMap<&'static str, u64>,
    reads: BTreeMap<&'static str, bool>,
    rounds: usize,
}

impl Wavering {
    /// A client that reads `l.a` all the time, and has asked for `l.b`.
    fn new(world: &World) -> Self {
        let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
        let mut socket = TestSocket::connect(world.address(), "/ws", offer);
        let epoch = socket.subscribe("l.a", "")["epoch"].clone();
        let (came, reads) = (BTreeMap::new(), BTreeMap::new());
        let offsets = BTreeMap::from([("l.b", 0), ("l.c", 0)]);
        let mut wavering = Self { socket, epoch, came, offsets, reads, rounds: 0 };
        wavering.toggle("l.b");
        wavering
    }

    /// Asks for a channel where it was, or no longer.
    fn toggle(&mut self, name: &'static str) {
        let is_read = self.reads.entry(name).or_insert(false);
        *is_read = !*is_read;
        let (epoch, offset) = (&self.epoch, self.offsets[name]);
        let ask = match *is_read {
            false => format!("\"unsubscribe\":{{\"channel\":{name:?}}}"),
            true => format!(
                "\"subscribe\":{{\"channel\":{name:?},\"recover\":true,\"epoch\":{epoch},\
                 \"offset\":{offset}}}"
            ),
        };
        self.socket.command(&ask);
    }

    /// Reads one message. A channel is asked for again once it is known to have ended.
    fn read(&mut self) {
        for line in self.socket.text().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            assert!(message["error"].is_null(), "{message}");
            if !message["id"].is_null() {
                self.rounds += 1;
                self.toggle(["l.b", "l.c"][self.rounds % 2]);
                continue;
            }
            let (name, came) = (&message["push"]["channel"], &message["push"]["pub"]);
            assert!(came.is_object(), "{message}");
            let name = name.as_str().unwrap();
            self.came.entry(name.to_owned()).or_default().push(came["data"].as_u64().unwrap());
            if let Some(offset) = self.offsets.get_mut(name) {
                *offset = came["offset"].as_u64().unwrap();
            }
        }
    }

    fn count(&self) -> u64 {
        self.came.values().map(Vec::len).sum::<usize>() as u64
    }
}

/// Publishes the flood, some hundred lines at a time.
fn flood(address: SocketAddr) {
    let line = |number: u64| {
        let name = ["l.a", "l.b", "l.c"][number as usize % 3];
        format!("{{\"topic\":\"{name}\",\"data\":{number}}}\n")
    };
    for first in (0..UPDATES).step_by(100) {
        let lines: String = (first..UPDATES.min(first + 100)).map(line).collect();
        let answer = ask(address, "POST", "/publish", &publisher("application/x-ndjson"), lines.as_bytes());
        assert!(!answer.text().contains("error"), "{}", answer.text());
    }
}

/// Channels come and go while everything is published as fast as it is taken: each goes on where it was.
#[test]
fn channels_that_come_and_go_in_a_flood_lose_nothing() {
    let log = "live_topic = [{ match = \"l.*\", kind = \"log\", ring = 100000, ring_size = \"16MiB\" }]";
    for io in ENGINES {
        let world = World::with_settings(io, &[], log);
        let mut wavering = Wavering::new(&world);
        let address = world.address();
        std::thread::scope(|scope| {
            scope.spawn(move || flood(address));
            while wavering.count() < UPDATES {
                wavering.read();
            }
        });
        for (place, name) in ["l.a", "l.b", "l.c"].into_iter().enumerate() {
            let expected: Vec<u64> = (0..UPDATES).filter(|number| *number as usize % 3 == place).collect();
            assert_eq!(wavering.came[name], expected, "{io}: {name} in {} rounds", wavering.rounds);
        }
        assert!(wavering.rounds > 3, "{io}: only {} rounds", wavering.rounds);
    }
}
