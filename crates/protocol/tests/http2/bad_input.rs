//! What bad input gets. The numbers in the names are those of the rows of the table of bad input that HTTP/2
//! was planned with: 12 resets, 13 endless blocks, 14 bombs of fields, 15 floods, 16 malformed requests, 17
//! connections.

use super::conversations::driver;
use super::driver::{Driver, Manner, block, frame, get, hello, request};

const READS: Manner = Manner { waits: 0, goes_on: true, reads: true };
const WAITS: Manner = Manner { waits: u32::MAX, goes_on: true, reads: true };

/// Sends until the session closes; how often, and what was wrong.
fn sends(driver: &mut Driver, mut next: impl FnMut(u32) -> Vec<u8>) -> (u32, String) {
    for count in 1..50_000 {
        if driver.deliver(&next(count)) {
            return (count, driver.told.last().cloned().unwrap_or_default());
        }
    }
    panic!("the session never closed");
}

/// Sends to a fresh connection behind a good start; why it closed.
fn closes(bytes: &[u8]) -> String {
    let mut driver = driver(WAITS);
    assert!(driver.deliver(bytes), "{:?}", driver.told);
    let last = driver.new_frames().pop().expect("GOAWAY");
    assert_eq!(last.kind, 7);
    let told = driver.told.last().cloned().expect("a reason");
    driver.end();
    told
}

fn calm(told: &str) -> bool {
    told.ends_with("(ENHANCE_YOUR_CALM)")
}

#[test]
fn row_12_rapid_reset_of_answered_requests() {
    let mut driver = driver(READS);
    let (count, told) = sends(&mut driver, |count| {
        let stream = 2 * count - 1;
        [get(stream, "/5"), frame(3, 0, stream, &8u32.to_be_bytes())].concat()
    });
    assert!((3_000..=4_001).contains(&count) && calm(&told), "{count} {told}");
    driver.end();
}

/// An answer that comes before the body of its request is reset as any other.
#[test]
fn row_12_rapid_reset_of_early_answers() {
    let mut driver = driver(READS);
    let (count, told) = sends(&mut driver, |count| {
        let stream = 2 * count - 1;
        let asked = frame(1, 4, stream, &block(&request("POST", "/5")));
        [asked, frame(3, 0, stream, &8u32.to_be_bytes())].concat()
    });
    assert!((3_000..=4_001).contains(&count) && calm(&told), "{count} {told}");
    driver.end();
}

/// Answers that are under way: most of what is asked for is never made.
#[test]
fn row_12_rapid_reset_of_answers_that_have_begun() {
    let mut driver = driver(Manner { waits: 0, goes_on: false, reads: true });
    driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 10]));
    let (count, told) = sends(&mut driver, |count| {
        let stream = 2 * count - 1;
        [get(stream, "/500"), frame(3, 0, stream, &8u32.to_be_bytes())].concat()
    });
    assert!((3_000..=4_001).contains(&count) && calm(&told), "{count} {told}");
    driver.end();
}

#[test]
fn row_12_rapid_reset_of_waiting_requests() {
    let mut driver = driver(WAITS);
    let (count, told) = sends(&mut driver, |count| {
        let stream = 2 * count - 1;
        [get(stream, "/5"), frame(3, 0, stream, &8u32.to_be_bytes())].concat()
    });
    assert!((1_000..=2_100).contains(&count) && calm(&told), "{count} {told}");
    driver.end();
}

#[test]
fn row_12_resets_that_the_peer_makes_us_send() {
    let provocations: &[fn(u32) -> Vec<u8>] = &[
        |stream| [get(stream, "/5"), frame(8, 0, stream, &0u32.to_be_bytes())].concat(),
        |stream| [get(stream, "/5"), frame(8, 0, stream, &0x7fff_ffffu32.to_be_bytes())].concat(),
        |stream| [get(stream, "/5"), frame(0, 1, stream, b"x")].concat(),
        |stream| {
            frame(1, 0x25, stream, &[&stream.to_be_bytes()[..], b"\0", &block(&request("GET", "/"))].concat())
        },
        |stream| frame(1, 5, stream, &block(&[(":method", "GET")])),
    ];
    for (number, provocation) in provocations.iter().enumerate() {
        let mut driver = driver(WAITS);
        let (count, told) = sends(&mut driver, |count| provocation(2 * count - 1));
        assert!(count <= 101 && calm(&told), "{number}: {count} {told}");
        driver.end();
    }
}

