//! The listing as JSON.
//!
//! Owns the fields of a row, named as people know them from other servers. Never drops a byte of a name: what
//! is not UTF-8 is replaced in `name` and stands whole in `name_bytes` and `href`, percent-encoded.

use serde::Serialize;

use super::date::rfc3339;
use super::entry::{Entry, Kind, Order, sorted};
use super::escape::push_segment;

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    mtime: &'a str,
    href: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<&'a str>,
}

/// The entries as a JSON array (RFC 8259), a row a line: `name`, `type` (`directory` or `file`), `size` in
/// bytes (files only), `mtime` (RFC 3339, UTC), `href` relative to the folder, and `name_bytes` if the name
/// is not UTF-8.
pub fn json(entries: &[Entry], order: Order, descending: bool) -> Vec<u8> {
    let mut page = Vec::with_capacity(16 + 128 * entries.len());
    page.push(b'[');
    for (index, entry) in sorted(entries, order, descending).into_iter().enumerate() {
        page.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
        push_row(&mut page, entry);
    }
    page.extend_from_slice(b"\n]\n");
    page
}

fn push_row(page: &mut Vec<u8>, entry: &Entry) {
    let name = String::from_utf8_lossy(&entry.name);
    let mut link = Vec::with_capacity(entry.name.len() + 1);
    push_segment(&mut link, &entry.name);
    let segment_bytes = link.len();
    if entry.kind == Kind::Folder {
        link.push(b'/');
    }
    let href = str::from_utf8(&link).expect("a percent-encoded link is ASCII");
    let mtime = rfc3339(entry.modified_unix_s);
    let row = Row {
        name: &name,
        r#type: if entry.kind == Kind::Folder { "directory" } else { "file" },
        size: (entry.kind == Kind::File).then_some(entry.size_bytes),
        mtime: str::from_utf8(&mtime).expect("a date is ASCII"),
        href,
        name_bytes: str::from_utf8(&entry.name).is_err().then(|| &href[..segment_bytes]),
    };
    serde_json::to_writer(page, &row).expect("a row of strings and numbers, written to memory");
}
