//! Work to be counted by callgrind: `counted decode|encode|node|reassembly TIMES`. The slope over TIMES is
//! the work of one; it must never print or read a clock meanwhile.

use std::hint::black_box;

use staunch_dostp::{
    Added, Bounds, Drops, Flags, Frame, Header, JoinedFrames, Kind, Link, Node, Own, Reassembly, Settings,
};

const HEADER: Header = Header {
    kind: Kind::Data,
    flags: Flags::WHOLE,
    source: 7,
    destination: 8,
    source_port: 1000,
    destination_port: 2000,
    message_id: 1,
    length: 64,
    sequence: 0,
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let times: u32 = arguments.get(2).and_then(|times| times.parse().ok()).unwrap_or(1_000);
    match arguments.get(1).map(String::as_str) {
        Some("decode") => {
            let mut frame = HEADER.encode(0).to_vec();
            frame.resize(80, 0);
            for _ in 0..times {
                black_box(Frame::decode(black_box(&frame), 0).is_ok());
            }
        }
        Some("encode") => {
            for _ in 0..times {
                black_box(black_box(&HEADER).encode(0));
            }
        }
        Some("node") => node(times),
        Some("reassembly") => reassembly(times),
        _ => println!("counted decode|encode|node|reassembly TIMES"),
    }
}

/// Messages of one frame through a node.
fn node(times: u32) {
    let own = Own { address: 8, link: Link([8; 6]), boot: 1, mtu: 1500 };
    let mut node = Node::new(Settings::new(own, [1; 16]));
    node.ports_mut().open(2000);
    for time in 0..times {
        let header = Header { message_id: time as u16, ..HEADER };
        let mut frame = [0; 80];
        frame[..16].copy_from_slice(&header.encode(0));
        black_box(node.receive(Link([7; 6]), &mut JoinedFrames::new(&mut frame), 1_000).is_some());
    }
}

/// Messages of twelve fragments.
fn reassembly(times: u32) {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 1), Drops::default());
    let piece = [7; 1_484];
    for time in 0..times {
        for sequence in 0..12 {
            let flags = match sequence {
                0 => Flags::FIRST,
                11 => Flags::FINAL,
                _ => Flags::default(),
            };
            let header = Header { message_id: time as u16, flags, sequence, ..HEADER };
            let added = reassembly.add(&header, black_box(&piece), 1_000, &mut drops);
            assert_eq!(matches!(added, Added::Message(_)), sequence == 11);
        }
    }
}