#[test]
fn row_12_a_browser_that_leaves_a_page_is_no_attacker() {
    let mut driver = driver(WAITS);
    for round in 0..5 {
        for number in 0..20 {
            let stream = 2 * (20 * round + number) + 1;
            assert!(!driver.deliver(&get(stream, "/5")));
            assert!(!driver.deliver(&frame(3, 0, stream, &8u32.to_be_bytes())));
        }
        driver.now_ms += 5_000;
    }
    driver.end();
}

#[test]
fn row_13_a_block_without_end() {
    let start = frame(1, 1, 1, b"");
    let told = closes(&[start.clone(), frame(9, 0, 1, &[0; 100]).repeat(9)].concat());
    assert!(calm(&told), "{told}");
    let told = closes(&[start.clone(), frame(9, 0, 1, &[0; 16_384]).repeat(3)].concat());
    assert!(calm(&told), "{told}");
    let mut driver = driver(READS);
    let mut empty = frame(1, 1, 1, &block(&request("GET", "/0")));
    empty.extend(frame(9, 0, 1, b"").repeat(6));
    empty.extend(frame(9, 4, 1, b""));
    let (count, told) = sends(&mut driver, |count| {
        let mut bytes = empty.clone();
        let stream = (2 * count - 1).to_be_bytes();
        let mut at = 0;
        while at < bytes.len() {
            bytes[at + 5..at + 9].copy_from_slice(&stream);
            at += 9 + usize::from(bytes[at + 1]) * 256 + usize::from(bytes[at + 2]);
        }
        bytes
    });
    assert!(count <= 150 && calm(&told), "{count} {told}");
    driver.end();
}

#[test]
fn row_13_frames_within_a_block() {
    let start = frame(1, 1, 1, b"");
    for other in
        [frame(6, 0, 0, &[0; 8]), frame(9, 4, 3, b""), get(3, "/"), frame(0, 0, 1, b""), frame(99, 0, 0, b"")]
    {
        assert!(closes(&[start.clone(), other].concat()).ends_with("(PROTOCOL_ERROR)"));
    }
    assert!(closes(&frame(9, 4, 1, b"")).ends_with("(PROTOCOL_ERROR)"));
}

#[test]
fn row_13_a_block_that_trickles_has_a_deadline() {
    let mut driver = driver(READS);
    driver.deliver(&frame(1, 1, 1, b"\x82"));
    assert!(!driver.wait(14_000));
    driver.deliver(&frame(9, 0, 1, b"\x87"));
    assert!(driver.wait(1_000));
    driver.end();
}

#[test]
fn row_13_a_good_block_in_pieces() {
    let mut driver = driver(READS);
    let whole = block(&request("GET", "/5"));
    let (first, rest) = whole.split_at(10);
    let (second, third) = rest.split_at(3);
    driver.deliver(&[frame(1, 1, 1, first), frame(9, 0, 1, second), frame(9, 4, 1, third)].concat());
    assert_eq!((driver.over, driver.session.wasted_us()), (1, 0));
    driver.end();
}

#[test]
fn row_14_fields_by_reference_are_counted() {
    // A field of 4 000 bytes goes into the table, and is then referred to by one byte each time.
    let big = [&[0x40, 1, b'a'][..], &[127, 0xa1, 0x1e], &[b'x'; 4_000]].concat();
    let good = block(&request("GET", "/0"));
    let mut driver = driver(READS);
    driver.deliver(&frame(1, 5, 1, &[&good[..], &big].concat()));
    assert_eq!(driver.over, 1);
    driver.deliver(&frame(1, 5, 3, &[&good[..], &[0xbe; 9]].concat()));
    assert_eq!(driver.told[1], "3 refused Some(431)");
    let closed = driver.deliver(&frame(1, 5, 5, &[&good[..], &[0xbe; 5_000]].concat()));
    assert!(closed && calm(driver.told.last().expect("a reason")), "{:?}", driver.told);
    driver.end();
}

#[test]
fn row_14_many_fields_and_crumbs() {
    for name in ["x", "cookie"] {
        let mut fields = request("GET", "/0");
        fields.extend([(name, "y"); 96]);
        let mut driver = driver(READS);
        driver.deliver(&frame(1, 5, 1, &block(&fields)));
        assert_eq!(driver.over, 1, "100 fields are taken");
        fields.push((name, "y"));
        driver.deliver(&frame(1, 5, 3, &block(&fields)));
        assert_eq!(driver.told[1], "3 refused Some(431)");
        driver.deliver(&get(5, "/0"));
        assert_eq!(driver.over, 2, "the connection goes on");
        driver.end();
    }
}

