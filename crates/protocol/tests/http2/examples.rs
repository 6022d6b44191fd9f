//! Examples of RFC 7541, appendix C: blocks as they are printed there, and what they say.

use staunch_protocol::http2::probe::Blocks;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Reads blocks one after the other by one table; each must give these fields.
fn check(examples: &[(&str, &[(&str, &str)])]) {
    let mut blocks = Blocks::default();
    for (hex, expected) in examples {
        let read = blocks.read(&bytes(hex)).expect("a good block");
        let expected: Vec<_> =
            expected.iter().map(|(n, v)| (n.as_bytes().into(), v.as_bytes().into())).collect();
        assert_eq!(read, expected, "{hex}");
    }
    blocks.release();
    assert_eq!(blocks.held_bytes(), (0, 0));
}

#[test]
fn literals_and_indices_of_c_2() {
    check(&[
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            &[("custom-key", "custom-header")],
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")]),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")]),
        ("82", &[(":method", "GET")]),
    ]);
}

const FIRST: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
const SECOND: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "www.example.com"),
    ("cache-control", "no-cache"),
];
const THIRD: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/index.html"),
    (":authority", "www.example.com"),
    ("custom-key", "custom-value"),
];

#[test]
fn requests_without_huffman_of_c_3() {
    check(&[
        ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST),
        ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND),
        ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", THIRD),
    ]);
}

#[test]
fn requests_with_huffman_of_c_4() {
    check(&[
        ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST),
        ("8286 84be 5886 a8eb 1064 9cbf", SECOND),
        ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD),
    ]);
}

#[test]
fn a_response_with_huffman_of_c_6() {
    check(&[(
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e \
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        &[
            (":status", "302"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ],
    )]);
}

/// C.5 is read with a table of 256 bytes: entries are evicted.
#[test]
fn a_small_table_evicts_as_in_c_5() {
    let mut blocks = Blocks::default();
    let first = "3fe1 01 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 \
         6f6d";
    assert_eq!(blocks.read(&bytes(first)).expect("a good block").len(), 4);
    let second = blocks.read(&bytes("4803 3330 37c1 c0bf")).expect("a good block");
    assert_eq!(second[0], (b":status".to_vec(), b"307".to_vec()));
    assert_eq!(second[3], (b"location".to_vec(), b"https://www.example.com".to_vec()));
    let third = "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 \
         677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 \
         553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31";
    let third = blocks.read(&bytes(third)).expect("a good block");
    assert_eq!(third[1], (b"cache-control".to_vec(), b"private".to_vec()));
    assert_eq!(third[5].1, b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
    // The three newest are left: 98 + 52 + 65 bytes.
    assert!(blocks.held_bytes().0 >= 215 && blocks.read(&bytes("c1")).is_err());
}
