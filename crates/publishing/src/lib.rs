//! `staunch publish`: publishes to a server's live data: a value, lines as they come, or a demonstration.
//!
//! It owns the arguments and the order of things. It must never take the secret as an argument: others on the
//! host could read it.
#![forbid(unsafe_code)]

mod demo;
mod folder;
mod followed;
mod link;
mod patience;
mod regular;
mod topic_writer;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::folder::TopicFolder;
use crate::followed::Followed;
use crate::link::LinkTarget;
use crate::patience::patiently;
use crate::topic_writer::{PutFault, TopicValue, TopicWriter};
use staunch_program::Failure;
use staunch_program::output::remark;

/// The secret, where no file is named.
const TOKEN_VARIABLE: &str = "STAUNCH_PUBLISH_TOKEN";
/// Longest value that is read, as long as a server may be told to take.
const VALUE_BYTES_MAX: u64 = 16 << 20;

/// What is published, and where.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Topic that gets the value; with a folder, what names of its topics begin with
    #[arg(value_name = "TOPIC", required_unless_present = "demo")]
    topic: Option<String>,

    /// File with the value, or - for standard input; with --follow, a folder whose files are topics
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Server, by http or https
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    to: String,

    /// Authorities that may vouch for an https server, instead of the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// File with the secret or token, alone on its first line; else STAUNCH_PUBLISH_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Publish each line as soon as it comes
    #[arg(long, conflicts_with = "demo")]
    lines: bool,

    /// Publish each line that is added to FILE, as tail -F: it may be replaced, cut, or not there yet; with
    /// --lines, those that are there first. A server that is away is waited for
    #[arg(long, conflicts_with = "demo")]
    follow: bool,

    /// With a folder: a file that is removed ends its topic's value
    #[arg(long, requires = "follow")]
    delete: bool,

    /// Publish a match and quotes that are made up, until the server is gone
    #[arg(long, conflicts_with = "topic")]
    demo: bool,
}

/// Publishes what is asked for.
///
/// # Errors
/// No secret, nothing to read, or a server that does not take it.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let target = LinkTarget::new(&arguments.to, arguments.cacert.as_deref())?;
    let mut writer = TopicWriter::new(target, token(arguments)?);
    if arguments.demo {
        return Ok(demo::run(&mut writer)?);
    }
    let topic = arguments.topic.as_deref().unwrap_or_default();
    if let Some((prefix, folder)) = topic_folder(arguments) {
        if arguments.lines {
            return Err("--lines: a file of a folder is one value".to_owned().into());
        }
        return follow_folder(&mut writer, prefix, folder, arguments.delete);
    }
    if let Some(folder) = missing_folder(arguments) {
        let text =
            format!("{folder}: there is no such folder; for lines of standard input write - behind TOPIC");
        return Err(text.into());
    }
    if arguments.delete {
        return Err("--delete: it is for a folder whose files are topics".to_owned().into());
    }
    let file = arguments.file.as_deref().unwrap_or(Path::new("-"));
    let name = file.display().to_string();
    let fault = |error: std::io::Error| Failure::from(format!("{name}: {error}"));
    if arguments.follow && name != "-" {
        return follow(&mut writer, topic, file, !arguments.lines);
    }
    let source: Box<dyn Read> = match name.as_str() {
        "-" => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(file).map_err(fault)?),
    };
    if arguments.lines || arguments.follow {
        let mut source = BufReader::new(source);
        let mut number = 0;
        while let Some(line) = read_line(&mut source, number + 1, VALUE_BYTES_MAX).map_err(fault)? {
            number += 1;
            match arguments.follow {
                true => put_line(&mut writer, topic, &TopicValue::of(line))?,
                false => put(&mut writer, topic, &TopicValue::of(line))?,
            }
        }
        return Ok(());
    }
    let mut value = Vec::new();
    source.take(VALUE_BYTES_MAX + 1).read_to_end(&mut value).map_err(fault)?;
    put(&mut writer, topic, &TopicValue::of(value))
}