#[test]
fn row_14_a_long_target_is_answered_414() {
    let path = format!("/{}", "a".repeat(9_000));
    let mut driver = driver(READS);
    driver.deliver(&get(1, &path));
    assert_eq!(driver.told, ["1 refused Some(414)"]);
    let text = driver.new_frames().pop().expect("the sentence").payload;
    assert!(text.starts_with(b"414 URI Too Long: "), "{}", text.escape_ascii());
    driver.end();
}

#[test]
fn row_14_tables_numbers_and_codes_that_are_wrong() {
    let bad: &[&[u8]] = &[
        b"\xbe",                         // an index beyond both tables
        b"\x80",                         // index 0
        b"\x3f\xe2\x1f",                 // a table of 4 097 bytes
        b"\x82\x20",                     // a change of size behind a field
        b"\x20\x20\x20",                 // three changes
        b"\xff\x80\x80\x80\x80\x80",     // a number without end
        b"\x40",                         // nothing behind the beginning
        b"\x00\x7f\xff\xff\xff\x7f",     // a length beyond the block
        b"\x00\x81\x00\x00",             // Huffman: padding of zeros
        b"\x00\x84\xff\xff\xff\xff\x00", // Huffman: EOS
    ];
    for block in bad {
        let told = closes(&frame(1, 5, 1, block));
        assert!(told.ends_with("(COMPRESSION_ERROR)"), "{}: {told}", block.escape_ascii());
    }
}

#[test]
fn row_15_floods() {
    type Flood = fn(u32) -> Vec<u8>;
    let floods: &[(&str, u32, Flood)] = &[
        ("PING", 16_001, |_| frame(6, 0, 0, &[0; 8])),
        ("SETTINGS", 1_001, |_| frame(4, 0, 0, b"")),
        ("PRIORITY", 32_001, |_| frame(2, 0, 1, &[0, 0, 0, 3, 0])),
        ("PRIORITY_UPDATE", 32_001, |_| frame(16, 0, 0, b"\0\0\0\x01u=1")),
        ("empty DATA", 4_001, |_| frame(0, 0, 1, b"")),
        ("padding only", 4_001, |_| frame(0, 8, 1, &[0])),
        ("tiny DATA", 32_001, |_| frame(0, 0, 1, b"x")),
        ("unknown", 16_001, |_| frame(200, 0, 0, b"x")),
    ];
    for (name, most, flood) in floods {
        let mut driver = driver(WAITS);
        driver.deliver(&frame(1, 4, 1, &block(&request("POST", "/5"))));
        let (count, told) = sends(&mut driver, flood);
        assert!(count <= *most && calm(&told), "{name}: {count} {told}");
        driver.end();
    }
}

#[test]
fn row_15_windows_opened_byte_by_byte() {
    let mut driver = driver(READS);
    driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    driver.deliver(&get(1, "/500000"));
    assert!(driver.session.held_bytes() <= 1024, "{}", driver.session.held_bytes());
    let (count, told) = sends(&mut driver, |_| frame(8, 0, 1, &1u32.to_be_bytes()));
    assert!(count <= 32_001 && calm(&told), "{count} {told}");
    driver.end();
}

