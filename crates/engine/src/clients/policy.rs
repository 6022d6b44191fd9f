//! What clients may take, and how it is known who they are: the part of the settings that can be replaced
//! while the server runs.

use std::num::{NonZeroU32, NonZeroU64};

use super::trusted::Trusted;

const SECOND_NS: u64 = 1_000_000_000;

/// So many requests in a time: after a pause as many at once as are earned in a second, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientRate {
    /// A request is earned once in so many nanoseconds.
    pub(super) interval_ns: u64,
    /// How many can be earned in advance.
    pub(super) burst: u64,
    /// The rate as it was told: so many requests in so many seconds.
    count: u64,
    seconds: u32,
}

impl ClientRate {
    /// `count` requests in `seconds`.
    pub fn new(count: NonZeroU64, seconds: NonZeroU32) -> Self {
        let interval_ns = (u64::from(seconds.get()) * SECOND_NS / count).max(1);
        let burst = (SECOND_NS / interval_ns).max(1);
        Self { interval_ns, burst, count: count.get(), seconds: seconds.get() }
    }

    /// Fields that tell a client whose request came too soon what it may do, and when again
    /// (draft-ietf-httpapi-ratelimit-headers-10).
    pub(super) fn fields(self) -> String {
        // The largest number of a structured field (RFC 9651, section 3.3.1).
        const NUMBER_MAX: u64 = 999_999_999_999_999;
        let (count, seconds, again_s) = (self.count.min(NUMBER_MAX), self.seconds, self.retry_after_s());
        format!(
            "Retry-After: {again_s}\r\nRateLimit-Policy: \"client_rate\";q={count};w={seconds}\r\n\
             RateLimit: \"client_rate\";r=0;t={again_s}\r\n"
        )
    }

    /// After how many seconds a client has surely earned another request.
    pub(super) fn retry_after_s(self) -> u64 {
        self.interval_ns.div_ceil(SECOND_NS)
    }
}

/// The rules for clients. By default there are none, and nobody asks who they are.
#[derive(Debug, Clone)]
pub struct ClientPolicy {
    /// Learn where connections come from even if no rule here needs it, for [`crate::Answer::peer`].
    pub addresses: bool,
    /// Connections a client may have at a time. More are answered 429 and closed. Those of trusted proxies
    /// are not counted.
    pub connections_max: Option<NonZeroU32>,
    /// How often a client may ask. What comes too soon is answered 429.
    pub rate: Option<ClientRate>,
    /// How many leading bits of an IPv6 address make a client: 64, since a subscriber has at least that.
    pub prefix_ipv6: u8,
    /// Only count what would be refused.
    pub dry_run: bool,
    /// Every connection begins with a header of the PROXY protocol (from a trusted proxy, if any are named),
    /// or is closed.
    pub proxy_protocol: bool,
    /// Proxies whose X-Forwarded-For is believed, and who may send PROXY headers. If there are none,
    /// everybody may send a PROXY header where one is expected, and no X-Forwarded-For is believed.
    pub trusted: Trusted,
}

impl Default for ClientPolicy {
    fn default() -> Self {
        Self {
            addresses: false,
            connections_max: None,
            rate: None,
            prefix_ipv6: 64,
            dry_run: false,
            proxy_protocol: false,
            trusted: Trusted::default(),
        }
    }
}

impl ClientPolicy {
    /// Whether anything here needs to know where connections come from.
    pub(crate) fn needs_addresses(&self) -> bool {
        self.addresses || self.proxy_protocol || self.connections_max.is_some() || self.rate.is_some()
    }
}
