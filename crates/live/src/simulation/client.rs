//! A client: bytes of any form in, events out, as a browser or a Centrifugo SDK reads them.
//!
//! It must never know what the server knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use staunch_protocol::event_stream::EventReader;
use staunch_protocol::websocket::{Happening, Inflater, Role, Session};

use crate::form::{Coding, Shape, Transport};
use crate::interest::Interest;
use crate::reader::Start;
use crate::version::Version;

/// An event that a client was told.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReceivedEvent {
    /// A value, or a patch.
    Update {
        number: u64,
        topic: String,
        data: Option<serde_json::Value>,
        patch: Option<serde_json::Value>,
    },
    Gap {
        topic: String,
        missed: u64,
    },
}

pub(super) struct Client {
    pub(super) interest: Arc<Interest>,
    pub(super) granted: bool,
    pub(super) shape: Shape,
    pub(super) transport: Transport,
    pub(super) coding: Coding,
    first_start: Start,
    last: Option<Version>,
    /// Of this connection.
    received: Vec<u8>,
    /// Of all its connections.
    pub(super) told: Vec<ReceivedEvent>,
    /// From which number on each topic's updates are promised.
    pub(super) promised_from: BTreeMap<String, u64>,
    has_joined: bool,
    pub(super) cuts: u32,
}

impl Client {
    pub(super) fn new(
        interest: Arc<Interest>,
        granted: bool,
        shape: Shape,
        transport: Transport,
        coding: Coding,
        first_start: Start,
    ) -> Self {
        Self {
            interest,
            granted,
            shape,
            transport,
            coding,
            first_start,
            last: None,
            received: Vec::new(),
            told: Vec::new(),
            promised_from: BTreeMap::new(),
            has_joined: false,
            cuts: 0,
        }
    }

    pub(super) fn start(&self) -> Start {
        self.last.map_or(self.first_start, Start::After)
    }

    pub(super) fn coding_head(&self) -> &'static [u8] {
        if self.transport != Transport::Plain {
            return b"";
        }
        self.coding.stream_head()
    }

    pub(super) fn joined(&mut self, start: Start, number: u64, dropped_to: impl Fn(&str) -> u64) {
        if let Start::After(_) = start {
            return;
        }
        self.has_joined = true;
        let from_now = start == Start::Now && self.shape != Shape::Patch;
        for topic in super::facts::TOPICS {
            let from = if from_now { number } else { dropped_to(topic) };
            self.promised_from.insert((*topic).to_owned(), from);
        }
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    pub(super) fn reconnect(&mut self) {
        self.cuts += 1;
        self.received.clear();
    }

    /// Decodes what this connection brought. A part at its end is lost with the connection.
    pub(super) fn decode(&mut self) {
        let bytes = std::mem::take(&mut self.received);
        match self.transport {
            Transport::Socket | Transport::Protobuf => self.decode_messages(bytes),
            Transport::Plain => self.decode_events(&bytes),
            Transport::Chunked => {
                // The head of the coding stands before the chunks here; a server puts it into the first one.
                let body = [self.coding.stream_head().to_vec(), without_chunks(&bytes)].concat();
                self.decode_events(&body);
            }
        }
    }

    fn decode_events(&mut self, body: &[u8]) {
        let text = match self.coding {
            Coding::Identity => body.to_vec(),
            Coding::Gzip => inflate(body.get(10..).unwrap_or(&[])),
            Coding::Deflate => inflate(body.get(2..).unwrap_or(&[])),
            Coding::Zstd => unzstd(body),
        };
        let mut events = Vec::new();
        EventReader::new().read(&text, |event| events.push(event)).unwrap();
        for event in events {
            let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
            let version = event.last_id.parse().ok();
            self.last = version.or(self.last);
            let topic = data["topic"].as_str().unwrap().to_owned();
            self.told.push(match &event.kind[..] {
                "gap" => ReceivedEvent::Gap { topic, missed: data["missed"].as_u64().unwrap() },
                _ => ReceivedEvent::Update {
                    number: version.map_or(0, |version: Version| version.number),
                    topic,
                    data: data.get("data").cloned(),
                    patch: data.get("patch").cloned(),
                },
            });
        }
    }

    fn decode_messages(&mut self, mut bytes: Vec<u8>) {
        let mut session = Session::new(Role::Client, true, 1 << 20);
        let mut inflater = Inflater::default();
        let (mut rest, mut texts) = (&mut bytes[..], Vec::new());
        while let (Some(happening), behind) = session.step(rest, &mut inflater).unwrap() {
            texts.push(match happening {
                Happening::Text(text) => serde_json::from_str::<serde_json::Value>(text).unwrap(),
                Happening::Binary(bytes) => protobuf::as_json(bytes),
                other => panic!("{other:?}"),
            });
            rest = behind;
        }
        for message in texts {
            let push = &message["push"];
            let topic = push["channel"].as_str().unwrap().to_owned();
            if let Some(missed) = push["message"]["data"]["missed"].as_u64() {
                self.told.push(ReceivedEvent::Gap { topic, missed });
                continue;
            }
            let publication = &push["pub"];
            let number = publication["offset"].as_u64().unwrap();
            self.last = Some(Version { epoch: super::facts::EPOCH, number });
            let value = Some(publication["data"].clone());
            let is_patch = publication["tags"]["patch"] == "1";
            let (data, patch) = if is_patch { (None, value) } else { (value, None) };
            self.told.push(ReceivedEvent::Update { number, topic, data, patch });
        }
    }
}

