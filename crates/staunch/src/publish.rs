//! `staunch publish`: publishes to a server's live data: a value, lines as they come, or a demonstration.
//!
//! It owns the arguments and the order of things. It must never take the secret as an argument: others on the
//! host could read it.

mod demo;
mod followed;
mod topic_writer;

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use self::followed::Followed;
use self::topic_writer::{PutFault, TopicValue, TopicWriter};
use crate::config::Failure;
use crate::output::remark;

/// The secret, where no file is named.
const TOKEN_VARIABLE: &str = "STAUNCH_PUBLISH_TOKEN";
/// Longest value that is read, as long as a server may be told to take.
const VALUE_BYTES_MAX: u64 = 16 << 20;
/// Time between two tries of a line that the server cannot take now: a server is back within seconds.
const RETRY: Duration = Duration::from_secs(1);

/// What is published, and where.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Topic that gets the value
    #[arg(value_name = "TOPIC", required_unless_present = "demo")]
    topic: Option<String>,

    /// File with the value, or - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// Server; without TLS
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    to: String,

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

    /// Publish a match and quotes that are made up, until the server is gone
    #[arg(long, conflicts_with = "topic")]
    demo: bool,
}

/// Publishes what is asked for.
///
/// # Errors
/// No secret, nothing to read, or a server that does not take it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut writer = TopicWriter::new(&arguments.to, token(arguments)?)?;
    if arguments.demo {
        return Ok(demo::run(&mut writer)?);
    }
    let topic = arguments.topic.as_deref().unwrap_or_default();
    let name = arguments.file.display().to_string();
    let fault = |error: std::io::Error| Failure::from(format!("{name}: {error}"));
    if arguments.follow && name != "-" {
        return follow(&mut writer, topic, arguments);
    }
    let source: Box<dyn Read> = match name.as_str() {
        "-" => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(&arguments.file).map_err(fault)?),
    };
    if arguments.lines || arguments.follow {
        for line in BufReader::new(source).split(b'\n') {
            let value = TopicValue::of(line.map_err(fault)?);
            match arguments.follow {
                true => put_patiently(&mut writer, topic, &value)?,
                false => put(&mut writer, topic, &value)?,
            }
        }
        return Ok(());
    }
    let mut value = Vec::new();
    source.take(VALUE_BYTES_MAX + 1).read_to_end(&mut value).map_err(fault)?;
    put(&mut writer, topic, &TopicValue::of(value))
}

/// Publishes a value once; any refusal is a failure of the command.
fn put(writer: &mut TopicWriter, topic: &str, value: &TopicValue) -> Result<(), Failure> {
    writer.put(topic, value).map_err(|fault| fault.to_string().into())
}

/// Publishes each line that is added to a file, and never ends by itself but for a failure.
fn follow(writer: &mut TopicWriter, topic: &str, arguments: &Arguments) -> Result<(), Failure> {
    let name = arguments.file.display();
    let fault = |error: std::io::Error| Failure::from(format!("{name}: {error}"));
    let followed = Followed::new(&arguments.file, !arguments.lines, VALUE_BYTES_MAX);
    let mut followed = followed.map_err(fault)?;
    let what = if followed.is_open() { "following" } else { "waiting for" };
    remark(&format!("staunch: {what} {name}\n"));
    loop {
        let line = followed.next().map_err(fault)?;
        put_patiently(writer, topic, &TopicValue::of(line))?;
    }
}

/// Publishes a line, trying again until the server can take it. A line that the server refuses is reported
/// and skipped; a refusal of the publisher itself is a failure.
fn put_patiently(writer: &mut TopicWriter, topic: &str, value: &TopicValue) -> Result<(), Failure> {
    let mut is_told = false;
    loop {
        match writer.put(topic, value) {
            Ok(()) => return Ok(()),
            Err(PutFault::Later(said)) => {
                if !is_told {
                    remark(&format!("staunch: {said}; trying again every second\n"));
                }
                is_told = true;
                // tidy: allow(clock): a server that comes back tells nobody.
                std::thread::sleep(RETRY);
            }
            Err(PutFault::Value(said)) => {
                remark(&format!("staunch: a line was left out: {said}\n"));
                return Ok(());
            }
            Err(fault @ PutFault::Publisher(_)) => return Err(fault.to_string().into()),
        }
    }
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
