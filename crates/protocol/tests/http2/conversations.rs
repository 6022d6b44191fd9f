//! Conversations of good clients.

use super::driver::{Driver, Manner, Out, block, frame, get, hello, request};
use staunch_protocol::http2::is_preface;
use staunch_protocol::{Deadline, Timeouts};

const READS: Manner = Manner { waits: 0, goes_on: true, reads: true };
const WAITS: Manner = Manner { waits: u32::MAX, goes_on: true, reads: true };

pub(super) fn driver(manner: Manner) -> Driver {
    let mut driver = Driver::new(manner);
    assert!(!driver.deliver(&hello()));
    let settings = driver.new_frames();
    assert_eq!(settings.iter().map(|it| (it.kind, it.flags)).collect::<Vec<_>>(), [(4, 0), (8, 0), (4, 1)]);
    driver
}

fn kinds(frames: &[Out]) -> Vec<(u8, u8, u32, usize)> {
    frames.iter().map(|it| (it.kind, it.flags, it.stream, it.payload.len())).collect()
}

#[test]
fn the_preface_is_told_apart() {
    assert_eq!(is_preface(b""), None);
    assert_eq!(is_preface(b"PRI * HTTP/2.0\r\n"), None);
    assert_eq!(is_preface(b"PRI * HTTP/1.1\r\n"), Some(false));
    assert_eq!(is_preface(b"GET / HTTP/1.1\r\n"), Some(false));
    assert_eq!(is_preface(&hello()), Some(true));
}

#[test]
fn a_small_answer_is_two_frames_and_nothing_stays() {
    let mut driver = driver(READS);
    driver.deliver(&get(1, "/5"));
    let frames = driver.new_frames();
    assert_eq!(kinds(&frames[1..]), [(0, 1, 1, 5)]);
    assert_eq!((frames[0].kind, frames[0].flags, frames[0].payload[0]), (1, 4, 0x88));
    assert_eq!(driver.session.held_bytes(), 0);
    assert_eq!(driver.told, ["1 Get /5 None GET /5 HTTP/1.1\\r\\nhost: a.example\\r\\n\\r\\n"]);
    driver.end();
}

#[test]
fn head_and_empty_answers_end_with_their_head() {
    let mut driver = driver(READS);
    driver.deliver(&frame(1, 5, 1, &block(&request("HEAD", "/5"))));
    driver.deliver(&get(3, "/0"));
    let frames = driver.new_frames();
    assert_eq!(frames.iter().map(|it| (it.kind, it.flags)).collect::<Vec<_>>(), [(1, 5), (1, 5)]);
    driver.end();
}

#[test]
fn a_long_answer_waits_for_windows() {
    let mut driver = driver(READS);
    driver.deliver(&get(1, "/70000"));
    let sizes: Vec<usize> = driver.new_frames()[1..].iter().map(|it| it.payload.len()).collect();
    assert_eq!(sizes, [16_384, 16_384, 16_384, 16_383]);
    driver.deliver(&frame(8, 0, 1, &100_000u32.to_be_bytes()));
    assert!(driver.new_frames().is_empty(), "the window of the connection is shut");
    driver.deliver(&frame(8, 0, 0, &100_000u32.to_be_bytes()));
    assert_eq!(kinds(&driver.new_frames()), [(0, 1, 1, 4465)]);
    assert_eq!(driver.session.held_bytes(), 0);
    driver.end();
}

#[test]
fn settings_change_windows_of_streams() {
    let mut driver = driver(READS);
    driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 10]));
    driver.deliver(&get(1, "/25"));
    assert_eq!(kinds(&driver.new_frames()[2..]), [(0, 0, 1, 10)]);
    driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    driver.deliver(&frame(8, 0, 1, &12u32.to_be_bytes()));
    assert_eq!(kinds(&driver.new_frames()), [(4, 1, 0, 0), (0, 0, 1, 2)]);
    driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0, 1, 0]));
    assert_eq!(kinds(&driver.new_frames()), [(4, 1, 0, 0), (0, 1, 1, 13)]);
    driver.end();
}

