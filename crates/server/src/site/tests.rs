//! The site as a peer sees it, driven through real sessions.

mod changes;
mod differences;

use std::time::Duration;

use super::testing::Peer;
use crate::content::testing::Folder;
use crate::{Encoding, SiteConfig};

/// In the past, so that a date is a strong validator: Sun, 06 Nov 1994 08:49:37 GMT.
const MODIFIED_UNIX_S: u64 = 784_111_777;

fn poem() -> Vec<u8> {
    (0..200_u32).flat_map(|line| format!("line {line} of a poem, {}\n", line * 7 % 13).into_bytes()).collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("index.html", b"<h1>home</h1>");
    folder.write("poem.txt", &poem());
    folder.write("digits.bin", b"0123456789");
    folder.write("empty.txt", b"");
    folder.write("deep/a b.txt", b"in a folder");
    folder.write("deep/.hidden", b"hidden");
    folder.write(".well-known/security.txt", b"Contact: x");
    for name in ["index.html", "poem.txt", "digits.bin"] {
        folder.set_modified(name, MODIFIED_UNIX_S);
    }
    folder
}

#[test]
fn a_file_with_all_its_fields() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    // Once by the loader, once from the store.
    let first = peer.get("/digits.bin");
    let second = peer.get("/digits.bin");
    assert_eq!(first, second);
    assert_eq!((first.code, first.text()), (200, "0123456789"));
    assert_eq!(first.field("content-length"), Some("10"));
    assert_eq!(first.field("content-type"), Some("application/octet-stream"));
    assert_eq!(first.field("last-modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert_eq!(first.field("accept-ranges"), Some("bytes"));
    assert_eq!(first.field("cache-control"), Some("no-cache"));
    assert_eq!(first.field("x-content-type-options"), Some("nosniff"));
    assert_eq!(first.field("vary"), None);
    let etag = first.field("etag").unwrap();
    assert!(etag.len() == 34 && etag.starts_with('"') && etag.ends_with('"'), "{etag}");
    let head = peer.ask("HEAD", "/digits.bin", &[]);
    assert_eq!((head.head, head.body.len()), (first.head, 0));
}

#[test]
fn paths() {
    let folder = folder();
    folder.fifo("fifo");
    folder.link("/etc/passwd", "out");
    let mut peer = Peer::new(&folder);
    for (target, code) in [
        ("/", 200),
        ("/index.html", 200),
        ("/empty.txt", 200),
        ("/deep/a%20b.txt", 200),
        ("/deep/../digits.bin", 200),
        ("/.well-known/security.txt", 200),
        ("/deep", 301),
        ("/none", 404),
        ("/digits.bin/", 404),
        ("/deep/.hidden", 404),
        ("/fifo", 404),
        ("/out", 404),
        ("//digits.bin", 301),
        ("/a%2fb", 404),
        ("/%zz", 400),
        ("/a%00", 400),
    ] {
        assert_eq!(peer.get(target).code, code, "{target}");
        assert_eq!(peer.get(target).code, code, "{target} again");
    }
    assert_eq!(peer.get("/").text(), "<h1>home</h1>");
    assert_eq!(peer.get("/deep?x=1").field("location"), Some("/deep/?x=1"));
}

#[test]
fn methods() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    let options = peer.ask("OPTIONS", "*", &[]);
    assert_eq!((options.code, options.field("allow")), (204, Some("GET, HEAD, OPTIONS")));
    let post = peer.ask("POST", "/digits.bin", &[("Content-Length", "0")]);
    assert_eq!((post.code, post.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert_eq!(peer.ask("BREW", "/pot", &[]).code, 501);
}

#[test]
fn conditions() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    let etag = peer.get("/digits.bin").field("etag").unwrap().to_owned();
    let fresh = peer.get_with("/digits.bin", &[("If-None-Match", &etag)]);
    assert_eq!((fresh.code, fresh.body.len()), (304, 0));
    assert_eq!(fresh.field("etag"), Some(etag.as_str()));
    assert_eq!(fresh.field("cache-control"), Some("no-cache"));
    for absent in ["content-length", "content-type", "last-modified"] {
        assert_eq!(fresh.field(absent), None, "{absent}");
    }
    let fields = [("If-None-Match", "\"x\""), ("If-None-Match", &etag)];
    assert_eq!(peer.get_with("/digits.bin", &fields).code, 304, "several lines are one list");
    assert_eq!(peer.get_with("/digits.bin", &[("If-Match", "\"x\"")]).code, 412);
    let since =
        |peer: &mut Peer, date: &str| peer.get_with("/digits.bin", &[("If-Modified-Since", date)]).code;
    assert_eq!(since(&mut peer, "Sun, 06 Nov 1994 08:49:37 GMT"), 304);
    assert_eq!(since(&mut peer, "Sun, 06 Nov 1994 08:49:36 GMT"), 200);
    let poem = peer.get("/poem.txt").field("etag").unwrap().to_owned();
    assert_eq!(
        peer.get_with("/poem.txt", &[("If-None-Match", &poem)]).field("vary"),
        Some("Accept-Encoding")
    );
}

#[test]
fn ranges() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    let part = peer.get_with("/digits.bin", &[("Range", "bytes=2-4")]);
    assert_eq!((part.code, part.text()), (206, "234"));
    assert_eq!(part.field("content-range"), Some("bytes 2-4/10"));
    assert_eq!(part.field("content-length"), Some("3"));
    assert_eq!(part.field("content-type"), Some("application/octet-stream"));
    assert_eq!(part.field("last-modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    let outside = peer.get_with("/digits.bin", &[("Range", "bytes=10-")]);
    assert_eq!((outside.code, outside.field("content-range")), (416, Some("bytes */10")));
    assert_eq!(peer.ask("HEAD", "/digits.bin", &[("Range", "bytes=2-4")]).code, 200);
    let twice = [("Range", "bytes=0-0"), ("Range", "bytes=1-1")];
    assert_eq!(peer.get_with("/digits.bin", &twice).code, 200, "a repeated field is none");
    assert_eq!(peer.get_with("/empty.txt", &[("Range", "bytes=0-")]).code, 200);
    let etag = part.field("etag").unwrap();
    for (if_range, code) in [
        (etag, 206),
        ("\"x\"", 200),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 206),
        ("Sun, 06 Nov 1994 08:49:38 GMT", 200),
    ] {
        let fields = [("Range", "bytes=2-4"), ("If-Range", if_range)];
        assert_eq!(peer.get_with("/digits.bin", &fields).code, code, "{if_range}");
    }
}

#[test]
fn several_ranges_in_one_body() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    let parts = peer.get_with("/digits.bin", &[("Range", "bytes=0-1, 5-6,-1")]);
    assert_eq!(parts.code, 206);
    let boundary =
        parts.field("content-type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
    let length = parts.body.len().to_string();
    assert_eq!(parts.field("content-length"), Some(length.as_str()));
    assert_eq!(parts.field("content-range"), None);
    let part = |range: &str, body: &str| {
        format!(
            "--{boundary}\r\nContent-Type: application/octet-stream\r\n\
             Content-Range: bytes {range}/10\r\n\r\n{body}\r\n"
        )
    };
    let expected = [part("0-1", "01"), part("5-6", "56"), part("9-9", "9"), format!("--{boundary}--\r\n")];
    assert_eq!(parts.text(), expected.concat());
}

#[test]
fn encodings_come_when_they_are_ready() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    let identity = peer.get("/poem.txt");
    assert_eq!((identity.field("vary"), &identity.body), (Some("Accept-Encoding"), &poem()));
    peer.settle();
    let mut etags = vec![identity.field("etag").unwrap().to_owned()];
    for encoding in Encoding::ALL {
        let encoded = peer.get_with("/poem.txt", &[("Accept-Encoding", encoding.name())]);
        assert_eq!(encoded.field("content-encoding"), Some(encoding.name()));
        assert_eq!(encoded.field("vary"), Some("Accept-Encoding"));
        assert!(encoded.body.len() < poem().len() / 2);
        etags.push(encoded.field("etag").unwrap().to_owned());
    }
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 4, "each representation has its own");
    let fields = [("Accept-Encoding", "gzip"), ("Range", "bytes=0-1")];
    assert_eq!(peer.get_with("/poem.txt", &fields).body, [0x1f, 0x8b], "ranges are of the encoded bytes");
    let two_lines = [("Accept-Encoding", "gzip"), ("Accept-Encoding", "br")];
    assert_eq!(peer.get_with("/poem.txt", &two_lines).field("content-encoding"), Some("br"));
    assert_eq!(
        peer.get_with("/poem.txt", &[("Accept-Encoding", "gzip")]).field("content-encoding"),
        Some("gzip")
    );
    assert_eq!(peer.get_with("/digits.bin", &[("Accept-Encoding", "br")]).field("content-encoding"), None);
}

