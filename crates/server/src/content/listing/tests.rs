//! Tests of the listing as a whole: no byte of a name is lost, no byte of it escapes, and folders are read
//! right.
//!
//! Owns the reading back of what the listing wrote. Never shares code with what it tests.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use proptest::prelude::*;

use super::{Entry, Kind, Order, html, json, parse_order, read_folder};

fn entry(name: &[u8], kind: Kind, size_bytes: u64, modified_unix_s: i64) -> Entry {
    Entry { name: name.to_vec(), kind, size_bytes, modified_unix_s }
}

/// What a browser makes of the link of a row: an attribute's text is taken as it stands, because it holds
/// nothing to unescape, then percent-decoded; a link to anything but a neighbour of the page is a mistake.
fn follow(href: &str) -> Vec<u8> {
    assert!(href.bytes().all(|byte| byte.is_ascii_graphic()), "{href}");
    let segment = href.strip_suffix('/').unwrap_or(href);
    assert!(!segment.contains(['/', ':', '?', '#', '&', '"', '\'', '<', '>', '\\']), "{href}");
    assert!(segment != "." && segment != ".." && !segment.is_empty(), "{href}");
    let mut name = Vec::new();
    let mut rest = segment.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (digits, tail) = tail.split_at(2);
            name.push(u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap());
            rest = tail;
        } else {
            name.push(byte);
        }
    }
    name
}

/// The links of the rows of a page, without the one to the parent folder.
fn links(page: &[u8]) -> Vec<String> {
    let page = str::from_utf8(page).expect("the page is UTF-8");
    let (_, body) = page.split_once("<tbody>").unwrap();
    let rows = body.split("<tr><th scope=\"row\"><a href=\"").skip(1);
    rows.map(|row| row.split_once('"').unwrap().0.to_owned()).filter(|link| link != "../").collect()
}

fn names() -> impl Strategy<Value = Vec<u8>> {
    let any_byte =
        any::<u8>().prop_filter("a name holds no NUL and no slash", |byte| !matches!(byte, 0 | b'/'));
    let bytes = prop::collection::vec(any_byte, 1..40);
    let tricky = prop::sample::select(vec![
        &b"?sort=name"[..],
        b":",
        b"a:b",
        b"javascript:x",
        b"#",
        b"%2e%2e",
        b"%",
        b"...",
        b" ",
        b"\"><script>",
        b"&amp;",
        b"\\..",
        b"~",
        b"-->",
        b"]]>",
        b"\xE2\x80\xAE",
        b"\xED\xA0\x80",
        b"\n",
        b"<title>",
        b"'onclick=",
    ]);
    let name = prop_oneof![bytes, tricky.prop_map(<[u8]>::to_vec)];
    name.prop_filter("no folder names itself or its parent", |name| name != b"." && name != b"..")
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let kind = prop_oneof![Just(Kind::Folder), Just(Kind::File)];
    let one = (names(), kind, 0..4_u64, any::<i64>())
        .prop_map(|(name, kind, size, time)| entry(&name, kind, size, time));
    prop::collection::vec(one, 0..20)
}

fn orders() -> impl Strategy<Value = (Order, bool)> {
    (prop::sample::select(Order::ALL.to_vec()), any::<bool>())
}

