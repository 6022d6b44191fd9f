//! The module's media types are the server's.

use std::fs;
use std::path::Path;

use crate::driver;

/// Each row of the module, an extension, its type and whether that is worth encoding, is as the server's list
/// has it; the server's list has more.
#[test]
fn the_table_is_the_servers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project");
    let read = |name: &str| fs::read_to_string(root.join(name)).expect("a file of the project");
    let list = read("crates/server/src/content/media_types.txt");
    let code = read("crates/server/src/content/mime.rs");
    let rows = rows(&read("kernel/khttpd/mime_table.h"));
    assert!(rows.len() > 100, "only {} extensions", rows.len());
    for (name, media, encodable) in &rows {
        let has_it = |line: &&str| line.split(' ').skip(1).any(|extension| extension == name);
        let line = list.lines().filter(|line| !line.starts_with('#')).find(has_it);
        let listed =
            line.unwrap_or_else(|| panic!("{name} is not listed")).split(' ').next().expect("a type");
        let charset = if listed.starts_with("text/") { "; charset=utf-8" } else { "" };
        assert_eq!(*media, format!("{listed}{charset}"), "{name}");
        let shrinks = listed.starts_with("text/")
            || ["+xml", "+json"].iter().any(|end| listed.ends_with(end))
            || code.contains(&format!("    \"{listed}\",\n"));
        assert_eq!(*encodable, shrinks, "{name}");
    }
    let Some(mut driver) = driver::start() else { return };
    for (name, media, _) in rows {
        assert_eq!(driver.must(b'm', format!("/x/y.{}", name.to_uppercase()).as_bytes()), media);
    }
}

/// Rows of C: `{ "css", { "text/css; charset=utf-8", true } },`.
fn rows(table: &str) -> Vec<(String, String, bool)> {
    let lines = table.lines().filter(|line| line.starts_with("{ \""));
    lines
        .map(|row| {
            let texts: Vec<&str> = row.split('"').skip(1).step_by(2).collect();
            let [name, media] = texts[..] else { panic!("no row: {row}") };
            (name.to_owned(), media.to_owned(), row.contains(", true"))
        })
        .collect()
}

#[test]
fn names_without_a_known_extension() {
    let Some(mut driver) = driver::start() else { return };
    for (name, media) in [
        ("/index.html", "text/html; charset=utf-8"),
        ("a.d/README", "text/plain; charset=utf-8"),
        ("a.d/unheard-of", "application/octet-stream"),
        (".html", "application/octet-stream"),
        ("odd.", "application/octet-stream"),
        ("x.strange", "application/octet-stream"),
        ("x.tar.gz", "application/gzip"),
        ("", "application/octet-stream"),
    ] {
        assert_eq!(driver.must(b'm', name.as_bytes()), media, "{name}");
    }
}