/// A text that is not held, longer than 1 MiB.
fn long_text(seed: u32) -> Vec<u8> {
    (0..60_000_u32)
        .flat_map(|line| format!("{line};{seed};{}\n", line.wrapping_mul(2_654_435_761)).into_bytes())
        .collect()
}

#[test]
fn long_texts_are_encoded_once_they_are_asked_for() {
    let folder = folder();
    let (text, noise) = (long_text(1), vec![b'x'; 1_500_000]);
    folder.write("data.csv", &text);
    folder.write("data.bin", &noise);
    let mut peer = Peer::new(&folder);
    peer.settle();
    let made = peer.shared.progress().encodings_done;
    let gzip = [("Accept-Encoding", "gzip")];
    let first = peer.get_with("/data.csv", &gzip);
    assert_eq!((first.field("content-encoding"), &first.body), (None, &text), "not before");
    peer.settle();
    assert_eq!(peer.shared.progress().encodings_done, made + 3);
    for encoding in Encoding::ALL {
        let encoded = peer.get_with("/data.csv", &[("Accept-Encoding", encoding.name())]);
        assert_eq!(encoded.field("content-encoding"), Some(encoding.name()));
        assert!(encoded.body.len() < text.len() / 2, "{encoding:?}: {}", encoded.body.len());
    }
    let encoded = peer.get_with("/data.csv", &gzip);
    let mut decoded = vec![0; text.len()];
    libdeflater::Decompressor::new().gzip_decompress(&encoded.body, &mut decoded).unwrap();
    assert!(decoded == text);
    assert!(peer.get("/data.csv").body == text, "who cannot read it has it from the file");
    // What holds no text has nothing to gain.
    assert_eq!(peer.get_with("/data.bin", &gzip).body, noise);
    peer.settle();
    assert_eq!(peer.shared.progress().encodings_done, made + 3);
    assert_eq!(peer.get_with("/data.bin", &gzip).field("content-encoding"), None);
}