/// Messages of Protobuf as those of JSON would be.
mod protobuf {
    use serde_json::{Value, json};

    use crate::centrifugo::fields::{Field, Fields};

    /// The field with this number of a message that has it at most once.
    fn field(message: &[u8], wanted: u64) -> Option<Field<'_>> {
        let mut fields = Fields(message);
        while let Some((number, field)) = fields.next().unwrap() {
            if number == wanted {
                return Some(field);
            }
        }
        None
    }

    fn bytes(message: &[u8], wanted: u64) -> Option<&[u8]> {
        field(message, wanted).map(|field| field.bytes().unwrap())
    }

    pub(super) fn as_json(message: &[u8]) -> Value {
        let mut fields = Fields(message);
        let reply = fields.delimited().unwrap();
        assert!(fields.0.is_empty(), "one push a message");
        let push = bytes(reply, 4).unwrap();
        let channel = String::from_utf8(bytes(push, 2).unwrap().to_vec()).unwrap();
        if let Some(message) = bytes(push, 8) {
            let data: Value = serde_json::from_slice(bytes(message, 1).unwrap()).unwrap();
            return json!({"push": {"channel": channel, "message": {"data": data}}});
        }
        let publication = bytes(push, 4).unwrap();
        let tag =
            bytes(publication, 7).map(|pair| String::from_utf8(bytes(pair, 1).unwrap().to_vec()).unwrap());
        let data = match (bytes(publication, 4).unwrap(), tag.as_deref()) {
            (_, Some("deleted")) => Value::Null,
            // Documents are objects here, and texts begin with a number.
            (data, _) if data.starts_with(b"{") => serde_json::from_slice(data).unwrap(),
            (data, _) => String::from_utf8(data.to_vec()).unwrap().into(),
        };
        let offset = field(publication, 6).unwrap().number().unwrap();
        let tags = tag.map_or(json!({}), |tag| json!({ tag: "1" }));
        json!({"push": {"channel": channel, "pub": {"data": data, "offset": offset, "tags": tags}}})
    }
}

/// The data of complete chunks, and what is there of the last one.
fn without_chunks(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        let data = &bytes[end + 2..];
        body.extend_from_slice(&data[..size.min(data.len())]);
        bytes = data.get(size + 2..).unwrap_or(&[]);
    }
    body
}

fn inflate(body: &[u8]) -> Vec<u8> {
    let mut stream = flate2::Decompress::new(false);
    let mut text = Vec::new();
    while text.len() == text.capacity() {
        text.reserve(64 << 10);
        let rest = &body[stream.total_in() as usize..];
        stream.decompress_vec(rest, &mut text, flate2::FlushDecompress::Sync).unwrap();
    }
    text
}

fn unzstd(body: &[u8]) -> Vec<u8> {
    use std::io::Read as _;
    let mut text = Vec::new();
    // An incomplete frame at the end is an error after all that could be read.
    let _ = zstd::stream::Decoder::new(body).unwrap().read_to_end(&mut text);
    text
}