#[test]
fn row_15_a_dribble_does_not_move_the_deadline() {
    let mut driver = driver(READS);
    driver.deliver(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    driver.deliver(&get(1, "/500000"));
    for _ in 0..9 {
        assert!(!driver.wait(3_000));
        driver.deliver(&frame(8, 0, 1, &100u32.to_be_bytes()));
    }
    driver.wait(3_000);
    assert_eq!(driver.told.last().map(String::as_str), Some("1 reset CANCEL"));
    driver.end();
}

#[test]
fn row_15_requests_beyond_the_limit_are_refused() {
    let mut driver = Driver::new(WAITS);
    driver.deliver(&hello());
    for number in 0..32 {
        driver.deliver(&get(2 * number + 1, "/1"));
    }
    for number in 32..101 {
        driver.deliver(&frame(1, 4, 2 * number + 1, &block(&request("POST", "/99999"))));
    }
    let refused = driver.told.iter().filter(|told| told.contains("refused")).count();
    assert_eq!(refused, 1, "{:?}", driver.told.last());
    driver.end();
}

#[test]
fn row_16_malformed_requests_reach_no_handler() {
    let base = request("GET", "/0");
    let with = |extra: &[(&'static str, &'static str)]| [&base[..], extra].concat();
    let without = |name: &str| base.iter().filter(|field| field.0 != name).copied().collect::<Vec<_>>();
    let path = |path: &'static str| [&without(":path")[..], &[(":path", path)]].concat();
    let bad: &[Vec<(&str, &str)>] = &[
        with(&[("Accept", "x")]),
        with(&[("connection", "close")]),
        with(&[("keep-alive", "1")]),
        with(&[("proxy-connection", "close")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("upgrade", "x")]),
        with(&[("te", "gzip")]),
        with(&[(":path", "/1")]),
        with(&[("x", "y"), (":path", "/")]),
        [&[("x", "y")][..], &base].concat(),
        with(&[(":status", "200")]),
        with(&[(":protocol", "websocket")]),
        with(&[("x", "a\r\nb: c")]),
        with(&[("x", "a\nb")]),
        with(&[("x", "a\0b")]),
        with(&[("x", " a")]),
        with(&[("x", "a ")]),
        with(&[("x\r\ny", "a")]),
        with(&[("x:", "a")]),
        with(&[("", "a")]),
        with(&[("host", "b.example")]),
        with(&[("host", "a.example"), ("host", "b.example")]),
        with(&[("content-length", "x")]),
        with(&[("content-length", "5")]),
        with(&[("content-length", "0"), ("content-length", "1")]),
        without(":method"),
        without(":scheme"),
        without(":path"),
        without(":authority"),
        path(""),
        path("a"),
        path("*"),
        path("http://b.example/"),
        path("/ HTTP/1.1\r\nx: y"),
        path("/a b"),
        path("/#a"),
        vec![(":method", "CONNECT"), (":scheme", "https"), (":authority", "a:1"), (":path", "/")],
        vec![(":method", "CONNECT")],
        vec![(":method", "G T"), (":scheme", "https"), (":authority", "a"), (":path", "/")],
        vec![(":method", "GET"), (":scheme", "ftp"), (":authority", "a"), (":path", "/")],
        vec![(":method", "GET"), (":scheme", "https"), (":authority", "u@a"), (":path", "/")],
        vec![(":method", "GET"), (":scheme", "https"), (":authority", ""), (":path", "/")],
    ];
    for fields in bad {
        let mut driver = driver(READS);
        assert!(!driver.deliver(&frame(1, 5, 1, &block(fields))), "{fields:?}");
        assert_eq!(driver.told, ["1 refused None"], "{fields:?}");
        let last = driver.new_frames().pop().expect("RST_STREAM");
        assert_eq!((last.kind, last.stream, &last.payload[..]), (3, 1, &[0, 0, 0, 1][..]), "{fields:?}");
        driver.deliver(&get(3, "/0"));
        assert_eq!(driver.over, 1, "the connection goes on");
        driver.end();
    }
}

#[test]
fn row_16_bodies_unlike_their_length() {
    for (length, data) in [("5", &b"abc"[..]), ("2", b"abc"), ("0", b"abc")] {
        let mut fields = request("POST", "/0");
        fields.push(("content-length", length));
        let mut driver = driver(WAITS);
        driver.deliver(&frame(1, 4, 1, &block(&fields)));
        driver.deliver(&frame(0, 1, 1, data));
        assert_eq!(driver.told.last().map(String::as_str), Some("1 reset PROTOCOL_ERROR"), "{length}");
        driver.end();
    }
    for trailer in [&[(":path", "/")][..], &[("X", "y")]] {
        let mut driver = driver(WAITS);
        driver.deliver(&frame(1, 4, 1, &block(&request("POST", "/0"))));
        driver.deliver(&frame(1, 5, 1, &block(trailer)));
        assert_eq!(driver.told.last().map(String::as_str), Some("1 reset PROTOCOL_ERROR"));
        driver.end();
    }
}

#[test]
fn row_16_what_http1_refuses_otherwise_is_answered() {
    let mut fields = request("GET", "/0");
    fields.push(("expect", "the-unexpected"));
    let mut driver = driver(READS);
    driver.deliver(&frame(1, 5, 1, &block(&fields)));
    assert_eq!(driver.told, ["1 refused Some(417)"]);
    driver.end();
}

#[test]
fn row_17_a_broken_preface() {
    for start in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", b"\x16\x03\x01"] {
        let mut driver = Driver::new(READS);
        assert!(driver.deliver(start));
        assert!(driver.told[0].ends_with("(PROTOCOL_ERROR)"));
        driver.end();
    }
    let mut driver = Driver::new(READS);
    assert!(driver.deliver(&[&hello()[..24], &frame(6, 0, 0, &[0; 8])].concat()), "no SETTINGS");
    driver.end();
    let mut driver = Driver::new(READS);
    assert!(!driver.deliver(&hello()[..20]) && driver.wait(15_000), "a preface that does not come");
    driver.end();
}