#[test]
fn a_text_without_room_for_its_encodings_stays_as_it_is() {
    let folder = folder();
    folder.write("data.csv", &long_text(1));
    let config = SiteConfig {
        root: folder.path().to_path_buf(),
        // An eighth of it is less than the text.
        cache_bytes_max: 1 << 20,
        ..SiteConfig::default()
    };
    let mut peer = Peer::with(config);
    for _ in 0..2 {
        let answer = peer.get_with("/data.csv", &[("Accept-Encoding", "gzip")]);
        assert_eq!(answer.field("content-encoding"), None);
        assert!(answer.body == long_text(1));
        peer.settle();
    }
}

#[test]
fn side_files_are_used_unless_older() {
    let folder = folder();
    folder.write("app.js", &poem());
    folder.write("app.js.br", b"as if brotli");
    folder.write("old.js", &poem());
    folder.write("old.js.br", b"as if brotli");
    folder.set_modified("old.js.br", MODIFIED_UNIX_S);
    let mut peer = Peer::with(SiteConfig {
        root: folder.path().to_path_buf(),
        encodings: vec![Encoding::Brotli],
        ..SiteConfig::default()
    });
    assert_eq!(peer.get_with("/app.js", &[("Accept-Encoding", "br")]).text(), "as if brotli");
    let old = peer.get_with("/old.js", &[("Accept-Encoding", "br")]);
    assert_ne!(old.body, b"as if brotli");
    assert_eq!(peer.get("/app.js.br").text(), "as if brotli", "they can be had themselves");
}

#[test]
fn large_files_stay_on_disk() {
    let folder = folder();
    let large: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    folder.write("large.bin", &large);
    let mut peer = Peer::new(&folder);
    assert_eq!(peer.get("/large.bin").body, large);
    assert!(peer.shared.progress().bytes_held < 1_000_000);
    let part = peer.get_with("/large.bin", &[("Range", "bytes=2999998-")]);
    assert_eq!((part.code, &part.body[..]), (206, &large[2_999_998..]));
    let parts = peer.get_with("/large.bin", &[("Range", "bytes=0-0,2000000-2000001")]);
    assert_eq!(parts.field("content-length"), Some(parts.body.len().to_string().as_str()));
    let etag = part.field("etag").unwrap();
    assert_eq!(peer.get_with("/large.bin", &[("If-None-Match", etag)]).code, 304);
}

