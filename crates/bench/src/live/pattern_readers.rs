//! Readers of Mercure's stream who ask by URI templates, as many as one of them may.
//!
//! This file owns the names of topics and the templates, none of which fits a topic: so nothing is delivered,
//! and what is measured is the comparing. It must never be timed.
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Templates of one reader: with its other words a request is short of 64 parameters.
pub(super) const TEMPLATES_PER_READER: u32 = 59;
/// A server that is busy comparing answers late.
const PATIENCE: Duration = Duration::from_secs(20);

/// A topic of this number. Names begin as all templates do.
pub(super) fn topic(number: u32, last: &str) -> String {
    format!("https://example.org/board/{number}/{last}")
}

/// A template, as it stands in a query.
fn template(word: &str, number: u32) -> String {
    format!("topic=https://example.org/board/%7Bid%7D/{word}-{number}")
}

/// A reader that has been answered. It leaves when this is dropped.
#[derive(Debug)]
pub(super) struct PatternReader {
    _stream: TcpStream,
}

impl PatternReader {
    /// A reader comes with templates of its own, by a word and a number that are its alone.
    ///
    /// # Errors
    /// The subscription is not answered 200.
    pub(super) fn come(address: SocketAddr, word: &str, number: u32) -> Result<Self, String> {
        let first = number * TEMPLATES_PER_READER;
        let words: Vec<String> =
            (first..first + TEMPLATES_PER_READER).map(|number| template(word, number)).collect();
        let query = words.join("&");
        let request = format!("GET /.well-known/mercure?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let fault = |error: std::io::Error| format!("a reader of patterns: {error}");
        let mut stream = TcpStream::connect(address).map_err(fault)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(fault)?;
        stream.write_all(request.as_bytes()).map_err(fault)?;
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).map_err(fault)?;
        let head = String::from_utf8_lossy(&head[..length]);
        match head.lines().next() {
            Some(line) if line.starts_with("HTTP/1.1 200") => Ok(Self { _stream: stream }),
            other => Err(format!("a reader of patterns was answered {}", other.unwrap_or("nothing"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_readers_differ_and_fit_no_topic() {
        let all: Vec<String> = (0..3 * TEMPLATES_PER_READER).map(|number| template("line", number)).collect();
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        let last = topic(7, "published");
        assert!(all.iter().all(|template| template.rsplit('/').next() != last.rsplit('/').next()));
    }
}
