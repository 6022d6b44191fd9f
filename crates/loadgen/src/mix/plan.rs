//! Which requests are sent, and how often each.
//!
//! It must never open or draw anything: it is data, made by the command line or by a file.

use crate::check::Check;
use crate::request::RequestPlan;
use crate::url::Url;

/// Requests and how they are chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct MixPlan {
    /// What the field Host says.
    pub authority: String,
    /// The requests, at least one.
    pub entries: Vec<MixEntry>,
    /// How the next one is chosen.
    pub choice: Choice,
    /// Whether connections stay open; if not, requests say `Connection: close`.
    pub keep_alive: bool,
}

/// A request of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct MixEntry {
    /// How often it is chosen, beside the others; above 0. Has a meaning in [`Choice::Weighted`] only.
    pub weight: f64,
    /// What is sent.
    pub request: RequestPlan,
    /// What the answer has to be like.
    pub check: Check,
}

/// How the next request is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// At random, by weight.
    Weighted,
    /// In the order of the list, from the first again after the last; each thread on its own.
    InOrder,
    /// At random; the one in place k is chosen in proportion to 1/k^exponent. 0 is all alike.
    Zipf {
        /// How much the first are preferred; for pages of the Web, 0.6 to 1 is usual.
        exponent: f64,
    },
}

impl MixEntry {
    /// GET of a path, with weight 1; any answer from 200 to 399 is right.
    pub fn get(target: impl Into<String>) -> Self {
        Self { weight: 1.0, request: RequestPlan::get(target), check: Check::default() }
    }
}

impl MixPlan {
    /// GET of one URL, connections kept open.
    pub fn single(url: &Url) -> Self {
        Self::of(url, vec![MixEntry::get(&url.target)], Choice::InOrder)
    }

    /// These requests to the server of `url`, connections kept open.
    pub fn of(url: &Url, entries: Vec<MixEntry>, choice: Choice) -> Self {
        Self { authority: url.authority(), entries, choice, keep_alive: true }
    }
}