#[test]
fn urgent_answers_go_first_and_incremental_ones_in_turn() {
    let mut driver = driver(Manner { waits: 0, goes_on: false, reads: true });
    driver.deliver(&frame(8, 0, 0, &1_000_000u32.to_be_bytes()));
    for (stream, priority) in [(1, "u=5"), (3, "u=1, i"), (5, "u=1, i"), (7, "u=0"), (9, "u=1")] {
        let mut fields = request("GET", "/40000");
        fields.push(("priority", priority));
        driver.deliver(&frame(1, 5, stream, &block(&fields)));
    }
    driver.deliver(&frame(16, 0, 0, b"\0\0\0\x01u=0"));
    driver.new_frames();
    driver.go_on();
    driver.go_on();
    driver.go_on();
    let order: Vec<u32> = driver.new_frames().iter().map(|it| it.stream).collect();
    assert_eq!(order, [1, 1, 7, 7, 9, 9, 3, 5, 3, 5]);
    driver.end();
}

#[test]
fn a_body_is_given_and_windows_follow_what_was_taken() {
    let mut driver = driver(WAITS);
    let mut fields = request("POST", "/3");
    fields.push(("content-length", "100000"));
    driver.deliver(&frame(1, 4, 1, &block(&fields)));
    let more = (262_144u32 - 65_535).to_be_bytes();
    let windows: Vec<_> =
        driver.new_frames().into_iter().map(|it| (it.kind, it.stream, it.payload)).collect();
    assert_eq!(windows, [(8, 1, more.to_vec())]);
    for piece in 0..10 {
        driver.deliver(&frame(0, u8::from(piece == 9), 1, &[b'x'; 10_000]));
    }
    assert_eq!(driver.told.len(), 1 + 10 + 1);
    assert_eq!(driver.told[11], "1 end");
    driver.answer_all();
    assert_eq!(driver.over, 1);
    driver.end();
}

#[test]
fn a_body_that_is_not_taken_gets_no_window() {
    let mut driver = driver(Manner { waits: 1, goes_on: true, reads: false });
    driver.deliver(&frame(1, 4, 1, &block(&request("POST", "/3"))));
    for _ in 0..3 {
        driver.deliver(&frame(0, 0, 1, &[b'x'; 16_384]));
    }
    assert!(driver.new_frames().is_empty(), "nothing was taken");
    driver.session.taken(1, 16_384 * 2, driver.now_ms, &mut driver.out);
    let told: Vec<_> = driver.new_frames().iter().map(|it| (it.kind, it.stream)).collect();
    assert_eq!(told, [(8, 1)]);
    driver.answer(1);
    driver.go_on();
    driver.deliver(&frame(0, 1, 1, &[b'x'; 16_000]));
    assert_eq!(kinds(&driver.new_frames()[1..]), [(0, 1, 1, 3)], "nothing behind the answer");
    assert_eq!(driver.session.held_bytes(), 0, "what is late is ignored, and its end forgotten");
    assert_eq!(driver.session.wasted_us(), 0);
    driver.end();
}

#[test]
fn a_peer_that_waits_for_100_is_told() {
    let mut driver = driver(WAITS);
    let mut fields = request("POST", "/3");
    fields.extend([("expect", "100-continue"), ("content-length", "1")]);
    driver.deliver(&frame(1, 4, 1, &block(&fields)));
    assert_eq!(driver.new_frames()[0].payload, [8, 3, b'1', b'0', b'0']);
    driver.deliver(&frame(0, 1, 1, b"x"));
    driver.end();
}

#[test]
fn a_body_that_is_awaited_has_a_deadline_and_one_withheld_has_none() {
    let mut driver = driver(Manner { waits: 1, goes_on: true, reads: false });
    let mut fields = request("POST", "/3");
    fields.extend([("expect", "100-continue"), ("content-length", "1")]);
    driver.deliver(&frame(1, 4, 1, &block(&fields)));
    assert!(!driver.wait(1_000_000));
    driver.session.read_body(1, driver.now_ms, &mut driver.out);
    assert!(!driver.wait(15_000));
    assert_eq!(driver.told.last().map(String::as_str), Some("1 reset CANCEL"));
    driver.end();
}