#[test]
fn row_17_frames_that_end_the_connection() {
    let bad: &[(&str, Vec<u8>)] = &[
        ("PROTOCOL_ERROR", get(2, "/")),
        ("PROTOCOL_ERROR", get(0, "/")),
        ("PROTOCOL_ERROR", [get(5, "/"), get(3, "/")].concat()),
        ("PROTOCOL_ERROR", frame(0, 0, 0, b"x")),
        ("PROTOCOL_ERROR", frame(0, 0, 1, b"x")),
        ("PROTOCOL_ERROR", frame(3, 0, 1, &[0; 4])),
        ("PROTOCOL_ERROR", frame(8, 0, 1, &[0, 0, 0, 1])),
        ("PROTOCOL_ERROR", frame(8, 0, 0, &[0; 4])),
        ("FLOW_CONTROL_ERROR", frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ("FRAME_SIZE_ERROR", frame(8, 0, 0, &[0; 3])),
        ("FRAME_SIZE_ERROR", frame(3, 0, 1, &[0; 5])),
        ("FRAME_SIZE_ERROR", frame(6, 0, 0, &[0; 7])),
        ("PROTOCOL_ERROR", frame(6, 0, 1, &[0; 8])),
        ("FRAME_SIZE_ERROR", frame(4, 0, 0, &[0; 5])),
        ("FRAME_SIZE_ERROR", frame(4, 1, 0, &[0; 6])),
        ("PROTOCOL_ERROR", frame(4, 0, 1, b"")),
        ("PROTOCOL_ERROR", frame(4, 0, 0, &[0, 2, 0, 0, 0, 2])),
        ("FLOW_CONTROL_ERROR", frame(4, 0, 0, &[0, 4, 0x80, 0, 0, 0])),
        ("PROTOCOL_ERROR", frame(4, 0, 0, &[0, 5, 0, 0, 0x3f, 0xff])),
        ("PROTOCOL_ERROR", frame(5, 0, 1, &[0; 4])),
        ("PROTOCOL_ERROR", frame(7, 0, 1, &[0; 8])),
        ("PROTOCOL_ERROR", frame(2, 0, 0, &[0; 5])),
        ("FRAME_SIZE_ERROR", frame(2, 0, 1, &[0; 4])),
        ("PROTOCOL_ERROR", frame(16, 0, 1, &[0; 5])),
        ("FRAME_SIZE_ERROR", frame(0, 0, 1, &[0; 16_385])),
        ("PROTOCOL_ERROR", [get(1, "/"), frame(0, 8, 1, &[5, 0])].concat()),
    ];
    for (code, bytes) in bad {
        let told = closes(bytes);
        assert!(
            told.ends_with(&format!("({code})")),
            "{}: {told}",
            bytes[..bytes.len().min(40)].escape_ascii()
        );
    }
}

#[test]
fn row_17_data_beyond_a_window() {
    let mut driver = driver(Manner { waits: 3, goes_on: true, reads: false });
    driver.deliver(&frame(1, 4, 1, &block(&request("POST", "/5"))));
    for _ in 0..3 {
        assert!(!driver.deliver(&frame(0, 0, 1, &[b'x'; 16_384])));
    }
    assert!(!driver.deliver(&frame(0, 0, 1, &[b'x'; 16_384])), "65 536 bytes");
    assert_eq!(driver.told.last().map(String::as_str), Some("1 reset FLOW_CONTROL_ERROR"));
    driver.end();
    let mut driver = self::driver(Manner { waits: u32::MAX, goes_on: true, reads: false });
    let piece = |stream| frame(0, 0, stream, &[b'x'; 16_384]);
    for stream in (1..11).step_by(2) {
        driver.deliver(&frame(1, 4, stream, &block(&request("POST", "/5"))));
        assert!(!driver.deliver(&piece(stream).repeat(3)), "{stream}");
    }
    driver.deliver(&frame(1, 4, 11, &block(&request("POST", "/5"))));
    assert!(!driver.deliver(&piece(11)) && driver.deliver(&piece(11)), "more than 262 144 bytes");
    assert!(driver.told.last().expect("a reason").ends_with("(FLOW_CONTROL_ERROR)"));
    driver.end();
}