/// The next line without its end; `None` at the end of the source.
fn read_line(source: &mut impl BufRead, number: u64, bytes_max: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let count = source.take(bytes_max + 1).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if count as u64 > bytes_max {
        return Err(std::io::Error::other(format!("line {number} has more than {bytes_max} bytes")));
    }
    Ok((count > 0).then_some(line))
}

/// The folder to follow, if one is named: alone, or behind what its topics' names begin with.
fn topic_folder(arguments: &Arguments) -> Option<(&str, &Path)> {
    let topic = arguments.topic.as_deref()?;
    let (prefix, path) = match &arguments.file {
        Some(file) => (topic, file.as_path()),
        None => ("", Path::new(topic)),
    };
    (arguments.follow && path.is_dir()).then_some((prefix, path))
}

/// What is meant as the folder to follow, where that is none: a path alone.
fn missing_folder(arguments: &Arguments) -> Option<&str> {
    let topic = arguments.topic.as_deref().filter(|_| arguments.follow && arguments.file.is_none())?;
    topic.starts_with(['/', '.']).then_some(topic)
}

/// Publishes a value once; any refusal is a failure of the command.
fn put(writer: &mut TopicWriter, topic: &str, value: &TopicValue) -> Result<(), Failure> {
    writer.put(topic, value).map_err(|fault| fault.to_string().into())
}

/// Publishes the files of a folder as topics, and never ends by itself but for a failure.
fn follow_folder(writer: &mut TopicWriter, prefix: &str, path: &Path, deletes: bool) -> Result<(), Failure> {
    let name = path.display();
    let folder = TopicFolder::new(path, prefix, VALUE_BYTES_MAX, deletes);
    let mut folder = folder.map_err(|error| Failure::from(format!("{name}: {error}")))?;
    remark(&format!("staunch: following {name}\n"));
    folder.follow(writer)
}

/// Publishes each line that is added to a file, and never ends by itself but for a failure.
fn follow(writer: &mut TopicWriter, topic: &str, path: &Path, from_end: bool) -> Result<(), Failure> {
    let name = path.display();
    let fault = |error: std::io::Error| Failure::from(format!("{name}: {error}"));
    let mut followed = Followed::new(path, from_end, VALUE_BYTES_MAX).map_err(fault)?;
    let what = if followed.is_open() { "following" } else { "waiting for" };
    remark(&format!("staunch: {what} {name}\n"));
    loop {
        let line = followed.next().map_err(fault)?;
        put_line(writer, topic, &TopicValue::of(line))?;
    }
}

/// Publishes a line, trying again until the server can take it. A line that the server refuses is reported
/// and skipped; a refusal of the publisher itself, and one for want of room, is a failure.
fn put_line(writer: &mut TopicWriter, topic: &str, value: &TopicValue) -> Result<(), Failure> {
    match patiently(writer, |writer| writer.put(topic, value)) {
        Err(PutFault::Value(said)) => remark(&format!("staunch: a line was left out: {said}\n")),
        became => became.map_err(|fault| fault.to_string())?,
    }
    Ok(())
}

fn token(arguments: &Arguments) -> Result<String, Failure> {
    let text = match &arguments.token_file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| format!("--token-file {}: {error}", file.display()))?,
        None => std::env::var(TOKEN_VARIABLE)
            .map_err(|_| format!("whose publication? name a --token-file, or set {TOKEN_VARIABLE}"))?,
    };
    let token = text.lines().next().unwrap_or_default().trim().to_owned();
    match token.is_empty() || token.contains(|letter: char| !letter.is_ascii_graphic()) {
        true => Err(Failure::from("the secret has no letter, or one that is none of ASCII".to_owned())),
        false => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_bounded_and_named() {
        let mut source = &b"1234\n\nlast"[..];
        let mut next = |number| read_line(&mut source, number, 4).map_err(|error| error.to_string());
        assert_eq!(next(1), Ok(Some(b"1234".to_vec())));
        assert_eq!(next(2), Ok(Some(Vec::new())));
        assert_eq!((next(3), next(4)), (Ok(Some(b"last".to_vec())), Ok(None)));
        let fault = read_line(&mut &b"12345"[..], 7, 4).unwrap_err().to_string();
        assert_eq!(fault, "line 7 has more than 4 bytes");
    }
}
