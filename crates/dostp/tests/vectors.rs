//! The golden frames of `vectors/`: what each is, and what a node does with it.

mod golden;

use golden::{Pair, Receiver};
use staunch_dostp::{Fault, Flags, Frame, Greeting, Header, Kind, Link, Mode, Node, Own, Secrets, Settings};

#[test]
fn every_golden_frame_is_what_its_words_say() {
    let files = golden::all();
    assert!(files.len() > 40, "{} files", files.len());
    for file in &files {
        let mut node = node(&file.receiver);
        for pair in &file.pairs {
            let place = format!("{}:{}", file.name, pair.line);
            let decoded = Frame::decode(&pair.bytes, file.receiver.cluster);
            match (&pair.refused, decoded) {
                (Some(name), Err(fault)) => assert_eq!(fault.name(), name, "{place}"),
                (None, Ok(frame)) => agrees(&place, pair, &frame, &file.receiver),
                (_, decoded) => panic!("{place}: {decoded:?}"),
            }
            assert_eq!(outcome(&mut node, pair), pair.outcome, "{place}");
        }
    }
}

/// Words and bytes agree in both directions.
fn agrees(place: &str, pair: &Pair, frame: &Frame<'_>, receiver: &Receiver) {
    let header = Header {
        kind: kind(&pair.text("kind")),
        flags: flags(&pair.text("flags")),
        source: pair.number("source") as u16,
        destination: pair.number("destination") as u16,
        source_port: pair.number("source-port") as u16,
        destination_port: pair.number("destination-port") as u16,
        message_id: pair.number("id") as u16,
        length: pair.number("length") as u16,
        sequence: pair.number("sequence") as u8,
    };
    assert_eq!(frame.header, header, "{place}");
    assert_eq!(header.encode(receiver.cluster), pair.bytes[..16], "{place}");
    if header.kind.is_control() {
        let greeting = Greeting {
            boot: pair.number("boot"),
            challenge: pair.number("challenge"),
            echo: pair.number("echo"),
            mtu: pair.number("mtu") as u16,
            link: golden::link(&pair.text("link")),
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
    let length = node.receive(pair.from, &mut bytes, 1_000_000).map(|message| message.payload.len());
    let mut outcome: Vec<String> = Fault::ALL
        .into_iter()
        .filter(|fault| node.drops().of(*fault) > before.of(*fault))
        .map(|fault| format!("dropped {}", fault.name()))
        .collect();
    let stored = node.under_way().0 > messages || (outcome.is_empty() && length.is_none());
    if let Some(length) = length {
        outcome.push(format!("message {length}"));
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