/// A peer that sends as much as it may comes to the end of a window with few bytes, again and again.
#[test]
fn the_last_bytes_of_a_window_are_not_odd() {
    let mut driver = driver(WAITS);
    driver.deliver(&frame(1, 4, 1, &block(&request("POST", "/3"))));
    let mut window = 65_535;
    for _ in 0..3_000 {
        for frame in driver.new_frames() {
            if (frame.kind, frame.stream) == (8, 1) {
                window += u32::from_be_bytes(frame.payload[..4].try_into().expect("four bytes")) as usize;
            }
        }
        assert!(window > 0, "it goes on");
        let count = window.min(16_384);
        driver.deliver(&frame(0, 0, 1, &vec![b'x'; count]));
        window -= count;
    }
    assert_eq!(driver.session.wasted_us(), 0);
    driver.end();
}

/// A body has as long as one of the slowest rate would take, but time in which it is held does not count.
#[test]
fn a_body_that_trickles_is_given_up() {
    let timeouts = Timeouts { body_ms: 5_000, body_rate_min: 100, ..Timeouts::default() };
    let mut driver = driver(Manner { waits: 1, goes_on: true, reads: false });
    driver.deliver(&frame(1, 4, 1, &block(&request("POST", "/3"))));
    driver.session.read_body(1, 0, &mut driver.out);
    assert_eq!(driver.session.poll_timeout(&timeouts), Some((5_000, Deadline::Body)));
    for due_ms in [9_000, 12_000, 13_000] {
        driver.now_ms += 4_000;
        driver.deliver(&frame(0, 0, 1, &[b'x'; 100]));
        assert_eq!(driver.session.poll_timeout(&timeouts), None, "it is held");
        driver.session.taken(1, 100, driver.now_ms, &mut driver.out);
        assert_eq!(driver.session.poll_timeout(&timeouts), Some((due_ms, Deadline::Body)));
    }
    driver.deliver(&frame(0, 0, 1, &[b'x'; 100]));
    driver.now_ms += 60_000;
    driver.session.taken(1, 100, driver.now_ms, &mut driver.out);
    let due_ms = driver.now_ms + 2_000;
    assert_eq!(driver.session.poll_timeout(&timeouts), Some((due_ms, Deadline::Body)));
    driver.end();
}

#[test]
fn trailers_end_a_body() {
    let mut driver = driver(WAITS);
    driver.deliver(&frame(1, 4, 1, &block(&request("POST", "/3"))));
    driver.deliver(&frame(0, 0, 1, &[b'x'; 100]));
    driver.deliver(&frame(1, 5, 1, &block(&[("checksum", "1")])));
    assert_eq!(driver.told.last().map(String::as_str), Some("1 end"));
    driver.end();
}

#[test]
fn crumbs_of_a_cookie_are_joined() {
    let mut driver = driver(READS);
    let mut fields = request("GET", "/0");
    fields.extend([("cookie", "a=b"), ("x", "y"), ("cookie", "c=d"), ("cookie", "e=f")]);
    driver.deliver(&frame(1, 5, 1, &block(&fields)));
    assert!(driver.told[0].ends_with("x: y\\r\\ncookie: a=b; c=d; e=f\\r\\n\\r\\n"), "{:?}", driver.told);
    driver.end();
}

#[test]
fn leaving_answers_what_is_on_its_way() {
    let mut driver = driver(READS);
    driver.session.leave(&mut driver.out);
    let frames = driver.new_frames();
    assert_eq!(frames[0].payload[..4], [0x7f, 0xff, 0xff, 0xff]);
    assert_eq!((frames[1].kind, frames[1].flags), (6, 0));
    assert!(!driver.deliver(&get(1, "/5")));
    assert_eq!(driver.over, 1);
    assert!(driver.deliver(&frame(6, 1, 0, b"leaving!")));
    let last = driver.new_frames();
    assert_eq!(last.last().expect("a frame").payload[..8], [0, 0, 0, 1, 0, 0, 0, 0]);
    driver.end();
}

