//! Which media type a name has, and whether it is worth encoding.
//!
//! It owns the list (`media_types.txt`) and what a site says beside it. It must never look into content: a
//! browser would have to trust what was guessed, and it would change with a byte.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// A media type as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaType {
    /// Value of Content-Type, with charset where it is text.
    pub(crate) value: Cow<'static, str>,
    /// Whether encodings make it smaller.
    pub(crate) encodable: bool,
}

impl MediaType {
    /// How many bytes it holds beside itself.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.value {
            Cow::Borrowed(_) => 0,
            Cow::Owned(value) => value.capacity(),
        }
    }
}

/// HTML, also of pages made here.
pub(crate) static HTML: MediaType = text("text/html; charset=utf-8");
/// JSON, also of listings.
pub(crate) static JSON: MediaType = text("application/json");

const fn text(value: &'static str) -> MediaType {
    MediaType { value: Cow::Borrowed(value), encodable: true }
}

/// The type of names that the list does not know.
const BINARY: &str = "application/octet-stream";
const PLAIN: &str = "text/plain";

/// Text files that bear no extension by custom.
const PLAIN_NAMES: [&[u8]; 8] =
    [b"README", b"LICENSE", b"COPYING", b"AUTHORS", b"CHANGELOG", b"NEWS", b"Makefile", b"Dockerfile"];

/// Types that shrink, beside text and what is written in XML or JSON.
const SHRINKING: [&str; 39] = [
    "application/dicom",
    "application/javascript",
    "application/json",
    "application/json5",
    "application/msword",
    "application/n-triples",
    "application/pgp-keys",
    "application/postscript",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/vnd.mapbox-vector-tile",
    "application/vnd.ms-excel",
    "application/vnd.ms-fontobject",
    "application/vnd.ms-powerpoint",
    "application/vnd.sqlite3",
    "application/wasm",
    "application/x-bibtex",
    "application/x-ndjson",
    "application/x-ns-proxy-autoconfig",
    "application/x-pem-file",
    "application/x-protobuf",
    "application/x-tar",
    "application/x-tex",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
    "font/collection",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.adobe.photoshop",
    "image/vnd.microsoft.icon",
    "image/x-icon",
    "message/rfc822",
    "model/gltf-binary",
    "model/obj",
    "model/stl",
];

/// The list: types by extension.
static LIST: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| lines().collect());

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("media_types.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| {
        let mut words = line.split(' ');
        let media = words.next().unwrap_or_default();
        words.map(move |extension| (extension, media))
    })
}

/// The types of one site's names.
#[derive(Debug)]
pub(crate) struct MediaTypes {
    /// The site's own types by extension or whole name, in small letters.
    own: HashMap<Box<[u8]>, String>,
    charset: Option<String>,
}

impl MediaTypes {
    /// The types of a site that says some by extension (`apk`) or name of a file, and the charset of its
    /// texts.
    pub(crate) fn new(own: &BTreeMap<String, String>, charset: Option<&str>) -> Self {
        let key = |name: &String| name.trim_start_matches('.').to_ascii_lowercase().into_bytes().into();
        let own = own.iter().map(|(name, media)| (key(name), media.clone())).collect();
        Self { own, charset: charset.map(str::to_owned) }
    }

    /// The type of a file: what the site says of its name, then of its extension, then the list.
    pub(crate) fn of_name(&self, path: &[u8]) -> MediaType {
        let (file, extension) = parts(path);
        let said = [Some(file), extension].into_iter().flatten().find_map(|name| self.own.get(&*name));
        match said {
            Some(media) => self.media(Cow::Owned(media.clone())),
            None => self.media(Cow::Borrowed(of_list(path).unwrap_or(BINARY))),
        }
    }

    fn media(&self, name: Cow<'static, str>) -> MediaType {
        let encodable = is_shrinking(&name);
        let has_charset = name.starts_with("text/") && !name.contains(';');
        let value = match &self.charset {
            Some(charset) if has_charset => Cow::Owned(format!("{name}; charset={charset}")),
            _ => name,
        };
        MediaType { value, encodable }
    }
}

/// Whether a name has an extension that the list knows.
pub(crate) fn is_known(path: &[u8]) -> bool {
    of_list(path).is_some_and(|media| media != BINARY)
}

fn of_list(path: &[u8]) -> Option<&'static str> {
    let (_, extension) = parts(path);
    let Some(extension) = extension else {
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        return PLAIN_NAMES.contains(&file).then_some(PLAIN);
    };
    LIST.get(std::str::from_utf8(&extension).ok()?).copied()
}

/// The last name of a path and its extension, in small letters.
fn parts(path: &[u8]) -> (Box<[u8]>, Option<Box<[u8]>>) {
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let dot = file.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0);
    let extension = dot.and_then(|dot| file.get(dot + 1..)).map(|text| text.to_ascii_lowercase().into());
    (file.to_ascii_lowercase().into(), extension)
}

fn is_shrinking(media: &str) -> bool {
    let name = media.split(';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let by_suffix =
        name.rsplit_once('+').is_some_and(|(_, suffix)| ["json", "xml", "yaml"].contains(&suffix));
    by_suffix || name.starts_with("text/") || SHRINKING.contains(&&*name)
}

#[cfg(test)]
#[path = "mime/tests.rs"]
mod tests;
