//! Headers as proxies send them, and as they must not.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

fn source(text: &str) -> Option<SocketAddr> {
    Some(text.parse().unwrap())
}

fn binary(version_and_command: u8, family: u8, contents: &[u8]) -> Vec<u8> {
    let length = (contents.len() as u16).to_be_bytes();
    [V2_BEGINNING, &[version_and_command, family], &length, contents].concat()
}

const V4: [u8; 12] = [203, 0, 113, 9, 192, 0, 2, 1, 0xdc, 0x04, 0, 80];

fn v6() -> Vec<u8> {
    let addresses: [Ipv6Addr; 2] = ["2001:db8::9".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    [&addresses[0].octets()[..], &addresses[1].octets(), &[0xdc, 0x04, 0, 80]].concat()
}

/// Headers that are right, and the source they tell.
fn headers() -> Vec<(Vec<u8>, Option<SocketAddr>)> {
    let with_fields = [&V4[..], b"\x03\0\x04\x12\x34\x56\x78", b"\x04\0\0"].concat();
    let longest_unix = [1; 216];
    let line = |text: &str| format!("PROXY {text}\r\n").into_bytes();
    vec![
        (line("TCP4 203.0.113.9 192.0.2.1 56324 80"), source("203.0.113.9:56324")),
        (line("TCP4 255.255.255.255 255.255.255.255 65535 65535"), source("255.255.255.255:65535")),
        (line("TCP6 2001:db8::9 2001:db8::1 56324 80"), source("[2001:db8::9]:56324")),
        (line("TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ::1 0 0"), {
            source("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:0")
        }),
        (line("UNKNOWN"), None),
        (line(&format!("UNKNOWN {}", "f".repeat(91))), None),
        (binary(0x21, 0x11, &V4), source("203.0.113.9:56324")),
        (binary(0x21, 0x11, &with_fields), source("203.0.113.9:56324")),
        (binary(0x21, 0x21, &v6()), source("[2001:db8::9]:56324")),
        (binary(0x21, 0x12, &V4), None),
        (binary(0x21, 0x31, &longest_unix), None),
        (binary(0x21, 0x00, &[]), None),
        (binary(0x21, 0x00, b"something"), None),
        (binary(0x20, 0x00, &[]), None),
        (binary(0x20, 0x11, &V4), None),
        (binary(0x20, 0xff, b"to be ignored"), None),
        (binary(0x21, 0x11, &[V4.to_vec(), vec![0; PROXY_V2_BYTES_MAX - 28]].concat()), {
            source("203.0.113.9:56324")
        }),
    ]
}

#[test]
fn headers_tell_the_source() {
    for (header, source) in headers() {
        let bytes_used = header.len();
        let expected = Introduction::Header { source, bytes_used };
        assert_eq!(read_introduction(&header), expected, "{header:?}");
        let followed = [&header[..], b"GET / HTTP/1.1\r\n\r\n"].concat();
        assert_eq!(read_introduction(&followed), expected, "{header:?} with bytes behind it");
        for cut in 0..header.len() {
            assert_eq!(read_introduction(&header[..cut]), Introduction::NeedMore, "{header:?} cut at {cut}");
        }
    }
}

#[test]
fn faults() {
    let line = |text: &str| format!("PROXY {text}\r\n").into_bytes();
    let faulty = [
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"\r\n\r\n\0\r\nQUIT\r".to_vec(),
        b"proxy TCP4 203.0.113.9 192.0.2.1 56324 80\r\n".to_vec(),
        line(""),
        line("TCP4"),
        line("TCP4 203.0.113.9 192.0.2.1 56324"),
        line("TCP4 203.0.113.9 192.0.2.1 56324 80 9"),
        line("TCP4 203.0.113.9 192.0.2.1 56324 80 "),
        line("TCP4  203.0.113.9 192.0.2.1 56324 80"),
        line("TCP4 203.0.113.9 192.0.2.1 56324 65536"),
        line("TCP4 203.0.113.9 192.0.2.1 +5632 80"),
        line("TCP4 203.0.113.09 192.0.2.1 56324 80"),
        line("TCP4 203.0.113.9 192.0.2.1  80"),
        line("TCP4 2001:db8::9 2001:db8::1 56324 80"),
        line("TCP6 203.0.113.9 192.0.2.1 56324 80"),
        line("UDP4 203.0.113.9 192.0.2.1 56324 80"),
        line("TCP4 203.0.113.\u{e9} 192.0.2.1 56324 80"),
        b"PROXY TCP4 203.0.113.\xff 192.0.2.1 56324 80\r\n".to_vec(),
        line(&format!("UNKNOWN {}", "f".repeat(92))),
        [&b"PROXY "[..], &[b'x'; 101]].concat(),
        binary(0x11, 0x11, &V4),
        binary(0x22, 0x11, &V4),
        binary(0x21, 0x41, &V4),
        binary(0x21, 0x13, &V4),
        binary(0x21, 0x11, &V4[..11]),
        binary(0x21, 0x21, &v6()[..35]),
        binary(0x21, 0x31, &[0; 215]),
        binary(0x21, 0x11, &vec![0; PROXY_V2_BYTES_MAX - 15]),
        // Known to be faulty before it is complete.
        binary(0x21, 0x11, &vec![0; PROXY_V2_BYTES_MAX - 15])[..16].to_vec(),
    ];
    for bytes in faulty {
        assert!(matches!(read_introduction(&bytes), Introduction::Fault(_)), "{bytes:?}");
    }
}

fn beginnings() -> impl Strategy<Value = Vec<u8>> {
    let headers = headers();
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let changed = (prop::sample::select(headers), prop::collection::vec(change, 0..3)).prop_map(
        |((mut bytes, _), changes)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
            bytes
        },
    );
    prop_oneof![4 => changed, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 2000,
        rng_seed: RngSeed::Fixed(0x9a),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Pieces may be cut anywhere: there is one outcome, and it stays.
    #[test]
    fn what_is_known_once_stays(bytes in beginnings()) {
        let whole = read_introduction(&bytes);
        for cut in 0..bytes.len() {
            let outcome = read_introduction(&bytes[..cut]);
            prop_assert!(outcome == whole || outcome == Introduction::NeedMore, "{outcome:?} at {cut}");
        }
        if let Introduction::Header { bytes_used, .. } = whole {
            prop_assert!(bytes_used <= bytes.len());
            prop_assert_eq!(read_introduction(&bytes[..bytes_used - 1]), Introduction::NeedMore);
        }
    }
}
