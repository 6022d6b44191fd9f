//! What the peer has taken is told apart from what the kernel has taken for it.

use std::io::Read;

use staunch_netio::{Io, Taken};

use super::Make;
use super::harness::{Event, Harness, pattern_bytes};

/// More than any kernel takes at once.
const LENGTH: usize = 16 << 20;

/// What is told, whatever else happens meanwhile.
fn look<I: Io>(harness: &mut Harness<I>, slot: u32) -> Option<Taken> {
    harness.inspect(slot);
    harness.until(|event| matches!(event, Event::Inspected(..)));
    harness.taken
}

pub(crate) fn what_the_peer_took_is_told<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    if !harness.io.can_inspect() {
        return eprintln!("not tested: connections cannot be looked at here");
    }
    let (mut client, slot) = harness.connect_narrow();
    let first = look(&mut harness, slot).expect("it can be told");
    assert_eq!(first.left_bytes, 0, "nothing was sent");
    harness.send_bytes(slot, &pattern_bytes(0, LENGTH), false);
    harness.settle();
    let still = look(&mut harness, slot).expect("it can be told");
    let taken = still.mark.wrapping_sub(first.mark);
    assert!(taken < LENGTH as u64 / 2 && still.left_bytes > 0, "{first:?}, {still:?}");
    // Small steps of a small window: far less than what the kernel waits for before it takes more. The peer
    // opens its window only when enough of it is free (RFC 9293, section 3.8.6.2.2).
    let mut piece = vec![0; 8 * 1024];
    let (mut last, mut read) = (still, 0);
    for _ in 0..4 {
        let before = last.mark;
        while last.mark == before {
            client.read_exact(&mut piece).unwrap();
            read += piece.len();
            last = look(&mut harness, slot).expect("it can be told");
        }
    }
    assert!(last.mark.wrapping_sub(still.mark) < LENGTH as u64);
    let reader = std::thread::spawn(move || {
        let mut rest = vec![0; LENGTH - read];
        client.read_exact(&mut rest).unwrap();
        client
    });
    harness.until(|event| *event == Event::Sent(slot, 0));
    let _client = reader.join().unwrap();
    let end = loop {
        let now = look(&mut harness, slot).expect("it can be told");
        if now.left_bytes == 0 {
            break now;
        }
    };
    assert_eq!(end.mark.wrapping_sub(first.mark), LENGTH as u64, "each byte counts once");
    harness.close_and_wait(slot);
}

/// Looked at in every state in which a last send may be; what can be told then is not judged.
pub(crate) fn a_last_send_is_looked_at<I: Io>(make: Make<I>) {
    let mut harness = Harness::new(make, 8);
    for length in [1, 10_000, LENGTH] {
        for before in [true, false] {
            let (mut client, slot) = harness.connect_narrow();
            if before {
                harness.inspect(slot);
            }
            harness.send_bytes(slot, &pattern_bytes(0, length), true);
            harness.inspect_once(slot);
            let reader = std::thread::spawn(move || {
                let mut received = Vec::new();
                client.read_to_end(&mut received).unwrap();
                received
            });
            let events = harness.until(|event| *event == Event::Closed(slot));
            assert!(events.contains(&Event::Sent(slot, 0)), "{events:?}");
            let is_told = |event: &Event| matches!(event, Event::Inspected(of, _) if *of == slot);
            assert!(events.iter().any(is_told), "{events:?}");
            assert_eq!(reader.join().unwrap().len(), length);
        }
    }
}