proptest! {
    #[test]
    fn links_lead_back_to_the_names(entries in entries(), path in names(), (order, descending) in orders()) {
        let page = html(&[b"/", &path[..], b"/"].concat(), &entries, order, descending);
        let links = links(&page);
        prop_assert_eq!(links.len(), entries.len());
        let found: BTreeSet<_> = links.iter().map(|link| (follow(link), link.ends_with('/'))).collect();
        let wanted = entries.iter().map(|entry| (entry.name.clone(), entry.kind == Kind::Folder));
        let wanted: BTreeSet<_> = wanted.collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn no_name_opens_an_element(name in names()) {
        let harmless = [entry(b"x", Kind::File, 0, 0)];
        let page = html(&name, &[entry(&name, Kind::File, 0, 0)], Order::Name, false);
        let wanted = html(b"x", &harmless, Order::Name, false);
        let elements = |page: &[u8]| {
            let page = str::from_utf8(page).unwrap().replace("<i>", "").replace("</i>", "");
            (page.matches('<').count(), page.matches('>').count(), page.matches('"').count())
        };
        prop_assert_eq!(elements(&page), elements(&wanted));
        let unseen = page.iter().filter(|&&byte| byte < b' ' && byte != b'\n').count();
        prop_assert_eq!(unseen, 0);
    }

    #[test]
    fn json_tells_everything(entries in entries(), (order, descending) in orders()) {
        let page = json(&entries, order, descending);
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&page).unwrap();
        prop_assert_eq!(rows.len(), entries.len());
        for row in &rows {
            let name = row.get("name_bytes").unwrap_or(&row["href"]);
            let name = follow(name.as_str().unwrap());
            let text = row["name"].as_str().unwrap();
            prop_assert_eq!(text, String::from_utf8_lossy(&name));
            prop_assert_eq!(row.get("name_bytes").is_some(), str::from_utf8(&name).is_err());
            let folder = row["type"] == "directory";
            prop_assert_eq!(row["href"].as_str().unwrap().ends_with('/'), folder);
            let kind = if folder { Kind::Folder } else { Kind::File };
            let size = row.get("size").map(|size| size.as_u64().unwrap());
            let same = |entry: &&Entry| {
                entry.name == name && entry.kind == kind && size.is_none_or(|size| size == entry.size_bytes)
            };
            prop_assert!(entries.iter().any(|entry| same(&entry)));
        }
    }

    #[test]
    fn the_order_does_not_depend_on_the_reading(
        mut entries in entries(), (order, descending) in orders(), seed in any::<u64>(),
    ) {
        entries.dedup_by(|a, b| a.name == b.name);
        let mut seen = BTreeSet::new();
        entries.retain(|entry| seen.insert(entry.name.clone()));
        let before = json(&entries, order, descending);
        let turn = usize::try_from(seed % 20).unwrap().min(entries.len());
        entries.rotate_left(turn);
        entries.reverse();
        prop_assert_eq!(before, json(&entries, order, descending));
    }
}

#[test]
fn rows_stand_in_the_order_asked_for() {
    let entries = [
        entry(b"beta", Kind::File, 10, 300),
        entry(b"Alpha", Kind::File, 30, 200),
        entry(b"gamma", Kind::File, 10, 100),
        entry(b"zoo", Kind::Folder, 4096, 50),
        entry(b"den", Kind::Folder, 8192, 60),
    ];
    let table = [
        (Order::Name, false, ["den/", "zoo/", "Alpha", "beta", "gamma"]),
        (Order::Name, true, ["zoo/", "den/", "gamma", "beta", "Alpha"]),
        (Order::Size, false, ["den/", "zoo/", "beta", "gamma", "Alpha"]),
        (Order::Size, true, ["den/", "zoo/", "Alpha", "beta", "gamma"]),
        (Order::Time, false, ["zoo/", "den/", "gamma", "Alpha", "beta"]),
        (Order::Time, true, ["den/", "zoo/", "beta", "Alpha", "gamma"]),
    ];
    for (order, descending, wanted) in table {
        assert_eq!(links(&html(b"/", &entries, order, descending)), wanted, "{order:?} {descending}");
    }
}

#[test]
fn queries() {
    let table: [(&[u8], (Order, bool)); 10] = [
        (b"", (Order::Name, false)),
        (b"sort=size", (Order::Size, false)),
        (b"sort=time&order=desc", (Order::Time, true)),
        (b"order=desc", (Order::Name, true)),
        (b"order=desc&sort=name", (Order::Name, true)),
        (b"json&sort=size&order=asc", (Order::Size, false)),
        (b"sort=size&sort=colour", (Order::Size, false)),
        (b"sort=size&sort=time", (Order::Time, false)),
        (b"&&sort=&order=up&=", (Order::Name, false)),
        (b"\xFF\x00sort=size", (Order::Name, false)),
    ];
    for (query, wanted) in table {
        assert_eq!(parse_order(query), wanted, "{}", query.escape_ascii());
    }
}

