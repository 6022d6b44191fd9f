//! Frames from many nodes to one: no bound of memory is passed. The first bytes of each record make a header
//! that is right; it must never spend its time on wrong checks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use staunch_dostp::{Bounds, Header, Link, Node, Own, Settings};

fuzz_target!(|bytes: &[u8]| {
    let own = Own { address: 8, link: Link([8; 6]), boot: 1, mtu: 1500 };
    let bounds = Bounds {
        message_bytes_max: 600,
        source_bytes_max: 1_000,
        source_messages_max: 3,
        node_bytes_max: 4_000,
        node_messages_max: 9,
    };
    let mut node = Node::new(Settings { bounds, peers_max: 8, ..Settings::new(own, [7; 16]) });
    node.ports_mut().open_for_transactions(0x0202);
    node.start(0);
    let mut now_ms = 0;
    for record in bytes.chunks(48) {
        let mut frame = [0; 80];
        frame[..record.len()].copy_from_slice(record);
        now_ms += u64::from(frame[15]) * 3;
        frame[0] = 0x10 | frame[0] & 0x0f;
        // The check is found by trying: one of 256 is right.
        let right = (0..=u8::MAX).find(|check| {
            frame[15] = *check;
            !matches!(Header::decode(&frame, 0), Err(staunch_dostp::Fault::Check))
        });
        assert!(right.is_some());
        let link = Link([2, 0, 0, 0, 0, frame[3]]);
        node.receive(link, &mut frame, now_ms);
        node.tick(now_ms);
        let mut control = Vec::new();
        while node.poll_control(now_ms, &mut control).is_some() {
            control.clear();
        }
        while node.poll_event().is_some() {}
        let (messages, held) = node.under_way();
        assert!(messages <= 9 && held <= 4_000 && node.peers().list().count() <= 8);
    }
});
