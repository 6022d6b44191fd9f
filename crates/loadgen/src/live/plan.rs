//! What a run with readers is to do: who reads what in which way, and what is published meanwhile.
//!
//! It must never open anything: it is data, made by the command line or by a benchmark.

use std::net::IpAddr;
use std::time::Duration;

use staunch_netio::Address;

use crate::fault::Fault;
use crate::plan::IoChoice;
use crate::probe::ProbePlan;
use crate::schedule::{Arrivals, Profile};
use crate::url::Url;

/// What stands for a topic's name in targets and bodies.
pub const TOPIC_VARIABLE: &str = "{{topic}}";

/// What stands for the value in the body of a publication.
pub const VALUE_VARIABLE: &str = "{{value}}";

/// A whole run.
#[derive(Debug, Clone)]
pub struct LivePlan {
    /// The command line, as it can be typed again; for the reports.
    pub command: String,
    /// Where readers go, as it was given; for the reports.
    pub target: String,
    /// Where readers connect to.
    pub address: Address,
    /// Addresses to connect from, in turn; empty: the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// A thread of readers per element; `Some` pins it to that processor.
    pub threads: Vec<Option<usize>>,
    /// Which way to the network.
    pub io: IoChoice,
    /// From which all randomness comes.
    pub seed: u64,
    /// Names of the topics. The reader and the update of a number go to the topic of that number, modulo.
    pub topics: Vec<String>,
    /// Readers: how many, and how they read.
    pub readers: ReaderPlan,
    /// What is published; `None`: the run only listens.
    pub publishing: Option<PublishPlan>,
    /// How long is listened, or updates are published at most; `None`: until stopped.
    pub duration: Option<Duration>,
    /// Readers that are not there after so long are not waited for.
    pub join_within: Duration,
    /// The run is over when nothing came for so long after the last update was published.
    pub settle: Duration,
    /// Samples the server's side, on the same machine.
    pub probe: Option<ProbePlan>,
}

/// How readers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveWay {
    /// Server-sent events.
    Events,
    /// Messages over a WebSocket.
    WebSocket,
}

impl LiveWay {
    /// The name that reports give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "server-sent events",
            Self::WebSocket => "WebSocket",
        }
    }
}

/// Number of the readers, their protocol and their behaviour.
#[derive(Debug, Clone)]
pub struct ReaderPlan {
    /// How many.
    pub count: u32,
    /// How they read.
    pub way: LiveWay,
    /// What they ask for, by topic: host, path and query.
    pub urls: Vec<Url>,
    /// Further fields of their requests.
    pub fields: Vec<(String, String)>,
    /// They begin at most so many a second.
    pub open_per_s: Option<f64>,
    /// So many of them, the first ones, stop reading once they are there.
    pub stalled: u32,
    /// So many a second are cut off, and come back.
    pub cut_per_s: Option<f64>,
    /// Readers that come back tell the last id they have had.
    pub resume: bool,
    /// After how long a reader comes back that was cut off; `None`: as the stream says, else after a second.
    pub return_after: Option<Duration>,
    /// An update may be skipped when a later one is there: what is skipped is not lost.
    pub may_skip: bool,
    /// Messages that are sent when a WebSocket is open.
    pub messages: Vec<String>,
}

/// What is published.
#[derive(Debug, Clone)]
pub struct PublishPlan {
    /// Where publications go, by topic.
    pub urls: Vec<Url>,
    /// Where that is.
    pub address: Address,
    /// The method, such as POST.
    pub method: String,
    /// Further fields, such as Content-Type and Authorization.
    pub fields: Vec<(String, String)>,
    /// The body, with the variables of topic and value.
    pub body: String,
    /// How many a second, of all topics together.
    pub profile: Profile,
    /// How they are spread.
    pub arrivals: Arrivals,
    /// How many at most.
    pub updates: Option<u64>,
    /// Length of a value in bytes.
    pub value_bytes: usize,
    /// Connections that publish. Updates of one topic go over one of them, in their order.
    pub connections: u16,
}

impl LivePlan {
    /// Whether it can be carried out.
    ///
    /// # Errors
    /// Names what does not fit together.
    pub fn check(&self) -> Result<(), Fault> {
        let fault = |sentence: &str| Err(Fault::new(sentence));
        if self.topics.is_empty() || self.topics.len() != self.readers.urls.len() {
            return fault("each topic has one URL for its readers, and there is at least one");
        }
        if self.threads.is_empty() {
            return fault("there has to be a thread for the readers");
        }
        if self.readers.stalled > self.readers.count {
            return fault("more readers are to stop reading than there are");
        }
        let Some(publishing) = &self.publishing else { return Ok(()) };
        if publishing.urls.len() != self.topics.len() {
            return fault("each topic has one URL for publications");
        }
        if !publishing.body.contains(VALUE_VARIABLE) {
            return Err(Fault::new(format!("the body of a publication has to hold {VALUE_VARIABLE}")));
        }
        if publishing.connections == 0 {
            return fault("there has to be a connection for publications");
        }
        if self.duration.is_none() && publishing.updates.is_none() {
            return fault("it has to be said how many updates are published, or for how long");
        }
        Ok(())
    }
}
