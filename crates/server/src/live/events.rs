//! What a reader of `/events` asks for, and one of a WebSocket whose URL says it.
//!
//! It owns the parameters of the query. It must never take one for another: a reader would get less than it
//! asked for.

use std::sync::Arc;

use staunch_live::centrifugo::Language;
use staunch_live::limits::INTERESTS_PER_STREAM_MAX;
use staunch_live::mercure::read_subscription;
use staunch_live::{
    Coding, Form, Grants, Interest, Shape, Start, TopicName, Transport, Update, Version, View, decode_form,
};
use staunch_protocol::Request;

use crate::content::negotiate::{Encoding, Preference};

/// Codings of streams, the better one first: of a short event both save about as much, and a frame of zstd
/// needs nothing before it.
const ORDER: [Encoding; 2] = [Encoding::Zstd, Encoding::Gzip];

/// A wish that was understood.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) interest: Arc<Interest>,
    pub(crate) form: Form,
    pub(crate) coding: Coding,
    pub(crate) from: Beginning,
    /// Whose wish it is, for patterns are shared out by client.
    pub(crate) client: u64,
}

/// What a stream begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamHead {
    pub(crate) coding: Coding,
    /// The reader is told that private updates may be left out.
    pub(crate) hides_private: bool,
}

/// Where a reader wants to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Beginning {
    Snapshot,
    Now,
    /// With all that is kept.
    Earliest,
    /// Behind the update with this id, which may be its publisher's.
    Id(String),
}

impl Wish {
    /// Reads a request for `/events`.
    ///
    /// # Errors
    /// A sentence that names the parameter.
    pub(crate) fn read(request: &Request<'_>, grants: Grants) -> Result<Self, String> {
        Self::read_query(request, grants, transport(request), coding(request))
    }

    /// Reads a request for `/ws` that names topics.
    ///
    /// # Errors
    /// A sentence that names the parameter.
    pub(crate) fn read_socket(
        request: &Request<'_>,
        grants: Grants,
        (deflates, language): (bool, Language),
    ) -> Result<Self, String> {
        let coding = if deflates { Coding::Deflate } else { Coding::Identity };
        let transport = Transport::of_language(language);
        let wish = Self::read_query(request, grants, transport, coding)?;
        match (language, wish.form.shape()) {
            (Language::Protobuf, Shape::Bare) => Err("`plain` has no Protobuf".to_owned()),
            _ => Ok(wish),
        }
    }

