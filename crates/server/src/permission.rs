//! What rules say of a request before anything is served: a redirect, a preflight, 403, networks,
//! certificates, credentials.
//!
//! It owns what one worker remembers of credentials. It must never check any itself: that takes long, so
//! other threads do it, and the request waits for their mail. Order of calls: `pass` for each path that plays
//! a part; when a check's mail comes, `learn`, and the request is dealt with anew.

use std::sync::Arc;

use staunch_engine::{Answer, Answered};
use staunch_protocol::Status;
use staunch_protocol::{Method, Request};

use crate::checks::{Asker, Excess};
use crate::errand::Errand;
use crate::problem::{ALLOW, Problem};
use crate::redirect;
use crate::rules::Ruling;
use crate::rules::auth::{Auth, Remembered, Tag, credentials};
use crate::rules::sharing::Sharing;
use crate::shared::SiteShared;

/// Credentials for a site that a worker remembers.
#[derive(Debug, Default)]
pub(crate) struct Permission {
    good: Remembered,
    /// What was just found out about the credentials of the request that is dealt with.
    verdict: Option<(Tag, bool)>,
}

/// How a request has passed.
pub(crate) enum Passage<'a> {
    /// The request may go on.
    Open(Errand<'a>),
    /// The request is answered, now or later.
    Answered(Answered),
    /// The request may not go on.
    Refused(Problem, Errand<'a>),
}

/// The path a ruling is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a [u8],
    /// Whether it is what the peer asked for: an index file, say, is not.
    pub(crate) by_peer: bool,
    /// AddedFields lines of the answer.
    pub(crate) lines: &'static [u8],
}

impl<'a> Asked<'a> {
    /// What the peer asked for.
    #[inline]
    pub(crate) fn by_peer(path: &'a [u8]) -> Self {
        Self { path, by_peer: true, lines: b"" }
    }

    /// What answers for what the peer asked for.
    #[inline]
    pub(crate) fn within(path: &'a [u8]) -> Self {
        Self { path, by_peer: false, lines: b"" }
    }
}

impl Permission {
    /// Lets a request pass, or not.
    pub(crate) fn pass<'a>(
        &mut self,
        ruling: &Ruling,
        asked: Asked<'_>,
        site: &Arc<SiteShared>,
        mut errand: Errand<'a>,
    ) -> Passage<'a> {
        let request = errand.request;
        if asked.by_peer {
            if let Some(sharing) = ruling.sharing.as_deref().filter(|_| is_preflight(request)) {
                return Passage::Answered(answer_preflight(sharing, ruling, request, errand.answer));
            }
            if let Some(redirect) = &ruling.redirect {
                let mut lines = ruling.lines.as_bytes().to_vec();
                lines.extend_from_slice(&granted(ruling, request));
                let answered = redirect::by_rule(redirect, asked.path, request.query, &lines, errand.answer);
                return Passage::Answered(answered);
            }
        }
        if ruling.deny {
            return Passage::Refused(Problem::Forbidden, errand);
        }
        if !ruling.networks.is_empty() && !ruling.networks.admit(errand.answer.client(request)) {
            errand.answer.note_denied();
            return Passage::Refused(Problem::Forbidden, errand);
        }
        if let Some(demanded) = &ruling.clients {
            let identity = site.load.config.clients.and_then(|demand| demand.known(errand.answer.identity()));
            if !demanded.admits(identity) {
                return Passage::Refused(Problem::Forbidden, errand);
            }
        }
        match &ruling.auth {
            Some(auth) => {
                errand.answer.guard();
                self.authenticate(auth, site, errand)
            }
            None => Passage::Open(errand),
        }
    }

    /// What a check has found out about credentials. The request that waited for it is to be dealt with anew
    /// right away, and [`Permission::forget_verdict`] to be called behind it.
    pub(crate) fn learn(&mut self, tag: Tag, since_s: Option<u32>) {
        self.verdict = Some((tag, since_s.is_some()));
        if let Some(since_s) = since_s {
            self.good.add(tag, since_s);
        }
    }

    /// See [`Permission::learn`].
    pub(crate) fn forget_verdict(&mut self) {
        self.verdict = None;
    }

    fn authenticate<'a>(
        &mut self,
        auth: &Arc<Auth>,
        site: &Arc<SiteShared>,
        errand: Errand<'a>,
    ) -> Passage<'a> {
        let Errand { request, answer } = &errand;
        let mut fields = request.values(b"authorization");
        let (Some(field), None) = (fields.next(), fields.next()) else {
            return Passage::Refused(Problem::Unauthorized, errand);
        };
        let (tag, now_s) = (auth.tag(field), (answer.unix_ms() / 1000) as u32);
        match self.verdict.filter(|(known, _)| *known == tag) {
            Some((_, true)) => return Passage::Open(errand),
            Some((_, false)) => return Passage::Refused(Problem::Unauthorized, errand),
            None if self.good.since(tag, now_s).is_some() => return Passage::Open(errand),
            None => {}
        }
        if let Some(since_s) = auth.known_since(tag, now_s) {
            self.good.add(tag, since_s);
            return Passage::Open(errand);
        }
        if credentials(field).is_none() {
            return Passage::Refused(Problem::Unauthorized, errand);
        }
        let asker = Asker::new(answer.client(request), answer.address());
        match site.ask_whether(auth, field, now_s, asker) {
            Ok(()) => Passage::Answered(errand.answer.later()),
            Err(excess) => Passage::Refused(excess.into(), errand),
        }
    }
}

impl From<Excess> for Problem {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Client => Self::TooMany,
            Excess::Server => Self::Overloaded,
        }
    }
}

/// The lines that let a script of the request's origin read the answer, if it may.
pub(crate) fn granted(ruling: &Ruling, request: &Request<'_>) -> Vec<u8> {
    let mut lines = Vec::new();
    if let (Some(sharing), Some(origin)) = (&ruling.sharing, request.values(b"origin").next()) {
        sharing.grant(origin, &mut lines);
    }
    lines
}

/// A browser asks whether it may ask (the Fetch standard, section 3.3.2). It never sends credentials.
fn is_preflight(request: &Request<'_>) -> bool {
    request.method == Method::Options
        && request.values(b"origin").next().is_some()
        && request.values(b"access-control-request-method").next().is_some()
}

fn answer_preflight(
    sharing: &Sharing,
    ruling: &Ruling,
    request: &Request<'_>,
    answer: Answer<'_>,
) -> Answered {
    let mut fields = format!("Allow: {ALLOW}\r\n{}", ruling.lines).into_bytes();
    if sharing.grant(request.values(b"origin").next().unwrap_or_default(), &mut fields) {
        fields.extend_from_slice(sharing.preflight());
    }
    answer.bytes(Status::NO_CONTENT, &fields, &[])
}
