//! Types of names, by the list and by what a site says.

use super::*;

fn types(own: &[(&str, &str)], charset: Option<&str>) -> MediaTypes {
    let own = own.iter().map(|&(name, media)| (name.to_owned(), media.to_owned())).collect();
    MediaTypes::new(&own, charset)
}

#[test]
fn names() {
    let types = types(&[], Some("utf-8"));
    for (name, value, encodable) in [
        ("/index.html", "text/html; charset=utf-8", true),
        ("a/b.c/INDEX.HTM", "text/html; charset=utf-8", true),
        ("x.tar.gz", "application/gzip", false),
        ("app.mjs", "text/javascript; charset=utf-8", true),
        ("x.svg", "image/svg+xml", true),
        ("x.json", "application/json", true),
        ("favicon.ico", "image/x-icon", true),
        ("x.ts", "video/mp2t", false),
        ("x.aac", "audio/aac", false),
        ("x.mid", "audio/midi", false),
        ("x.3gp", "video/3gpp", false),
        ("x.flv", "video/x-flv", false),
        ("x.m4s", "video/mp4", false),
        ("x.mpeg", "video/mpeg", false),
        ("x.usdz", "model/vnd.usdz+zip", false),
        ("x.pkpass", "application/vnd.apple.pkpass", false),
        ("x.mobileconfig", "application/x-apple-aspen-config", false),
        ("x.apk", "application/vnd.android.package-archive", false),
        ("x.deb", "application/vnd.debian.binary-package", false),
        ("x.rpm", "application/x-rpm", false),
        ("x.gpx", "application/gpx+xml", true),
        ("x.KML", "application/vnd.google-earth.kml+xml", true),
        ("x.opml", "text/x-opml; charset=utf-8", true),
        ("x.pmtiles", "application/vnd.pmtiles", false),
        ("x.pbf", "application/x-protobuf", true),
        ("x.sqlite", "application/vnd.sqlite3", true),
        ("x.torrent", "application/x-bittorrent", false),
        ("x.crt", "application/x-x509-ca-cert", false),
        ("x.pem", "application/x-pem-file", true),
        ("SHA256SUMS.sha256", "text/plain; charset=utf-8", true),
        ("x.pkg", "application/octet-stream", false),
        ("x.strange", "application/octet-stream", false),
        ("a.d/README", "text/plain; charset=utf-8", true),
        ("a.d/unheard-of", "application/octet-stream", false),
        (".html", "application/octet-stream", false),
        ("odd.", "application/octet-stream", false),
        ("x.\u{e9}", "application/octet-stream", false),
        ("", "application/octet-stream", false),
    ] {
        let found = types.of_name(name.as_bytes());
        assert_eq!((&*found.value, found.encodable), (value, encodable), "{name}");
    }
    assert!(is_known(b"/a.css") && !is_known(b"/archive") && !is_known(b"/a.bin"));
}

#[test]
fn what_the_site_says_goes_before_the_list() {
    let own = [
        ("apple-app-site-association", "application/json"),
        (".GMI", "text/gemini"),
        ("js", "application/javascript"),
        ("old", "text/html; charset=windows-1252"),
        ("special.css", "application/x-special"),
    ];
    let table = [
        ("/.well-known/apple-app-site-association", "application/json", true),
        ("/a.gmi", "text/gemini; charset=iso-8859-1", true),
        ("/a.JS", "application/javascript", true),
        ("/a.old", "text/html; charset=windows-1252", true),
        ("/special.css", "application/x-special", false),
        ("/a.css", "text/css; charset=iso-8859-1", true),
    ];
    for (name, value, encodable) in table {
        let found = types(&own, Some("iso-8859-1")).of_name(name.as_bytes());
        assert_eq!((&*found.value, found.encodable), (value, encodable), "{name}");
    }
    assert_eq!(types(&own, None).of_name(b"/a.css").value, "text/css");
    assert_eq!(types(&own, None).of_name(b"/a.old").value, "text/html; charset=windows-1252");
}

#[test]
fn the_list_is_well_formed() {
    let mut seen = std::collections::HashSet::new();
    for (extension, media) in lines() {
        assert!(seen.insert(extension), "{extension} stands twice");
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+_-".contains(&byte);
        assert!(!extension.is_empty() && extension.bytes().all(plain), "{media} {extension}");
        let parts: Vec<&str> = media.split('/').collect();
        let token = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(parts.len() == 2 && parts.iter().all(token) && !media.contains(';'), "{media}");
    }
    assert!(seen.len() > 1000);
    for media in SHRINKING {
        assert!(is_shrinking(media) && !is_shrinking("application/zip") && !is_shrinking("image/png"));
    }
}
