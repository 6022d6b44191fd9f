//! Bodies that are read: however the bytes are split, the same requests and bodies are heard, to the byte.

use proptest::prelude::*;

#[path = "body_driver/mod.rs"]
mod body_driver;

use body_driver::run;

fn request() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(any::<u8>(), 0..60);
    (0..5u8, body, any::<bool>()).prop_map(|(kind, body, withheld)| {
        let expect = if withheld { "Expect: 100-continue\r\n" } else { "" };
        let start = format!("POST /{kind} HTTP/1.1\r\nHost: a\r\n{expect}");
        match kind {
            0 => b"GET /0 HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            1 | 2 => [format!("{start}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat(),
            _ => {
                let mut bytes = format!("{start}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
                for chunk in body.chunks(7) {
                    bytes.extend_from_slice(format!("{:X};x\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(&[chunk, b"\r\n"].concat());
                }
                bytes.extend_from_slice(if kind == 4 { b"0\r\nT: t\r\n\r\n" } else { b"0\r\n\r\n" });
                bytes
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn every_split_hears_the_same(
        requests in prop::collection::vec(request(), 1..5),
        spoilt in prop::option::weighted(0.2, (0usize..500, any::<u8>())),
        cuts in prop::collection::vec(0usize..900, 0..8),
        ways in any::<u64>(),
    ) {
        let mut bytes = requests.concat();
        if let Some((at, byte)) = spoilt {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % bytes.len()).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        let (whole, split) = (run([&bytes[..]], ways), run(pieces, ways));
        prop_assert!(split.agrees_with(&whole), "{:?}\n{:?}\n{}", split, whole, bytes.escape_ascii());
    }
}

#[test]
fn canary_a_lost_byte_is_heard() {
    let bytes =
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let whole = run([&bytes[..]], 1);
    assert_eq!(whole.requests.len(), 2);
    let mut lost = bytes.to_vec();
    lost.remove(48);
    assert!(!run([&lost[..]], 1).agrees_with(&whole));
}