#[test]
fn what_comes_after_the_end_harms_no_answer() {
    let mut driver = driver(WAITS);
    driver.deliver(&get(1, "/5"));
    driver.session.leave(&mut driver.out);
    driver.deliver(&frame(6, 1, 0, b"leaving!"));
    assert!(!driver.deliver(&frame(1, 4, 3, &block(&request("POST", "/5")))));
    assert!(!driver.deliver(&frame(0, 0, 3, &[b'x'; 16_384])));
    assert!(!driver.deliver(&frame(8, 0, 3, &[0, 0, 1, 0])));
    assert!(!driver.deliver(&frame(3, 0, 3, &[0; 4])));
    assert_eq!(driver.told.len(), 1);
    assert!(driver.session.wasted_us() < 32, "{}", driver.session.wasted_us());
    driver.answer_all();
    assert!(driver.deliver(b""));
    driver.end();
}

#[test]
fn leaving_now_answers_nothing_that_comes_behind() {
    let mut driver = driver(WAITS);
    driver.deliver(&get(1, "/5"));
    driver.session.leave_now(&mut driver.out);
    driver.session.leave_now(&mut driver.out);
    let frames = driver.new_frames();
    assert_eq!((frames.len(), &frames[0].payload[..8]), (1, &[0, 0, 0, 1, 0, 0, 0, 0][..]));
    assert!(!driver.deliver(&get(3, "/5")));
    assert_eq!(driver.told.len(), 1);
    driver.answer_all();
    assert!(driver.deliver(b""));
    assert_eq!(driver.over, 1);
    driver.end();
}

#[test]
fn a_connection_is_left_before_its_numbers_end() {
    let mut driver = driver(WAITS);
    driver.deliver(&get(0x7fff_efff, "/5"));
    assert!(driver.new_frames().is_empty());
    driver.deliver(&get(0x7fff_ffff, "/5"));
    assert_eq!(driver.new_frames().iter().map(|it| it.kind).collect::<Vec<_>>(), [7, 6]);
    driver.answer_all();
    assert_eq!(driver.over, 2);
    driver.end();
}

#[test]
fn a_peer_that_leaves_gets_its_answers() {
    let mut driver = driver(WAITS);
    driver.deliver(&get(1, "/5"));
    assert!(!driver.deliver(&frame(7, 0, 0, &[0; 8])));
    assert!(!driver.deliver(&get(3, "/5")), "what comes behind is not looked at");
    driver.answer_all();
    // However it is cut: nothing behind the last answer is read.
    assert!(driver.deliver(&[0xff; 9]));
    assert_eq!((driver.told.len(), driver.over), (1, 1));
    driver.end();
}

#[test]
fn an_idle_connection_ends_quietly() {
    let mut driver = driver(READS);
    driver.deliver(&get(1, "/5"));
    assert!(!driver.wait(14_999));
    assert!(driver.wait(1));
    let last = driver.new_frames().pop().expect("a frame");
    assert_eq!((last.kind, &last.payload[4..8]), (7, &[0, 0, 0, 0][..]));
    driver.end();
}

#[test]
fn a_stream_that_nobody_reads_is_reset_alone() {
    let mut driver = driver(Manner { waits: 0b10, goes_on: true, reads: true });
    driver.deliver(&get(1, "/70000"));
    driver.deliver(&get(3, "/5"));
    driver.new_frames();
    assert!(!driver.wait(30_000));
    assert_eq!(driver.told.last().map(String::as_str), Some("1 reset CANCEL"));
    assert_eq!(driver.new_frames(), [Out { kind: 3, flags: 0, stream: 1, payload: vec![0, 0, 0, 8] }]);
    driver.deliver(&frame(8, 0, 0, &100_000u32.to_be_bytes()));
    driver.answer_all();
    assert_eq!(driver.over, 2);
    driver.end();
}

#[test]
fn a_smaller_table_is_acknowledged_once() {
    let mut driver = driver(READS);
    driver.deliver(&frame(4, 0, 0, &[0, 1, 0, 0, 0, 0]));
    driver.deliver(&get(1, "/0"));
    driver.deliver(&get(3, "/0"));
    let frames = driver.new_frames();
    assert_eq!((frames[1].payload[0], frames[2].payload[0]), (0x20, 0x88));
    driver.end();
}
