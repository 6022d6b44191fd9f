//! Answers that are complete before the bodies of their requests: the body is taken for a while, and then the
//! stream is reset (RFC 9113, section 8.1).

use super::conversations::driver;
use super::driver::{Driver, Manner, block, frame, get, request};

const READS: Manner = Manner { waits: 0, goes_on: true, reads: false };
const RESET: (u8, Option<u8>) = (3, Some(0));

/// Sends the head of a POST whose body is announced to be so long.
fn post(driver: &mut Driver, stream: u32, length: Option<&str>) {
    let mut fields = request("POST", "/5");
    fields.extend(length.map(|length| ("content-length", length)));
    assert!(!driver.deliver(&frame(1, 4, stream, &block(&fields))));
}

/// Kinds of the frames that came out since, and the last byte of those that reset: their code.
fn heard(driver: &mut Driver) -> Vec<(u8, Option<u8>)> {
    let code = |it: &super::driver::Out| it.payload.last().copied().filter(|_| it.kind == 3);
    driver.new_frames().iter().map(|it| (it.kind, code(it))).collect()
}

#[test]
fn a_short_body_is_taken_and_nothing_is_reset() {
    let mut driver = driver(READS);
    post(&mut driver, 1, Some("7"));
    assert_eq!(heard(&mut driver), [(1, None), (0, None)]);
    driver.deliver(&frame(0, 0, 1, b"a=b"));
    driver.deliver(&frame(0, 1, 1, b"&c=d"));
    post(&mut driver, 3, None);
    driver.deliver(&frame(1, 5, 3, &block(&[("checksum", "1")])));
    assert_eq!(heard(&mut driver), [(1, None), (0, None)]);
    assert_eq!((driver.session.wasted_us(), driver.session.held_bytes()), (0, 0));
    driver.end();
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let mut driver = driver(READS);
    post(&mut driver, 1, None);
    heard(&mut driver);
    assert!(!driver.wait(999));
    assert_eq!(heard(&mut driver), []);
    assert!(!driver.wait(1));
    assert_eq!(heard(&mut driver), [RESET]);
    driver.deliver(&get(3, "/5"));
    assert_eq!(driver.over, 2, "the connection goes on");
    driver.end();
}

#[test]
fn a_long_body_is_taken_in_part() {
    let mut driver = driver(READS);
    post(&mut driver, 1, Some("1000000"));
    heard(&mut driver);
    let pieces = [16_384, 16_384, 16_384, 16_383];
    for (place, size) in pieces.into_iter().enumerate() {
        assert_eq!(heard(&mut driver), [], "{place}");
        assert!(!driver.deliver(&frame(0, 0, 1, &vec![b'x'; size])));
    }
    assert!(!driver.wait(1_000));
    assert_eq!(heard(&mut driver), [RESET]);
    driver.end();
}

/// What was under way when a stream was reset is thrown away, however many streams it is of.
#[test]
fn what_is_late_costs_nothing() {
    let mut driver = driver(READS);
    for stream in (1..201).step_by(2) {
        post(&mut driver, stream, None);
    }
    assert!(!driver.wait(1_000));
    assert_eq!(heard(&mut driver).iter().filter(|it| **it == RESET).count(), 100);
    for stream in (1..201).step_by(2) {
        assert!(!driver.deliver(&frame(0, 0, stream, &[b'x'; 600])));
        assert!(!driver.deliver(&frame(0, 1, stream, &[b'x'; 600])));
    }
    assert_eq!(heard(&mut driver), []);
    assert_eq!((driver.session.wasted_us(), driver.session.held_bytes()), (0, 0));
    driver.end();
}

/// Of more streams than may be open the first is not waited for.
#[test]
fn late_bodies_are_few() {
    let mut driver = driver(READS);
    for stream in (1..4_001).step_by(2) {
        post(&mut driver, stream, None);
    }
    driver.deliver(b"");
    assert_eq!(heard(&mut driver).iter().filter(|it| **it == RESET).count(), 1_900);
    assert!(driver.session.held_bytes() < 32 * 1024, "{}", driver.session.held_bytes());
    driver.end();
}

#[test]
fn a_late_body_that_is_wrong_is_told_so() {
    type Wrong = fn() -> Vec<u8>;
    let wrong: [(&str, Wrong); 4] = [
        ("2", || frame(0, 1, 1, b"x")),
        ("2", || frame(0, 0, 1, b"xxx")),
        ("2", || frame(1, 4, 1, &block(&[("checksum", "1")]))),
        ("0", || frame(1, 5, 1, &block(&[(":path", "/")]))),
    ];
    for (place, (length, bytes)) in wrong.into_iter().enumerate() {
        let mut driver = driver(READS);
        post(&mut driver, 1, Some(length));
        heard(&mut driver);
        driver.deliver(&bytes());
        assert_eq!(heard(&mut driver), [(3, Some(1))], "{place}");
        driver.deliver(&get(3, "/5"));
        assert_eq!(driver.over, 2, "the connection goes on");
        driver.end();
    }
}

/// A head that is too large is answered without a handler, and its body is late as any other.
#[test]
fn the_body_of_what_is_refused_is_late() {
    let mut driver = driver(READS);
    let mut fields = request("POST", "/0");
    fields.extend([("x", "y"); 120]);
    driver.deliver(&frame(1, 4, 1, &block(&fields)));
    assert_eq!(driver.told, ["1 refused Some(431)"]);
    assert_eq!(heard(&mut driver), [(1, None)]);
    driver.deliver(&frame(0, 1, 1, b"a=b"));
    assert_eq!(heard(&mut driver), []);
    driver.end();
}

/// A frame of a stream that is over may not take for ever, not even byte by byte.
#[test]
fn a_late_frame_that_trickles_has_a_deadline() {
    let mut driver = driver(READS);
    post(&mut driver, 1, None);
    assert!(!driver.wait(1_000));
    let late = frame(0, 0, 1, &[b'x'; 16_384]);
    assert!(!driver.deliver(&late[..100]));
    let trickle = late[100..].iter().position(|byte| driver.wait(14_000) || driver.deliver(&[*byte]));
    assert!(trickle.is_some_and(|bytes| bytes < 3), "{trickle:?}");
    driver.end();
}

/// A late frame whose bytes go on coming is read to its end.
#[test]
fn a_late_frame_of_a_slow_peer_is_read() {
    let mut driver = driver(READS);
    post(&mut driver, 1, None);
    assert!(!driver.wait(1_000));
    for piece in frame(0, 1, 1, &[b'x'; 16_384]).chunks(1_024) {
        assert!(!driver.wait(10_000) && !driver.deliver(piece));
    }
    assert_eq!(driver.session.held_bytes(), 0);
    driver.end();
}

/// Streams that a deadline has ended are remembered by their numbers, and not all of them.
#[test]
fn bodies_that_time_out_leave_little() {
    let mut driver = driver(Manner { waits: u32::MAX, goes_on: true, reads: true });
    for round in 0..20 {
        for place in 0..100 {
            post(&mut driver, 2 * (100 * round + place) + 1, None);
        }
        assert!(!driver.wait(15_000), "{:?}", driver.told.last());
    }
    assert!(driver.session.held_bytes() < 16 * 1024, "{}", driver.session.held_bytes());
    driver.end();
}
