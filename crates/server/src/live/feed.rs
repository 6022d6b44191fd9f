//! A feed: lines of JSON that are worked off as they come, each answered by a line.
//!
//! It owns the half received line and how far ahead of the writer the feed is. It must never hold more than
//! that: a feed that is ahead is not read.

use staunch_live::LineReader;

use super::mail::LineOutcome;
use super::permit::Rights;
use super::publish::{ReadBody, lines_max, outcome_line};
use super::turns::LineClient;
use crate::limits::FEED_LINES_AHEAD_MAX;

/// Lines of JSON that a publisher sends, and what is known of them.
#[derive(Debug)]
pub(crate) struct Feed {
    reader: LineReader,
    /// Letters of the writer that are awaited, and lines in them.
    letters: usize,
    lines: usize,
    /// Lines for the publisher that were not sent yet.
    pub(crate) answers: Vec<u8>,
    is_over: bool,
    rights: Rights,
    /// Whose turn its lines are.
    pub(crate) client: LineClient,
}

impl Feed {
    /// Before the first line.
    pub(crate) fn new(value_bytes_max: usize, rights: Rights, client: LineClient) -> Self {
        let reader = LineReader::new(lines_max(value_bytes_max, false));
        Self { reader, letters: 0, lines: 0, answers: Vec::new(), is_over: false, rights, client }
    }

    /// Takes a piece of the body, or its end; gives what is to be published. Whoever calls hands it to the
    /// writer unless there is nothing in it.
    pub(crate) fn read(&mut self, piece: Option<&[u8]>) -> ReadBody {
        let mut read = ReadBody::default();
        if self.is_over {
            return read;
        }
        match piece {
            Some(piece) => self.reader.read(piece, |line, publication| read.take(line, publication)),
            None => {
                self.reader.end(|line, publication| read.take(line, publication));
                self.is_over = true;
            }
        }
        self.rights.restrict(&mut read);
        // What follows a faulty line cannot be told apart from it.
        self.is_over |= read.fault.is_some();
        if !read.lines.is_empty() || read.fault.is_some() {
            self.letters += 1;
            self.lines += read.lines.len() + usize::from(read.fault.is_some());
        }
        read
    }

    /// The writer tells what became of the oldest lines that are awaited.
    pub(crate) fn hear(&mut self, outcomes: &[LineOutcome]) {
        self.letters = self.letters.saturating_sub(1);
        self.lines = self.lines.saturating_sub(outcomes.len());
        outcomes.iter().for_each(|outcome| self.answers.extend(outcome_line(outcome).into_bytes()));
    }

    /// Whether it is not to be read for now.
    pub(crate) fn is_ahead(&self) -> bool {
        self.lines >= FEED_LINES_AHEAD_MAX
    }

    /// Whether everything of it was answered.
    pub(crate) fn is_done(&self) -> bool {
        self.is_over && self.letters == 0
    }
}

#[cfg(test)]
mod tests {
    use staunch_live::Accepted;

    use super::*;

    #[test]
    fn a_feed_ends_when_all_its_lines_are_answered() {
        let mut feed = Feed::new(100, Rights::Everything, LineClient::Node);
        assert!(feed.read(Some(b"{\"topic\":\"a\"}\n{\"top")).lines.len() == 1 && !feed.is_done());
        assert_eq!(feed.read(Some(b"ic\":\"b\"}")).lines.len(), 0);
        assert_eq!(feed.read(None).lines[0].0, 2);
        let taken = |line| LineOutcome { line, became: Ok(Accepted { version: None, readers: 0 }) };
        feed.hear(&[taken(1)]);
        assert!(!feed.is_done());
        feed.hear(&[taken(2)]);
        assert!(feed.is_done() && feed.answers.ends_with(b"{\"line\":2,\"version\":null,\"readers\":0}\n"));
    }

    #[test]
    fn a_feed_that_is_ahead_is_told() {
        let mut feed = Feed::new(100, Rights::Everything, LineClient::Node);
        feed.read(Some("{\"topic\":\"a\"}\n".repeat(FEED_LINES_AHEAD_MAX).as_bytes()));
        assert!(feed.is_ahead());
        let read = feed.read(Some(b"x\n{\"topic\":\"a\"}\n"));
        assert!(read.lines.is_empty() && read.fault.is_some());
    }
}
