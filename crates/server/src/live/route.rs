//! Which paths are those of live data.
//!
//! It owns the table. It must cost a request for a file a few comparisons only.

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint<'a> {
    /// `/events`: a stream of events.
    Events,
    /// `/publish`
    Publish,
    /// `/live/NAME`: the value of a topic, as often as somebody asks. The name is not decoded.
    Value(&'a [u8]),
    /// `/topics/NAME`: a topic, to be changed. The name is not decoded.
    Topic(&'a [u8]),
}

impl<'a> Endpoint<'a> {
    /// The endpoint of a path as it was sent.
    #[inline]
    pub(crate) fn of(path: &'a [u8]) -> Option<Self> {
        match path.get(1)? {
            b'e' if path == b"/events" => Some(Self::Events),
            b'p' if path == b"/publish" => Some(Self::Publish),
            b'l' => path.strip_prefix(b"/live/").map(Self::Value),
            b't' => path.strip_prefix(b"/topics/").map(Self::Topic),
            _ => None,
        }
    }

    /// What the Allow field says.
    pub(crate) fn allow(self) -> &'static str {
        match self {
            Self::Events | Self::Value(_) => "GET, HEAD, OPTIONS",
            Self::Publish => "POST, OPTIONS",
            Self::Topic(_) => "PUT, PATCH, DELETE, OPTIONS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_live_data_and_of_files() {
        assert_eq!(Endpoint::of(b"/events"), Some(Endpoint::Events));
        assert_eq!(Endpoint::of(b"/publish"), Some(Endpoint::Publish));
        assert_eq!(Endpoint::of(b"/live/a/b"), Some(Endpoint::Value(b"a/b")));
        assert_eq!(Endpoint::of(b"/topics/"), Some(Endpoint::Topic(b"")));
        for path in [&b"/"[..], b"*", b"/event", b"/events/", b"/live", b"/publish.html", b"/a"] {
            assert_eq!(Endpoint::of(path), None, "{}", path.escape_ascii());
        }
    }
}