#[test]
fn listings() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    let html = peer.get("/deep/");
    assert_eq!(html.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(html.field("vary"), Some("Accept, Accept-Encoding"));
    assert!(html.text().contains("a%20b.txt") && !html.text().contains("hidden"));
    let json = peer.get_with("/deep/", &[("Accept", "application/json")]);
    assert_eq!(json.field("content-type"), Some("application/json"));
    assert!(json.text().contains("\"a b.txt\""));
    assert_eq!(peer.get("/deep/?json").body, json.body);
    assert_ne!(json.field("etag"), html.field("etag"));
    let off = SiteConfig { root: folder.path().to_path_buf(), listing: false, ..SiteConfig::default() };
    let refused = Peer::with(off).get("/deep/");
    assert_eq!(refused.code, 403);
    assert!(refused.text().contains("This folder has no index page, and listings are off."), "{refused:?}");
}

#[test]
fn nothing_held() {
    let folder = folder();
    folder.write("large.bin", &vec![7; 200_000]);
    let config = SiteConfig { root: folder.path().to_path_buf(), no_cache: true, ..SiteConfig::default() };
    let mut peer = Peer::with(config);
    assert_eq!(peer.get("/").text(), "<h1>home</h1>");
    assert_eq!(peer.get("/digits.bin").text(), "0123456789");
    folder.write("digits.bin", b"changed");
    assert_eq!(peer.get("/digits.bin").text(), "changed");
    assert_eq!(peer.get("/large.bin").body.len(), 200_000);
    assert_eq!(peer.get("/deep").code, 301);
    assert!(peer.get("/deep/").text().contains("a%20b.txt"));
    assert_eq!(peer.get("/none").code, 404);
    assert_eq!(peer.get_with("/poem.txt", &[("Range", "bytes=0-3")]).text(), "line");
    assert_eq!(peer.shared.progress().bytes_held, 0);
}

#[test]
fn what_one_client_accepts_is_not_applied_to_another() {
    let folder = folder();
    let mut peer = Peer::new(&folder);
    peer.settle();
    let coding = |peer: &mut Peer, values: &[&str]| {
        let fields: Vec<_> = values.iter().map(|&value| ("Accept-Encoding", value)).collect();
        peer.get_with("/poem.txt", &fields).field("content-encoding").map(str::to_owned)
    };
    for values in [&["br", "gzip"][..], &["br"][..], &["", "br"][..]] {
        assert_eq!(coding(&mut peer, values).as_deref(), Some("br"), "{values:?}");
        assert_eq!(coding(&mut peer, &[""]), None, "after {values:?}");
        assert_eq!(coding(&mut peer, &[]), None, "after {values:?}");
    }
}

#[test]
fn a_large_file_replaced_without_a_trace_in_size_or_time_has_another_etag() {
    let folder = folder();
    folder.write("large.bin", &[b'A'; 1024 * 1024 + 1]);
    folder.set_modified("large.bin", MODIFIED_UNIX_S);
    let mut peer = Peer::new(&folder);
    let before = peer.get("/large.bin");
    folder.write("large.bin", &[b'B'; 1024 * 1024 + 1]);
    folder.set_modified("large.bin", MODIFIED_UNIX_S);
    let mut after = before.clone();
    // The watcher has to hear of it first. The open file shows the new bytes at once.
    for _ in 0..2000 {
        after = peer.get("/large.bin");
        if after.field("etag") != before.field("etag") {
            break;
        }
        // tidy: allow(clock): a test waits for background threads, with a bound.
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(after.body[0], b'B');
    assert_eq!(after.field("last-modified"), before.field("last-modified"));
    assert_ne!(after.field("etag"), before.field("etag"));
    let fields = [("Range", "bytes=0-0"), ("If-Range", before.field("etag").unwrap())];
    assert_eq!(peer.get_with("/large.bin", &fields).code, 200, "two versions would be joined");
}

#[test]
fn a_long_listing_is_compressed_as_it_is_made() {
    let folder = folder();
    for number in 0..9_000 {
        folder.write(&format!("many/a-file-of-some-length-{number}.txt"), b"");
    }
    let root = folder.path().to_path_buf();
    let mut peer = Peer::with(SiteConfig { root, listing: true, ..SiteConfig::default() });
    let whole = peer.get("/many/");
    assert!(whole.body.len() > 1024 * 1024, "{}", whole.body.len());
    for (coding, target) in [("gzip", "/many/?sort=size"), ("br", "/many/?sort=time"), ("zstd", "/many/")] {
        // The first who asks has it compressed, and who asks again.
        for _ in 0..2 {
            let response = peer.get_with(target, &[("Accept-Encoding", coding)]);
            assert_eq!(response.field("content-encoding"), Some(coding));
            assert_eq!(response.field("vary"), Some("Accept, Accept-Encoding"));
            assert!(response.body.len() * 10 < whole.body.len(), "{coding}: {}", response.body.len());
        }
    }
    peer.settle();
}
