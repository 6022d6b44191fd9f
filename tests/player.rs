//! Plays a conversation against a body and judges what comes back.
//!
//! It owns the order of a conversation's steps. It must never know which body it speaks to: that is
//! [`Body`]'s matter. At the end of each conversation every connection is half-closed, and nothing more may
//! come.

mod judge;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::body::{Application, Body, Link};
use crate::conversation::{Action, Conversation, Expectation, Saved, Step, escape, join};
use crate::request::Received;
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

/// Plays a conversation once, its application too if it has one.
///
/// # Errors
/// The first expectation that did not hold.
pub fn play(
    conversation: &Conversation,
    tree: &Tree,
    body: &mut Body,
    application: Option<&mut Application>,
    split: Split,
) -> Result<(), Failure> {
    let mut player = Player {
        tree,
        body,
        split,
        clients: Side::new(),
        application,
        servers: Side::new(),
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
    clients: Side,
    application: Option<&'a mut Application>,
    /// The connections that the application has accepted.
    servers: Side,
    saved: Saved,
    turn: u64,
}

/// The connections of one side of the server.
struct Side {
    links: HashMap<String, Link>,
    current: String,
}

impl Side {
    fn new() -> Self {
        Self { links: HashMap::new(), current: "first".to_owned() }
    }
}

impl Player<'_> {
    fn play(&mut self, steps: &[Step]) -> Result<(), Failure> {
        for step in steps {
            let failure = |(expected, came)| Failure { line: step.line, expected, came };
            match &step.action {
                Action::Eventually(inner) => self.repeat(inner)?,
                Action::Expect(expectation) => self.expect(step.line, expectation)?,
                Action::Application(action) => match &**action {
                    Action::Expect(expectation) => self.expect_request(step.line, expectation)?,
                    other => self.act_as_application(other).map_err(failure)?,
                },
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
                send(self.link().map_err(trouble)?, &bytes, split, turn);
                Ok(())
            }
            Action::ExpectBytes(fragments) => {
                let wanted = join(fragments, &self.saved).map_err(trouble)?;
                expect_bytes(self.link().map_err(trouble)?, &wanted)
            }
            Action::ExpectCut(status) => expect_cut(self.link().map_err(trouble)?, *status),
            Action::Closed => self.expect_end(),
            Action::Open => self.expect_open(),
            Action::HalfClose => self.link().map(Link::half_close).map_err(trouble),
            Action::Reset => {
                self.link().map_err(trouble)?;
                if let Some(link) = self.clients.links.remove(&self.clients.current) {
                    link.reset();
                }
                Ok(())
            }
            Action::Wait(ms) => self.link().map(|link| link.wait(*ms)).map_err(trouble),
            Action::Connection(name) => {
                self.clients.current.clone_from(name);
                self.link().map(|_| ()).map_err(trouble)
            }
            Action::Change(change) => self.tree.apply(change).map_err(|error| trouble(error.to_string())),
            Action::Expect(_) | Action::Eventually(_) | Action::Application(_) => Ok(()),
        }
    }

    fn act_as_application(&mut self, action: &Action) -> Result<(), (String, String)> {
        let trouble = |message: String| ("the application can do this".to_owned(), message);
        match action {
            Action::Send(fragments) => {
                let bytes = join(fragments, &self.saved).map_err(trouble)?;
                self.turn += 1;
                let (split, turn) = (self.split, self.turn);
                send(self.server().map_err(trouble)?, &bytes, split, turn);
                Ok(())
            }
            Action::ExpectBytes(fragments) => {
                let wanted = join(fragments, &self.saved).map_err(trouble)?;
                expect_bytes(self.server().map_err(trouble)?, &wanted)
            }
            Action::Closed => {
                let link = self.server().map_err(trouble)?;
                let broken = |came| ("the server ends its connection".to_owned(), came);
                end_of_any_kind(link).map_err(broken)
            }
            Action::HalfClose => self.server().map(Link::half_close).map_err(trouble),
            Action::Reset => {
                self.server().map_err(trouble)?;
                if let Some(link) = self.servers.links.remove(&self.servers.current) {
                    link.reset();
                }
                Ok(())
            }
            Action::Connection(name) => {
                self.servers.current.clone_from(name);
                self.server().map(|_| ()).map_err(trouble)
            }
            _ => Ok(()),
        }
    }

    /// Repeats steps on new connections until they hold.
    fn repeat(&mut self, steps: &[Step]) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            self.clients.links.remove(&self.clients.current);
            match self.play(steps) {
                Ok(()) => return Ok(()),
                Err(failure) if start.elapsed() > PATIENCE => return Err(failure),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// The current connection, opened when there is none.
    fn link(&mut self) -> Result<&mut Link, String> {
        let Side { links, current } = &mut self.clients;
        if !links.contains_key(current) {
            links.insert(current.clone(), self.body.connect()?);
        }
        links.get_mut(current).ok_or_else(|| "no connection".to_owned())
    }

    /// The application's current connection: the next that the server opens if there is none.
    fn server(&mut self) -> Result<&mut Link, String> {
        let Side { links, current } = &mut self.servers;
        if !links.contains_key(current) {
            let application = self.application.as_mut().ok_or("there is no application")?;
            let link = application.accept(PATIENCE)?;
            links.insert(current.clone(), link);
        }
        links.get_mut(current).ok_or_else(|| "no connection".to_owned())
    }

    fn expect(&mut self, line: usize, expectation: &Expectation) -> Result<(), Failure> {
        let without_body = expectation.is_without_body();
        let wanted = || format!("a response {:?}", expectation.statuses);
        let fail = |came: String| Failure { line, expected: wanted(), came };
        let response =
            self.link().and_then(|link| receive(link, |bytes| Response::read(bytes, without_body)));
        let response = response.map_err(fail)?;
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

    fn expect_request(&mut self, line: usize, expectation: &Expectation) -> Result<(), Failure> {
        let without_body = expectation.is_without_body();
        let wanted = || expectation.line.as_ref().map_or_else(String::new, |line| line.source().to_owned());
        let fail = |came: String| Failure { line, expected: format!("the request {}", wanted()), came };
        let read = |bytes: &[u8]| Received::read(bytes, without_body);
        let request = self.server().and_then(|link| receive(link, read)).map_err(fail)?;
        judge::judge_request(line, expectation, &request, self.tree, &self.saved)
    }

    fn expect_open(&mut self) -> Result<(), (String, String)> {
        let trouble = |message: String| ("the connection still answers".to_owned(), message);
        let link = self.link().map_err(trouble)?;
        link.send(PROBE);
        let response = receive(link, |bytes| Response::read(bytes, false)).map_err(trouble)?;
        if response.status == 204 { Ok(()) } else { Err(trouble(judge::show(&response))) }
    }

    fn expect_end(&mut self) -> Result<(), (String, String)> {
        let link = self.link().map_err(|message| ("a connection".to_owned(), message))?;
        end_of(link).map_err(|came| ("an orderly end of the connection".to_owned(), came))
    }

    fn finish(&mut self) -> Result<(), Failure> {
        for (name, mut link) in std::mem::take(&mut self.clients.links) {
            link.half_close();
            end_of(&mut link).map_err(|came| Failure {
                line: 0,
                expected: format!("nothing more on connection `{name}`, and its end"),
                came,
            })?;
        }
        let failure = |name: &str, came| Failure {
            line: 0,
            expected: format!("nothing more for the application on connection `{name}`, and its end"),
            came,
        };
        for (name, mut link) in std::mem::take(&mut self.servers.links) {
            link.half_close();
            end_of_any_kind(&mut link).map_err(|came| failure(&name, came))?;
        }
        if self.application.as_mut().is_some_and(|application| application.has_another()) {
            return Err(failure("another", "the server has opened one more".to_owned()));
        }
        Ok(())
    }
}

/// Waits for bytes that must come next.
fn expect_bytes(link: &mut Link, wanted: &[u8]) -> Result<(), (String, String)> {
    while link.received().len() < wanted.len() && link.end().is_none() && link.fill(PATIENCE) {}
    if link.received().starts_with(wanted) {
        link.take(wanted.len());
        return Ok(());
    }
    Err((format!("the bytes {}", escape(wanted)), escape(link.received())))
}

/// Waits for the end of a connection amid a response of this status, or of which the head was taken before.
fn expect_cut(link: &mut Link, status: Option<u16>) -> Result<(), (String, String)> {
    while link.end().is_none() && link.fill(PATIENCE) {}
    let bytes = link.received();
    let is_cut = match status {
        Some(status) => {
            let head = Response::read(bytes, true);
            let begins = matches!(head, Ok(Some((response, _))) if response.status == status);
            begins && matches!(Response::read(bytes, false), Ok(None))
        }
        None => !bytes.ends_with(b"0\r\n\r\n"),
    };
    if link.end().is_none() || !is_cut {
        return Err(("a response that is cut off".to_owned(), escape(bytes)));
    }
    let taken = bytes.len();
    link.take(taken);
    Ok(())
}

/// Sends bytes in the pieces of a split.
fn send(link: &mut Link, bytes: &[u8], split: Split, turn: u64) {
    for (number, piece) in split.pieces(bytes, turn).into_iter().enumerate() {
        if number > 0 || turn > 1 {
            link.pause_between_pieces();
        }
        link.send(piece);
    }
}

/// Waits for a whole message.
fn receive<M>(
    link: &mut Link,
    read: impl Fn(&[u8]) -> Result<Option<(M, usize)>, String>,
) -> Result<M, String> {
    loop {
        if let Some((message, taken)) = read(link.received())? {
            link.take(taken);
            return Ok(message);
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
    end_of_any_kind(link)?;
    match link.end() {
        Some(end) if !end.is_orderly() => Err(end.to_string()),
        _ => Ok(()),
    }
}

/// Waits for the end of a connection on which nothing more may come: the server may break one off that it
/// gives up.
fn end_of_any_kind(link: &mut Link) -> Result<(), String> {
    loop {
        if !link.received().is_empty() {
            return Err(format!("more bytes: {}", escape(link.received())));
        }
        match link.end() {
            Some(_) => return Ok(()),
            None if !link.fill(PATIENCE) => return Err(format!("no end within {PATIENCE:?}")),
            None => {}
        }
    }
}
