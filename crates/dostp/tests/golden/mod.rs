//! Reads the golden frames. Their form stands in `docs/dostp.md`.

use std::path::Path;

use staunch_dostp::Link;

/// A file of golden frames.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) receiver: Receiver,
    pub(crate) pairs: Vec<Pair>,
}

/// In what the receiver differs from the usual one.
#[allow(dead_code, reason = "not every test that reads golden frames asks")]
#[derive(Default)]
pub(crate) struct Receiver {
    pub(crate) cluster: u8,
    pub(crate) secrets: [Option<[u8; 32]>; 2],
    pub(crate) mode: String,
    /// Address and boot number of a peer.
    pub(crate) believes: Option<(u16, u64)>,
}

/// A line of words and a line of hexadecimal digits.
#[allow(dead_code, reason = "not every test that reads golden frames asks for all")]
pub(crate) struct Pair {
    pub(crate) line: usize,
    pub(crate) from: Link,
    /// Each frame: the first one, and those joined behind it.
    pub(crate) frames: Vec<Said>,
    pub(crate) outcome: Vec<String>,
    pub(crate) bytes: Vec<u8>,
}

/// The words of one frame.
#[allow(dead_code, reason = "not every test that reads golden frames asks for all")]
pub(crate) struct Said {
    line: usize,
    pub(crate) refused: Option<String>,
    fields: Vec<(String, String)>,
}

impl Said {
    pub(crate) fn text(&self, name: &str) -> String {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.unwrap_or_else(|| panic!("line {}: no field {name}", self.line)).1.clone()
    }

    #[allow(dead_code, reason = "not every test that reads golden frames asks")]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }

    #[allow(dead_code, reason = "not every test that reads golden frames asks")]
    pub(crate) fn number(&self, name: &str) -> u64 {
        number(&self.text(name))
    }
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// All files, by name.
pub(crate) fn all() -> Vec<File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut files: Vec<File> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "frame"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            parse(name, &std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

/// `02:00:00:00:00:07`.
#[allow(dead_code, reason = "not every test that reads golden frames asks")]
pub(crate) fn link(text: &str) -> Link {
    let bytes: Vec<u8> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    Link(bytes.try_into().unwrap())
}

fn parse(name: String, text: &str) -> File {
    let mut receiver = Receiver::default();
    let mut pairs = Vec::new();
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    while let Some((place, words)) = lines.next() {
        if let Some(fields) = words.strip_prefix("receiver ") {
            for (field, value) in self::fields(fields) {
                match field.as_str() {
                    "cluster" => receiver.cluster = value.parse().unwrap(),
                    "secret0" => receiver.secrets[0] = bytes(&value).try_into().ok(),
                    "secret1" => receiver.secrets[1] = bytes(&value).try_into().ok(),
                    "mode" => receiver.mode = value,
                    "believes" => {
                        let (address, boot) = value.split_once(':').unwrap();
                        receiver.believes = Some((number(address) as u16, number(boot)));
                    }
                    _ => panic!("{name}:{}: {field}", place + 1),
                }
            }
            continue;
        }
        let (_, hexadecimal) = lines.next().unwrap_or_else(|| panic!("{name}: no bytes at the end"));
        pairs.push(pair(place + 1, words, hexadecimal));
    }
    File { name, receiver, pairs }
}

fn pair(line: usize, words: &str, hexadecimal: &str) -> Pair {
    let (words, then) = words.split_once(" -> ").unwrap_or((words, ""));
    let frames: Vec<Said> = words.split(" + ").map(|words| said(line, words)).collect();
    let from = frames[0].fields.iter().find(|(field, _)| field == "from").map(|(_, value)| link(value));
    let outcome = match &frames[0].refused {
        Some(name) => vec![format!("dropped {name}")],
        None => then.split(", ").map(str::to_owned).collect(),
    };
    Pair { line, from: from.unwrap_or(Link([2, 0, 0, 0, 0, 7])), frames, outcome, bytes: bytes(hexadecimal) }
}

fn said(line: usize, words: &str) -> Said {
    let (verdict, rest) = words.split_once(' ').unwrap_or((words, ""));
    let refused = match verdict {
        "accept" => None,
        "refuse" => Some(rest.split(' ').next().unwrap_or_default().to_owned()),
        other => panic!("line {line}: {other}"),
    };
    Said { line, refused, fields: fields(rest) }
}

fn fields(words: &str) -> Vec<(String, String)> {
    let pairs = words.split(' ').filter_map(|word| word.split_once('='));
    pairs.map(|(field, value)| (field.to_owned(), value.to_owned())).collect()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    if hexadecimal == "-" {
        return Vec::new();
    }
    assert!(hexadecimal.len().is_multiple_of(2), "{hexadecimal}");
    (0..hexadecimal.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).unwrap())
        .collect()
}
