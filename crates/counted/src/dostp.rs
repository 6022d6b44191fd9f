//! The hot paths of DOSTP in user space: for counting instructions.
//!
//! Callgrind knows the functions by their names. They must never read a clock.

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
/// A message of as many fragments copies 17 808 bytes.
const FRAGMENTS: u32 = 12;

/// Does one piece of work so many times.
pub(crate) fn run(case: &str, times: u32) -> Result<(), String> {
    match case {
        "decode" => decode(times),
        "encode" => encode(times),
        "receive" => receive(times),
        "reassemble" => reassemble(times),
        _ => return Err(format!("there is no case {case:?}")),
    }
    Ok(())
}

#[inline(never)]
fn decode(times: u32) {
    let mut frame = HEADER.encode(0).to_vec();
    frame.resize(80, 0);
    for _ in 0..times {
        black_box(Frame::decode(black_box(&frame), 0).is_ok());
    }
}

#[inline(never)]
fn encode(times: u32) {
    for _ in 0..times {
        black_box(black_box(&HEADER).encode(0));
    }
}

/// Messages of one frame through a node.
#[inline(never)]
fn receive(times: u32) {
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

/// Fragments of messages.
#[inline(never)]
fn reassemble(times: u32) {
    let (mut reassembly, mut drops) = (Reassembly::new(Bounds::default(), 1), Drops::default());
    let piece = [7; 1_484];
    for time in 0..times {
        let sequence = (time % FRAGMENTS) as u8;
        let flags = match sequence {
            0 => Flags::FIRST,
            last if u32::from(last) == FRAGMENTS - 1 => Flags::FINAL,
            _ => Flags::default(),
        };
        let header = Header { message_id: (time / FRAGMENTS) as u16, flags, sequence, ..HEADER };
        black_box(matches!(reassembly.add(&header, black_box(&piece), 1_000, &mut drops), Added::Message(_)));
    }
}
