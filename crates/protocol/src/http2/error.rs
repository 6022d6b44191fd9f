//! Error codes of HTTP/2, and what is wrong where the connection ends.
//!
//! It must never repeat bytes of the peer.

use super::hpack::HpackFault;

/// An error code (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

macro_rules! codes {
    ($($name:ident $code:literal $words:literal,)*) => {
        impl ErrorCode {
            $(
                #[doc = $words]
                pub const $name: Self = Self($code);
            )*

            /// Its name in the registry.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($code => stringify!($name),)*
                    _ => "an unknown code",
                }
            }
        }
    };
}

codes! {
    NO_ERROR 0x0 "Nothing is wrong.",
    PROTOCOL_ERROR 0x1 "The peer broke a rule that has no code of its own.",
    INTERNAL_ERROR 0x2 "The sender of the code failed.",
    FLOW_CONTROL_ERROR 0x3 "More was sent than the window allowed, or a window grew too large.",
    SETTINGS_TIMEOUT 0x4 "Settings were not acknowledged.",
    STREAM_CLOSED 0x5 "A frame came on a stream that is over.",
    FRAME_SIZE_ERROR 0x6 "A frame has a length that it must not have.",
    REFUSED_STREAM 0x7 "The request was not looked at and may be sent again.",
    CANCEL 0x8 "The stream is not wanted any more.",
    COMPRESSION_ERROR 0x9 "The tables of fields are not the same any more.",
    CONNECT_ERROR 0xa "The connection behind a CONNECT is gone.",
    ENHANCE_YOUR_CALM 0xb "The peer does too much that is odd.",
    INADEQUATE_SECURITY 0xc "The connection below is not secure enough.",
    HTTP_1_1_REQUIRED 0xd "HTTP/1.1 is to be spoken instead.",
}

/// Why a connection ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionFault {
    /// The code that the peer is told.
    pub code: ErrorCode,
    /// What is wrong, as a sentence without its full stop.
    pub reason: &'static str,
}

impl ConnectionFault {
    pub(super) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::PROTOCOL_ERROR, reason)
    }

    pub(super) const fn size(reason: &'static str) -> Self {
        Self::new(ErrorCode::FRAME_SIZE_ERROR, reason)
    }
}

impl From<HpackFault> for ConnectionFault {
    fn from(fault: HpackFault) -> Self {
        let code = match fault {
            HpackFault::TooLong | HpackFault::TooMuchHeld => ErrorCode::ENHANCE_YOUR_CALM,
            _ => ErrorCode::COMPRESSION_ERROR,
        };
        Self::new(code, fault.reason())
    }
}

impl std::fmt::Display for ConnectionFault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.reason, self.code.name())
    }
}

impl std::error::Error for ConnectionFault {}
