//! Which media type a name has, and whether it is worth encoding.
//!
//! It owns the table. It must never look into content.

/// A media type as sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MediaType {
    /// Value of Content-Type, with charset where it is text.
    pub(crate) value: &'static str,
    /// Whether encodings make it smaller.
    pub(crate) encodable: bool,
}

/// What nothing is known about.
pub(crate) static BINARY: MediaType = MediaType { value: "application/octet-stream", encodable: false };
/// Text of no further kind.
pub(crate) static PLAIN: MediaType = MediaType { value: "text/plain; charset=utf-8", encodable: true };
/// HTML, also of pages made here.
pub(crate) static HTML: MediaType = MediaType { value: "text/html; charset=utf-8", encodable: true };
/// JSON, also of listings.
pub(crate) static JSON: MediaType = MediaType { value: "application/json", encodable: true };

/// The type of a file by its name's extension (in any case). Nothing is guessed from content: a browser would
/// have to trust it, and it would change with a byte.
pub(crate) fn of_name(name: &[u8]) -> &'static MediaType {
    let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let dot = file.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0);
    let Some(extension) = dot.and_then(|dot| file.get(dot + 1..)) else {
        return if PLAIN_NAMES.contains(&file) { &PLAIN } else { &BINARY };
    };
    let is_it = |name: &str| extension.eq_ignore_ascii_case(name.as_bytes());
    TABLE.iter().find(|(names, _)| names.split(' ').any(is_it)).map_or(&BINARY, |(_, media)| media)
}

/// Whether a name has an extension that the table knows.
pub(crate) fn is_known(name: &[u8]) -> bool {
    !std::ptr::eq(of_name(name), &raw const BINARY)
}

/// Text files that bear no extension by custom.
const PLAIN_NAMES: [&[u8]; 8] =
    [b"README", b"LICENSE", b"COPYING", b"AUTHORS", b"CHANGELOG", b"NEWS", b"Makefile", b"Dockerfile"];

const fn text(value: &'static str) -> MediaType {
    MediaType { value, encodable: true }
}

const fn packed(value: &'static str) -> MediaType {
    MediaType { value, encodable: false }
}

/// Extensions, separated by one space, and their type.
static TABLE: &[(&str, MediaType)] = &[
    ("html htm", text("text/html; charset=utf-8")),
    ("css", text("text/css; charset=utf-8")),
    ("js mjs cjs", text("text/javascript; charset=utf-8")),
    ("json map", text("application/json")),
    ("svg", text("image/svg+xml")),
    ("png", packed("image/png")),
    ("jpg jpeg", packed("image/jpeg")),
    ("webp", packed("image/webp")),
    ("avif", packed("image/avif")),
    ("gif", packed("image/gif")),
    ("ico", text("image/x-icon")),
    ("bmp", text("image/bmp")),
    ("tif tiff", packed("image/tiff")),
    ("jxl", packed("image/jxl")),
    ("heic", packed("image/heic")),
    ("woff2", packed("font/woff2")),
    ("woff", packed("font/woff")),
    ("ttf", text("font/ttf")),
    ("otf", text("font/otf")),
    ("eot", text("application/vnd.ms-fontobject")),
    ("wasm", text("application/wasm")),
    ("txt text log conf ini", text("text/plain; charset=utf-8")),
    ("md markdown", text("text/markdown; charset=utf-8")),
    ("csv", text("text/csv; charset=utf-8")),
    ("tsv", text("text/tab-separated-values; charset=utf-8")),
    ("xml xsl", text("application/xml")),
    ("xhtml", text("application/xhtml+xml")),
    ("rss", text("application/rss+xml")),
    ("atom", text("application/atom+xml")),
    ("webmanifest", text("application/manifest+json")),
    ("jsonld", text("application/ld+json")),
    ("geojson", text("application/geo+json")),
    ("ndjson jsonl", text("application/x-ndjson")),
    ("yaml yml", text("application/yaml")),
    ("toml", text("application/toml")),
    ("vtt", text("text/vtt; charset=utf-8")),
    ("srt", text("text/plain; charset=utf-8")),
    ("ics", text("text/calendar; charset=utf-8")),
    ("vcf", text("text/vcard; charset=utf-8")),
    ("rtf", text("application/rtf")),
    ("c h cc cpp hpp rs go py rb pl java kt swift sh sql patch diff", text("text/plain; charset=utf-8")),
    ("pdf", packed("application/pdf")),
    ("epub", packed("application/epub+zip")),
    ("zip", packed("application/zip")),
    ("gz tgz", packed("application/gzip")),
    ("bz2", packed("application/x-bzip2")),
    ("xz", packed("application/x-xz")),
    ("zst", packed("application/zstd")),
    ("br", packed("application/x-brotli")),
    ("7z", packed("application/x-7z-compressed")),
    ("tar", text("application/x-tar")),
    ("iso img", packed("application/octet-stream")),
    ("mp3", packed("audio/mpeg")),
    ("m4a", packed("audio/mp4")),
    ("ogg oga opus", packed("audio/ogg")),
    ("flac", packed("audio/flac")),
    ("wav", packed("audio/wav")),
    ("weba", packed("audio/webm")),
    ("mp4 m4v", packed("video/mp4")),
    ("webm", packed("video/webm")),
    ("ogv", packed("video/ogg")),
    ("mov", packed("video/quicktime")),
    ("mkv", packed("video/x-matroska")),
    ("avi", packed("video/x-msvideo")),
    ("m3u8", text("application/vnd.apple.mpegurl")),
    ("mpd", text("application/dash+xml")),
    ("ts", packed("video/mp2t")),
    ("doc", text("application/msword")),
    ("docx", packed("application/vnd.openxmlformats-officedocument.wordprocessingml.document")),
    ("xls", text("application/vnd.ms-excel")),
    ("xlsx", packed("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")),
    ("ppt", text("application/vnd.ms-powerpoint")),
    ("pptx", packed("application/vnd.openxmlformats-officedocument.presentationml.presentation")),
    ("odt", packed("application/vnd.oasis.opendocument.text")),
    ("ods", packed("application/vnd.oasis.opendocument.spreadsheet")),
    ("odp", packed("application/vnd.oasis.opendocument.presentation")),
    ("glb", text("model/gltf-binary")),
    ("gltf", text("model/gltf+json")),
    ("stl", text("model/stl")),
    ("obj", text("model/obj")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, value) in [
            ("/index.html", "text/html; charset=utf-8"),
            ("a/b.c/INDEX.HTM", "text/html; charset=utf-8"),
            ("x.tar.gz", "application/gzip"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("x.svg", "image/svg+xml"),
            ("x.strange", "application/octet-stream"),
            ("a.d/README", "text/plain; charset=utf-8"),
            ("a.d/unheard-of", "application/octet-stream"),
            (".html", "application/octet-stream"),
            ("odd.", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(of_name(name.as_bytes()).value, value, "{name}");
        }
        assert!(is_known(b"/a.css") && !is_known(b"/archive") && !is_known(b"/a.bin"));
    }

    #[test]
    fn every_extension_stands_once_and_text_has_a_charset() {
        let mut seen = std::collections::HashSet::new();
        for (names, media) in TABLE {
            for name in names.split(' ') {
                assert!(seen.insert(name), "{name} stands twice");
            }
            assert_eq!(media.value.starts_with("text/"), media.value.contains("charset="), "{}", media.value);
        }
    }
}
