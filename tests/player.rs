//! Plays a conversation against a body and judges what comes back.
//!
//! It owns the order of a conversation's steps. It must never know which body it speaks to: that is
//! [`Body`]'s matter. At the end of each conversation every connection is half-closed, and nothing more may
//! come.

mod judge;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::body::{Body, Link};
use crate::conversation::{Action, Conversation, Expectation, Saved, Step, escape, join};
use crate::response::Response;
use crate::split::Split;
use crate::tree::Tree;

/// How long a response or an end is waited for: a limit for a server that hangs, not a measurement. Shorter
/// than a connection may be idle, so that this end is not taken for the one that is awaited.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sent to see whether a connection is still of use.
const PROBE: &[u8] = b"OPTIONS * HTTP/1.1\r\nHost: probe\r\n\r\n";

/// What went wrong, and where.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Line of the `.wire` file; 0 for the end of the conversation.
    pub line: usize,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub came: String,
}

/// Plays a conversation once.
///
/// # Errors
/// The first expectation that did not hold.
pub fn play(conversation: &Conversation, tree: &Tree, body: &mut Body, split: Split) -> Result<(), Failure> {
    let mut player = Player {
        tree,
        body,
        split,
        links: HashMap::new(),
        current: "first".to_owned(),
        saved: Saved::new(),
        turn: 0,
    };
    player.play(&conversation.steps)?;
    player.finish()
}

struct Player<'a> {
    tree: &'a Tree,
    body: &'a mut Body,
    split: Split,
    links: HashMap<String, Link>,
    current: String,
    saved: Saved,
    turn: u64,
}

impl Player<'_> {
    fn play(&mut self, steps: &[Step]) -> Result<(), Failure> {
        for step in steps {
            let failure = |(expected, came)| Failure { line: step.line, expected, came };
            match &step.action {
                Action::Eventually(inner) => self.repeat(inner)?,
                Action::Expect(expectation) => self.expect(step.line, expectation)?,
                other => self.act(other).map_err(failure)?,
            }
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), (String, String)> {
        let trouble = |message: String| ("this step can be done".to_owned(), message);
        match action {
            Action::Send(fragments) => {
                let bytes = join(fragments, &self.saved).map_err(trouble)?;
                self.turn += 1;
                let (split, turn) = (self.split, self.turn);
                let link = self.link().map_err(trouble)?;
                for (number, piece) in split.pieces(&bytes, turn).into_iter().enumerate() {
                    if number > 0 || turn > 1 {
                        link.pause_between_pieces();
                    }
                    link.send(piece);
                }
                Ok(())
            }
            Action::Closed => self.expect_end(),
            Action::Open => self.expect_open(),
            Action::HalfClose => self.link().map(Link::half_close).map_err(trouble),
            Action::Reset => {
                self.link().map_err(trouble)?;
                if let Some(link) = self.links.remove(&self.current) {
                    link.reset();
                }
                Ok(())
            }
            Action::Wait(ms) => self.link().map(|link| link.wait(*ms)).map_err(trouble),
            Action::Connection(name) => {
                self.current.clone_from(name);
                self.link().map(|_| ()).map_err(trouble)
            }
            Action::Change(change) => self.tree.apply(change).map_err(|error| trouble(error.to_string())),
            Action::Expect(_) | Action::Eventually(_) => Ok(()),
        }
    }

    /// Repeats steps on new connections until they hold.
    fn repeat(&mut self, steps: &[Step]) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            self.links.remove(&self.current);
            match self.play(steps) {
                Ok(()) => return Ok(()),
                Err(failure) if start.elapsed() > PATIENCE => return Err(failure),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The current connection, opened when there is none.
    fn link(&mut self) -> Result<&mut Link, String> {
        if !self.links.contains_key(&self.current) {
            let link = self.body.connect()?;
            self.links.insert(self.current.clone(), link);
        }
        self.links.get_mut(&self.current).ok_or_else(|| "no connection".to_owned())
    }

    fn expect(&mut self, line: usize, expectation: &Expectation) -> Result<(), Failure> {
        let without_body = expectation.is_without_body();
        let wanted = || format!("a response {:?}", expectation.statuses);
        let fail = |came: String| Failure { line, expected: wanted(), came };
        let response = self.link().and_then(|link| receive(link, without_body)).map_err(fail)?;
        judge::judge(line, expectation, &response, self.tree, &self.saved)?;
        for (name, field) in &expectation.saves {
            let value = response.values(field).next().map(<[u8]>::to_vec);
            let value = value.ok_or_else(|| Failure {
                line,
                expected: format!("a field {field} to save"),
                came: judge::show(&response),
            })?;
            self.saved.insert(name.clone(), value);
        }
        Ok(())
    }

    fn expect_open(&mut self) -> Result<(), (String, String)> {
        let trouble = |message: String| ("the connection still answers".to_owned(), message);
        let link = self.link().map_err(trouble)?;
        link.send(PROBE);
        let response = receive(link, false).map_err(trouble)?;
        if response.status == 204 { Ok(()) } else { Err(trouble(judge::show(&response))) }
    }

    fn expect_end(&mut self) -> Result<(), (String, String)> {
        let link = self.link().map_err(|message| ("a connection".to_owned(), message))?;
        end_of(link).map_err(|came| ("an orderly end of the connection".to_owned(), came))
    }

    fn finish(&mut self) -> Result<(), Failure> {
        for (name, mut link) in std::mem::take(&mut self.links) {
            link.half_close();
            end_of(&mut link).map_err(|came| Failure {
                line: 0,
                expected: format!("nothing more on connection `{name}`, and its end"),
                came,
            })?;
        }
        Ok(())
    }
}

/// Waits for a whole response.
fn receive(link: &mut Link, without_body: bool) -> Result<Response, String> {
    loop {
        if let Some((response, taken)) = Response::read(link.received(), without_body)? {
            link.take(taken);
            return Ok(response);
        }
        if let Some(end) = link.end() {
            return Err(format!("{end}, after: {}", escape(link.received())));
        }
        if !link.fill(PATIENCE) {
            return Err(format!("no more within {PATIENCE:?}, after: {}", escape(link.received())));
        }
    }
}

/// Waits for the orderly end of a connection on which nothing more may come.
fn end_of(link: &mut Link) -> Result<(), String> {
    loop {
        if !link.received().is_empty() {
            return Err(format!("more bytes: {}", escape(link.received())));
        }
        match link.end() {
            Some(end) if end.is_orderly() => return Ok(()),
            Some(end) => return Err(end.to_string()),
            None if !link.fill(PATIENCE) => return Err(format!("no end within {PATIENCE:?}")),
            None => {}
        }
    }
}
