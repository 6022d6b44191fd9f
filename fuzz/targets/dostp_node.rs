//! Frames from many nodes to one: no bound of memory is passed. The first bytes of each record make a header
//! that is right; it must never spend its time on wrong checks.
#![cfg_attr(fuzzing, no_main)]

use staunch_dostp::{Bounds, Flags, Header, JoinedFrames, Link, Node, Own, Settings};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| judge(input));

/// Makes the check of a header right, which is found by trying: one of 256 is.
fn make_right(header: &mut [u8]) {
    let right = (0..=u8::MAX).find(|check| {
        header[15] = *check;
        !matches!(Header::decode(header, 0), Err(staunch_dostp::Fault::Check))
    });
    assert!(right.is_some());
}

/// Puts a frame behind one with MORE: alike, but for flags, message id and one byte more.
fn join(frame: &mut [u8; 80]) {
    let header = *frame.first_chunk::<16>().expect("80 bytes hold a header");
    let end = 16 + usize::from(u16::from_be_bytes([header[12], header[13]]));
    if header[1] & Flags::MORE.bits() == 0 || end + 16 > frame.len() {
        return;
    }
    let (flags, changed) = (frame[end], frame[end + 1]);
    let behind = &mut frame[end..end + 16];
    behind.copy_from_slice(&header);
    behind[1] = if flags & 1 == 0 { header[1] } else { flags };
    behind[11] = behind[11].wrapping_add(1);
    behind[13] = changed & 0x0f;
    if changed & 0xf0 == 0xf0 {
        behind[2 + usize::from(changed & 7)] ^= flags;
    }
    make_right(behind);
}

pub(crate) fn judge(bytes: &[u8]) {
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
        make_right(&mut frame[..16]);
        join(&mut frame);
        let link = Link([2, 0, 0, 0, 0, frame[3]]);
        // Most greetings come from the link address that they tell.
        if (2..=6).contains(&(frame[0] & 0x0f)) && frame[47] & 7 != 0 {
            frame[42..48].copy_from_slice(&link.0);
        }
        let mut joined = JoinedFrames::new(&mut frame);
        let messages = std::iter::from_fn(|| node.receive(link, &mut joined, now_ms)).count();
        assert!(messages <= 80 / 16);
        node.tick(now_ms);
        let mut control = Vec::new();
        while node.poll_control(now_ms, &mut control).is_some() {
            control.clear();
        }
        while node.poll_event().is_some() {}
        let (messages, held) = node.under_way();
        assert!(messages <= 9 && held <= 4_000 && node.peers().list().count() <= 8);
    }
}
