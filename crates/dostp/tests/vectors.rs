//! The golden frames of `vectors/`: what each is, and what a node does with it.

mod golden;

use golden::{Pair, Receiver, Said};
use staunch_dostp::{
    Fault, Flags, Frame, Greeting, Header, JoinedFrames, Kind, Link, Mode, Node, Own, Secrets, Settings,
};

#[test]
fn every_golden_frame_is_what_its_words_say() {
    let files = golden::all();
    assert!(files.len() > 40, "{} files", files.len());
    for file in &files {
        let mut node = node(&file.receiver);
        for pair in &file.pairs {
            let place = format!("{}:{}", file.name, pair.line);
            agree(&place, pair, &file.receiver);
            assert_eq!(outcome(&mut node, pair), pair.outcome, "{place}");
        }
    }
}

/// Each frame of a pair is what its words say, and there are no others.
fn agree(place: &str, pair: &Pair, receiver: &Receiver) {
    let mut bytes = pair.bytes.clone();
    let mut joined = JoinedFrames::new(&mut bytes);
    for said in &pair.frames {
        match (&said.refused, joined.next_frame(receiver.cluster)) {
            (Some(name), Some(Err(fault))) => assert_eq!(fault.name(), name, "{place}"),
            (None, Some(Ok((_, bytes)))) => agrees(place, said, bytes, receiver),
            (_, found) => panic!("{place}: {found:?}"),
        }
    }
    assert!(joined.next_frame(receiver.cluster).is_none(), "{place}: more frames");
}

/// Words and bytes agree in both directions.
fn agrees(place: &str, said: &Said, bytes: &[u8], receiver: &Receiver) {
    let frame = Frame::decode(bytes, receiver.cluster).unwrap();
    let header = Header {
        kind: kind(&said.text("kind")),
        flags: flags(&said.text("flags")),
        source: said.number("source") as u16,
        destination: said.number("destination") as u16,
        source_port: said.number("source-port") as u16,
        destination_port: said.number("destination-port") as u16,
        message_id: said.number("id") as u16,
        length: said.number("length") as u16,
        sequence: said.number("sequence") as u8,
    };
    assert_eq!(frame.header, header, "{place}");
    assert_eq!(header.encode(receiver.cluster), bytes[..16], "{place}");
    if header.kind.is_control() {
        let greeting = Greeting {
            boot: said.number("boot"),
            challenge: said.number("challenge"),
            echo: said.number("echo"),
            mtu: said.number("mtu") as u16,
            link: golden::link(&said.text("link")),
        };
        assert_eq!(frame.greeting(), Some(greeting), "{place}");
        assert_eq!(greeting.encode(), frame.payload[..32], "{place}");
    }
}

/// What a node does with the frame, in the words of the file.
fn outcome(node: &mut Node, pair: &Pair) -> Vec<String> {
    let before = *node.drops();
    let messages = node.under_way().0;
    let control = node.passed().control_received;
    let mut bytes = pair.bytes.clone();
    let mut joined = JoinedFrames::new(&mut bytes);
    let mut lengths = Vec::new();
    while let Some(message) = node.receive(pair.from, &mut joined, 1_000_000) {
        lengths.push(format!("message {}", message.payload.len()));
    }
    let mut outcome: Vec<String> = Fault::ALL
        .into_iter()
        .filter(|fault| node.drops().of(*fault) > before.of(*fault))
        .map(|fault| format!("dropped {}", fault.name()))
        .collect();
    let stored = node.under_way().0 > messages || (outcome.is_empty() && lengths.is_empty());
    if !lengths.is_empty() {
        outcome.extend(lengths);
    } else if node.passed().control_received > control {
        outcome.push("peer".to_owned());
    } else if stored || outcome == ["dropped order"] && node.under_way().0 == messages {
        outcome.push("stored".to_owned());
    }
    outcome
}

fn node(receiver: &Receiver) -> Node {
    let own = Own { address: 8, link: Link([2, 0, 0, 0, 0, 8]), boot: 0x0102_0304_0506_0708, mtu: 1500 };
    let mode = if receiver.mode == "aead" { Mode::Aead } else { Mode::Mac };
    let has_keys = receiver.secrets.iter().any(Option::is_some);
    let secrets = has_keys.then_some(Secrets { slots: receiver.secrets, sends_by: 0, mode });
    let mut node = Node::new(Settings { cluster: receiver.cluster, secrets, ..Settings::new(own, [1; 16]) });
    if let Some((address, boot)) = receiver.believes {
        node.peers_mut().believe(address, Link([2, 0, 0, 0, 0, address as u8]), boot, 1_000_000);
    }
    node.ports_mut().open(2000);
    node
}

fn kind(name: &str) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_else(|| panic!("kind {name}"))
}

fn flags(names: &str) -> Flags {
    let by_name =
        |name: &str| Flags::NAMES.into_iter().find(|(_, known)| *known == name).map(|(flag, _)| flag);
    match names {
        "none" => Flags::default(),
        names => names.split(',').fold(Flags::default(), |flags, name| flags.with(by_name(name).unwrap())),
    }
}

/// The checker finds a frame of which one bit is another.
#[test]
fn a_changed_golden_frame_is_found() {
    let files = golden::all();
    let file = files.iter().find(|file| file.name == "data-whole").unwrap();
    let mut bytes = file.pairs[0].bytes.clone();
    bytes[3] ^= 1;
    assert_eq!(Frame::decode(&bytes, 0), Err(Fault::Check));
}
