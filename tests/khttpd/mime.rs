//! The table of media types is the server's own.

use std::fs;
use std::path::Path;

use crate::driver;

/// The server's table as rows of C. `STAUNCH_WRITE=1` writes them to the file that the module includes.
#[test]
fn the_table_is_the_servers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project");
    let source =
        fs::read_to_string(root.join("crates/server/src/content/mime.rs")).expect("the server's table");
    let rows = rows(&source);
    assert!(rows.len() > 100, "only {} extensions", rows.len());
    let row = |(name, media, encodable): &(String, String, bool)| {
        format!("{{ \"{name}\", {{ \"{media}\", {encodable} }} }},\n")
    };
    let text: String = rows.iter().map(row).collect();
    let file = root.join("kernel/khttpd/mime_table.h");
    let stands = fs::read_to_string(&file).expect("the kernel's table");
    let opening: String = stands.split_inclusive('\n').take_while(|line| !line.starts_with('{')).collect();
    let wanted = opening + &text;
    if std::env::var_os("STAUNCH_WRITE").is_some_and(|value| value == "1") {
        fs::write(&file, &wanted).expect("the kernel's table");
    } else {
        assert!(stands == wanted, "STAUNCH_WRITE=1 cargo test -p staunch-tests --test khttpd writes it anew");
    }
    let Some(mut driver) = driver::start() else { return };
    for (name, media, _) in rows {
        assert_eq!(driver.must(b'm', format!("/x/y.{}", name.to_uppercase()).as_bytes()), media);
    }
}

/// Each extension, its type and whether that is worth encoding, from the rows `("a b", text("type")),` or
/// `packed` of the table.
fn rows(source: &str) -> Vec<(String, String, bool)> {
    let table = source.split_once("static TABLE").expect("a table").1;
    let table = table.split_once("];").expect("an end").0;
    let mut rows = Vec::new();
    for row in table.lines().filter(|line| line.trim_start().starts_with("(\"")) {
        let texts: Vec<&str> = row.split('"').skip(1).step_by(2).collect();
        let [names, media] = texts[..] else { panic!("no row: {row}") };
        let encodable = row.contains("text(");
        assert!(encodable != row.contains("packed("), "no row: {row}");
        rows.extend(names.split(' ').map(|name| (name.to_owned(), media.to_owned(), encodable)));
    }
    rows
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
