//! TERM, INT and QUIT: everything under way is answered, nothing is begun any more, the exit code is 0.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::Signal;
use staunch_tests::conversation::escape;

use crate::conversation::{Talk, get};
use crate::house::{House, LARGE_BYTES, SMALL, WAYS};
use crate::load::Load;

#[test]
fn an_idle_server_ends_at_once() {
    for io in WAYS {
        for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
            let mut house = House::new(&["--io", io]);
            assert_eq!(get(house.address(), "/small.txt"), SMALL);
            house.signal(signal);
            assert_eq!(house.end(), Some(0), "{io}, {signal:?}");
            assert!(!house.path("pid").exists(), "the file with its number is removed");
            assert_eq!(
                house.said().trim(),
                "staunch: ending: answers under way have 30 s; a further signal after 1 s ends at once"
            );
        }
    }
}

/// How many connections the server holds, by its own page.
fn open_connections(talk: &mut Talk) -> u64 {
    let status: serde_json::Value = serde_json::from_slice(&talk.get("/status.json").0).expect("a page");
    status["connections"]["open"].as_u64().expect("a number")
}

#[test]
fn what_is_under_way_is_answered() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--workers", "1", "--status", "/status.json"]);
        let address = house.address();
        let mut kept = Talk::with(address);
        assert_eq!(kept.get("/small.txt"), (SMALL.to_vec(), false));
        let mut silent = Talk::with(address);
        let mut half = Talk::with(address);
        half.0.send(b"GET /small.txt HTTP/1.1\r\nHo");
        let mut slow = Talk::with(address);
        slow.ask("/large.bin");
        while slow.0.received().is_empty() {
            assert!(slow.0.fill(crate::house::PATIENCE));
        }
        // The kernel keeps a silent connection to itself for a second.
        house.until("all four are accepted", |_| (open_connections(&mut kept) == 4).then_some(()));
        house.signal(Signal::TERM);
        // A client that asks again is answered, and told that it was the last time.
        kept.until_last("/small.txt");
        half.0.send(b"st: a\r\n\r\n");
        let response = half.hear();
        assert_eq!((response.status, &response.body[..]), (200, SMALL), "{io}");
        assert_eq!(response.value("Connection").as_deref(), Some("close"), "{io}");
        half.ends();
        silent.ends();
        assert_eq!(slow.hear().body.len(), LARGE_BYTES, "{io}");
        slow.ends();
        assert_eq!(house.end(), Some(0), "{io}");
        assert!(TcpStream::connect(address).is_err(), "{io}: nobody listens any more");
    }
}

/// Pipelined requests are all answered; the last answer is the one that says so.
#[test]
fn requests_that_came_together_are_all_answered() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--workers", "1"]);
        let (mut kept, mut talk) = (Talk::with(house.address()), Talk::with(house.address()));
        assert_eq!(talk.get("/small.txt"), (SMALL.to_vec(), false));
        house.signal(Signal::TERM);
        kept.until_last("/small.txt");
        talk.0.send(&b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n".repeat(10));
        let last: Vec<bool> = (0..10).map(|_| talk.hear().value("Connection").is_some()).collect();
        assert_eq!(last, [vec![false; 9], vec![true]].concat(), "{io}");
        talk.ends();
        assert_eq!(house.end(), Some(0), "{io}");
    }
}

/// A client that has asked for the large file and takes nothing but the first byte.
fn never_reads(house: &House) -> TcpStream {
    let mut stream = TcpStream::connect(house.address()).expect("a connection");
    set_socket_recv_buffer_size(&stream, 16 * 1024).expect("a small window");
    stream.write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n").expect("a request");
    stream.read_exact(&mut [0]).expect("the beginning of an answer");
    stream
}

#[test]
fn who_never_reads_is_left_when_the_time_is_over() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--drain-timeout", "300ms"]);
        let mut stuck = never_reads(&house);
        house.signal(Signal::TERM);
        assert_eq!(house.end(), Some(0), "{io}");
        // An end or a reset: either way the answer is not whole.
        let mut received = Vec::new();
        let _ = stuck.read_to_end(&mut received);
        assert!(received.len() < LARGE_BYTES, "{io}: {}", received.len());
    }
}

/// Signals within a second are one wish; this is a little longer.
const ONE_WISH: Duration = Duration::from_millis(1100);

/// `timeout` signals its child and then the group, `make` and `npm` do alike. A machine that is busy may
/// bring the second signal late: then it was another wish, and the attempt is made again.
#[test]
fn two_signals_at_once_are_one_wish() {
    for io in WAYS {
        for (first, second) in [(Signal::TERM, Signal::TERM), (Signal::INT, Signal::TERM)] {
            let kept = (0..5).any(|_| {
                let mut house = House::new(&["--io", io, "--workers", "1"]);
                let mut slow = Talk::with(house.address());
                slow.ask("/large.bin");
                while slow.0.received().is_empty() {
                    assert!(slow.0.fill(crate::house::PATIENCE));
                }
                let start = Instant::now();
                house.signal(first);
                house.until_said("ending", 1);
                house.signal(second);
                let is_one_wish = start.elapsed() < Duration::from_millis(500);
                if is_one_wish {
                    assert_eq!(slow.hear().body.len(), LARGE_BYTES, "{io}, {first:?}, {second:?}");
                    assert_eq!(house.end(), Some(0), "{io}");
                    assert!(!house.said().contains("ended at once"), "{}", house.said());
                }
                is_one_wish
            });
            assert!(kept, "{io}: no two signals came within half a second");
        }
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--drain-timeout", "1h"]);
        let _stuck = never_reads(&house);
        house.signal(Signal::TERM);
        house.until_said("ending", 1);
        house.signal(Signal::HUP);
        house.until_said("this process is ending: the signal is ignored", 1);
        assert!(crate::house::is_running(house.first()));
        std::thread::sleep(ONE_WISH);
        house.signal(Signal::INT);
        assert_eq!(house.end(), Some(0), "{io}");
        assert!(
            house.said().contains("ended at once, by a second signal"),
            "{}",
            escape(house.said().as_bytes())
        );
        assert!(!house.path("pid").exists());
    }
}

/// Clients that keep their connections see every request answered until nobody listens any more.
#[test]
fn nothing_is_cut_under_load() {
    for io in WAYS {
        let mut house = House::new(&["--io", io, "--workers", "2"]);
        let load = Load::closed(&house.url("/small.txt"), 32, "2s");
        std::thread::sleep(Duration::from_millis(700));
        house.signal(Signal::TERM);
        assert_eq!(house.end(), Some(0), "{io}");
        let (answered, failed) = load.finish();
        assert!(answered > 0, "{io}");
        // No process listens afterwards: that is refused, but no answer is cut.
        assert!(failed.iter().all(|(name, _)| *name == "refused"), "{io}: {failed:?}");
    }
}
