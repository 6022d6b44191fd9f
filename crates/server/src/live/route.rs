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
    /// `/list=a,b`: lines of quotes. The list as it was sent.
    List(&'a [u8]),
    /// `/quotes?symbols=a,b`: the same as JSON.
    Quotes,
    /// `/.well-known/mercure`: publishing and reading as Mercure has it.
    Mercure,
    /// `/ws`, `/connection/websocket`, `/ws/echo`: a WebSocket.
    Socket(SocketKind),
    /// `/live.js`: a client for pages.
    Script,
}

/// What a WebSocket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketKind {
    /// Commands, or what the URL says.
    Own,
    /// Commands of Centrifugo's clients.
    Centrifugo,
    /// For tests: what is sent comes back.
    Echo,
}

impl<'a> Endpoint<'a> {
    /// The endpoint of a path as it was sent.
    #[inline]
    pub(crate) fn of(path: &'a [u8]) -> Option<Self> {
        match path.get(1)? {
            b'e' if path == b"/events" => Some(Self::Events),
            b'p' if path == b"/publish" => Some(Self::Publish),
            b'w' if path == b"/ws" => Some(Self::Socket(SocketKind::Own)),
            b'w' if path == b"/ws/echo" => Some(Self::Socket(SocketKind::Echo)),
            b'c' if path == b"/connection/websocket" => Some(Self::Socket(SocketKind::Centrifugo)),
            b'l' if path == b"/live.js" => Some(Self::Script),
            b'l' => match path.strip_prefix(b"/live/") {
                Some(name) => Some(Self::Value(name)),
                None => path.strip_prefix(b"/list=").map(Self::List),
            },
            b'q' if path == b"/quotes" => Some(Self::Quotes),
            b'.' if path == b"/.well-known/mercure" => Some(Self::Mercure),
            b't' => path.strip_prefix(b"/topics/").map(Self::Topic),
            _ => None,
        }
    }

    /// What the Allow field says.
    pub(crate) fn allow(self) -> &'static str {
        match self {
            Self::Events | Self::Value(_) | Self::List(_) | Self::Quotes | Self::Script => {
                "GET, HEAD, OPTIONS"
            }
            Self::Socket(_) => "GET, OPTIONS",
            Self::Publish => "POST, OPTIONS",
            Self::Topic(_) => "PUT, PATCH, DELETE, OPTIONS",
            Self::Mercure => "GET, HEAD, POST, OPTIONS",
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
        assert_eq!(Endpoint::of(b"/list=a,b"), Some(Endpoint::List(b"a,b")));
        assert_eq!(Endpoint::of(b"/quotes"), Some(Endpoint::Quotes));
        assert_eq!(Endpoint::of(b"/topics/"), Some(Endpoint::Topic(b"")));
        assert_eq!(Endpoint::of(b"/.well-known/mercure"), Some(Endpoint::Mercure));
        assert_eq!(Endpoint::of(b"/ws"), Some(Endpoint::Socket(SocketKind::Own)));
        assert_eq!(Endpoint::of(b"/ws/echo"), Some(Endpoint::Socket(SocketKind::Echo)));
        assert_eq!(Endpoint::of(b"/connection/websocket"), Some(Endpoint::Socket(SocketKind::Centrifugo)));
        assert_eq!(Endpoint::of(b"/live.js"), Some(Endpoint::Script));
        let files = [
            "/",
            "*",
            "/.well-known/x",
            "/event",
            "/events/",
            "/live",
            "/live.jsx",
            "/publish.html",
            "/a",
            "/wsx",
            "/connection/",
        ];
        for path in files {
            assert_eq!(Endpoint::of(path.as_bytes()), None, "{path}");
        }
    }
}