#[test]
fn the_page_of_a_nested_folder() {
    let page = html("/a b/ü/<c>/".as_bytes(), &[], Order::Size, true);
    let page = str::from_utf8(&page).unwrap();
    for wanted in [
        "<title>/a b/ü/&lt;c&gt;/</title>",
        "<a href=\"../../../\">Home</a>",
        "<a href=\"../../\"><bdi>a b</bdi></a>",
        "<a href=\"../\"><bdi>ü</bdi></a>",
        "<a href=\"./\" aria-current=\"page\"><bdi>&lt;c&gt;</bdi></a>",
        "This folder is empty.",
        "<th scope=\"col\" aria-sort=\"descending\"><a href=\"?sort=size&amp;order=asc\">Size</a></th>",
        "<a href=\"../\" class=\"up\">Parent folder</a>",
    ] {
        assert!(page.contains(wanted), "{wanted} in {page}");
    }
    let root = html(b"/", &[entry(b"f", Kind::File, 2048, 0)], Order::Name, false);
    let root = str::from_utf8(&root).unwrap();
    assert!(!root.contains("Parent folder") && root.contains("1 file · 2.0 KiB"), "{root}");
    assert!(root.contains("<td title=\"2048 bytes\">2.0 KiB</td>"), "{root}");
    assert!(root.contains("<time datetime=\"1970-01-01T00:00:00Z\">1970-01-01 00:00</time>"), "{root}");
}

/// A folder that is gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("staunch-listing-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn read_names(root: &File, path: &[u8], dotfiles: bool) -> Vec<String> {
    let entries = read_folder(root, path, dotfiles, &|name| name.ends_with(b".br")).unwrap();
    let mut names: Vec<_> = entries
        .iter()
        .map(|entry| {
            let slash = if entry.kind == Kind::Folder { "/" } else { "" };
            format!("{}{slash}", entry.name.escape_ascii())
        })
        .collect();
    names.sort();
    names
}

#[test]
fn a_folder_shows_what_can_be_served_and_nothing_else() {
    let scratch = Scratch::new("read");
    let root_path = scratch.0.join("root");
    let folder = root_path.join("sub");
    fs::create_dir_all(folder.join("inner")).unwrap();
    fs::write(scratch.0.join("secret"), b"out of the root").unwrap();
    fs::write(root_path.join("above"), b"12345").unwrap();
    fs::write(folder.join("file.txt"), b"123").unwrap();
    fs::write(folder.join("file.txt.br"), b"1").unwrap();
    fs::write(folder.join(".dot"), b"").unwrap();
    fs::write(folder.join(std::ffi::OsStr::from_bytes(b"\xFF\n")), b"").unwrap();
    symlink("file.txt", folder.join("link")).unwrap();
    symlink("../above", folder.join("link-above")).unwrap();
    symlink("inner", folder.join("link-inner")).unwrap();
    symlink("../../secret", folder.join("link-out")).unwrap();
    symlink("/etc/passwd", folder.join("link-absolute")).unwrap();
    symlink("nowhere", folder.join("link-broken")).unwrap();
    symlink("link-loop", folder.join("link-loop")).unwrap();
    symlink("socket", folder.join("link-socket")).unwrap();
    let _socket = UnixListener::bind(folder.join("socket")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, folder.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();

    let root = File::open(&root_path).unwrap();
    let shown = ["\\xff\\n", "file.txt", "inner/", "link", "link-above", "link-inner/"];
    assert_eq!(read_names(&root, b"/sub/", false), shown);
    assert_eq!(
        read_names(&root, b"sub", true),
        [".dot", shown[0], shown[1], shown[2], shown[3], shown[4], shown[5]]
    );
    assert_eq!(read_names(&root, b"", false), ["above", "sub/"]);
    let entries = read_folder(&root, b"sub", false, &|_| false).unwrap();
    let size = |name: &[u8]| entries.iter().find(|entry| entry.name == name).unwrap().size_bytes;
    assert_eq!((size(b"file.txt"), size(b"link"), size(b"link-above")), (3, 3, 5));
    for bad in [&b"nowhere"[..], b"above", b"..", b"sub/../..", b"sub/link-out"] {
        assert!(read_folder(&root, bad, false, &|_| false).is_err(), "{}", bad.escape_ascii());
    }
}

#[test]
fn a_folder_of_many_entries_is_read_whole() {
    let scratch = Scratch::new("many");
    for number in 0..3000 {
        File::create(scratch.0.join(format!("{number:0>60}"))).unwrap();
    }
    let root = File::open(&scratch.0).unwrap();
    let entries = read_folder(&root, b"", false, &|_| false).unwrap();
    let names: BTreeSet<_> = entries.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!((entries.len(), names.len()), (3000, 3000));
    assert_eq!(links(&html(b"/", &entries, Order::Name, false)).len(), 3000);
}