    fn read_query(
        request: &Request<'_>,
        grants: Grants,
        transport: Transport,
        coding: Coding,
    ) -> Result<Self, String> {
        let pairs = decode_form(request.query.unwrap_or_default()).map_err(|fault| fault.to_string())?;
        let all = |name: &'static str| {
            pairs.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
        };
        let interest = Interest::read(all("topic"), grants, INTERESTS_PER_STREAM_MAX);
        let interest = Arc::new(interest.map_err(|fault| fault.to_string())?);
        let shape = match (switch(all("plain").next(), "plain")?, switch(all("patch").next(), "patch")?) {
            (true, true) => return Err("`plain` and `patch` exclude each other".to_owned()),
            (true, false) => Shape::Bare,
            (false, true) => Shape::Patch,
            (false, false) => Shape::Enveloped,
        };
        let from = match all("from").next() {
            None | Some("snapshot") => Beginning::Snapshot,
            Some("now") => Beginning::Now,
            Some(_) => return Err("`from` is `now` or `snapshot`".to_owned()),
        };
        // A field comes with each return of a browser, the query is that of its first coming.
        let id = request.values(b"last-event-id").next().map(|id| String::from_utf8_lossy(id).into_owned());
        let id = id.or_else(|| all("last-event-id").next().map(str::to_owned)).filter(|id| !id.is_empty());
        let form = Form::new(shape, transport, coding);
        Ok(Self { interest, form, coding, from: id.map_or(from, Beginning::Id), client: 0 })
    }

    /// Reads a request for Mercure's hub.
    ///
    /// # Errors
    /// A sentence that names the parameter.
    pub(crate) fn read_mercure(request: &Request<'_>, grants: Grants) -> Result<Self, String> {
        let pairs = decode_form(request.query.unwrap_or_default()).map_err(|fault| fault.to_string())?;
        let asked = read_subscription(&pairs, grants).map_err(|fault| fault.to_string())?;
        let id = request.values(b"last-event-id").next().map(|id| String::from_utf8_lossy(id).into_owned());
        let from = match id.or(asked.last_id).filter(|id| !id.is_empty()) {
            None => Beginning::Now,
            Some(id) if id == "earliest" => Beginning::Earliest,
            Some(id) => Beginning::Id(id),
        };
        let transport = transport(request);
        let coding = coding(request);
        let form = Form::new(Shape::Bare, transport, coding);
        Ok(Self { interest: Arc::new(asked.interest), form, coding, from, client: 0 })
    }

    /// The line that tells a reader of Mercure's hub from where it goes on, if it said where it was.
    pub(crate) fn mercure_line(&self, view: &View) -> String {
        let id = match (&self.from, self.start(view)) {
            (Beginning::Id(id), Start::After(version)) if view.version().epoch == version.epoch => {
                id.as_str()
            }
            (Beginning::Id(_) | Beginning::Earliest, _) => "earliest",
            (Beginning::Snapshot | Beginning::Now, _) => return String::new(),
        };
        format!("Mercure-Last-Event-ID: {id}\r\n")
    }

    /// What its stream begins with.
    pub(crate) fn head(&self) -> StreamHead {
        StreamHead { coding: self.coding, hides_private: self.interest.exceeds_grants() }
    }

    /// As the wish of a client.
    pub(crate) fn of(self, client: u64) -> Self {
        Self { client, ..self }
    }

    /// Where to begin in this view. An id that is known nowhere is a version of no epoch.
    pub(crate) fn start(&self, view: &View) -> Start {
        let own = view.version();
        match &self.from {
            Beginning::Snapshot => Start::Snapshot,
            Beginning::Now => Start::Now,
            Beginning::Earliest => Start::After(Version { number: 0, ..own }),
            Beginning::Id(id) => {
                let ours = id.parse::<Version>().ok();
                // Whether an update that may not be read has the id is nobody's business.
                let may_read = |update: &Update| self.interest.may_read(update);
                let number_of = |name: &TopicName| view.number_of_id(name, id, may_read);
                let number = || self.interest.names().find_map(number_of);
                let version = ours.or_else(|| Some(Version { number: number()?, ..own }));
                let unknown = Version { epoch: staunch_live::Epoch(!own.epoch.0), number: 0 };
                Start::After(version.unwrap_or(unknown))
            }
        }
    }

    /// Field lines of the stream's head.
    pub(crate) fn fields(&self, lines: &[u8]) -> Vec<u8> {
        let mut fields = lines.to_vec();
        fields.extend_from_slice(
            b"Content-Type: text/event-stream\r\nCache-Control: no-cache, no-transform\r\n\
              X-Accel-Buffering: no\r\nVary: Accept-Encoding\r\n",
        );
        let name = match self.coding {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Zstd => "zstd",
            Coding::Identity => return fields,
        };
        fields.extend_from_slice(format!("Content-Encoding: {name}\r\n").as_bytes());
        fields
    }
}

fn switch(value: Option<&str>, name: &str) -> Result<bool, String> {
    match value {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(_) => Err(format!("`{name}` is 0 or 1")),
    }
}

/// Only HTTP/1.1 frames a body by its chunks.
fn transport(request: &Request<'_>) -> Transport {
    if request.version == staunch_protocol::Version::Http11 { Transport::Chunked } else { Transport::Plain }
}

/// The coding of a stream that the peer likes best.
pub(crate) fn coding(request: &Request<'_>) -> Coding {
    let preference = Preference::read(request.values(b"accept-encoding"), &ORDER);
    let [zstd, gzip] = ORDER.map(Encoding::place);
    match preference.choose(|_| true) {
        place if place == zstd => Coding::Zstd,
        place if place == gzip => Coding::Gzip,
        _ => Coding::Identity,
    }
}
