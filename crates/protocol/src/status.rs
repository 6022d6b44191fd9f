//! Status codes this server sends, each with its ready first lines.
//!
//! It owns the table of codes. It must never know why a status is sent.

/// A status code (RFC 9110, section 15): one of the constants below, so that its status line is always ready.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u8);

struct Entry {
    code: u16,
    reason: &'static str,
    opening: &'static str,
}

macro_rules! statuses {
    ($($name:ident $code:literal $reason:literal,)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($name,)* }

        impl Status {
            $(
                #[doc = concat!($code, " ", $reason)]
                pub const $name: Self = Self(Index::$name as u8);
            )*

            /// Every status, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }

        static ENTRIES: &[Entry] = &[$(Entry {
            code: $code,
            reason: $reason,
            opening: concat!("HTTP/1.1 ", $code, " ", $reason, "\r\nServer: staunch\r\nDate: "),
        },)*];
    };
}

statuses! {
    SWITCHING_PROTOCOLS 101 "Switching Protocols",
    EARLY_HINTS 103 "Early Hints",
    OK 200 "OK",
    ACCEPTED 202 "Accepted",
    NO_CONTENT 204 "No Content",
    PARTIAL_CONTENT 206 "Partial Content",
    MOVED_PERMANENTLY 301 "Moved Permanently",
    FOUND 302 "Found",
    SEE_OTHER 303 "See Other",
    NOT_MODIFIED 304 "Not Modified",
    TEMPORARY_REDIRECT 307 "Temporary Redirect",
    PERMANENT_REDIRECT 308 "Permanent Redirect",
    BAD_REQUEST 400 "Bad Request",
    UNAUTHORIZED 401 "Unauthorized",
    FORBIDDEN 403 "Forbidden",
    NOT_FOUND 404 "Not Found",
    METHOD_NOT_ALLOWED 405 "Method Not Allowed",
    NOT_ACCEPTABLE 406 "Not Acceptable",
    REQUEST_TIMEOUT 408 "Request Timeout",
    CONFLICT 409 "Conflict",
    GONE 410 "Gone",
    LENGTH_REQUIRED 411 "Length Required",
    PRECONDITION_FAILED 412 "Precondition Failed",
    CONTENT_TOO_LARGE 413 "Content Too Large",
    URI_TOO_LONG 414 "URI Too Long",
    UNSUPPORTED_MEDIA_TYPE 415 "Unsupported Media Type",
    RANGE_NOT_SATISFIABLE 416 "Range Not Satisfiable",
    EXPECTATION_FAILED 417 "Expectation Failed",
    MISDIRECTED_REQUEST 421 "Misdirected Request",
    UNPROCESSABLE_CONTENT 422 "Unprocessable Content",
    UPGRADE_REQUIRED 426 "Upgrade Required",
    TOO_MANY_REQUESTS 429 "Too Many Requests",
    REQUEST_HEADER_FIELDS_TOO_LARGE 431 "Request Header Fields Too Large",
    INTERNAL_SERVER_ERROR 500 "Internal Server Error",
    NOT_IMPLEMENTED 501 "Not Implemented",
    BAD_GATEWAY 502 "Bad Gateway",
    SERVICE_UNAVAILABLE 503 "Service Unavailable",
    GATEWAY_TIMEOUT 504 "Gateway Timeout",
    HTTP_VERSION_NOT_SUPPORTED 505 "HTTP Version Not Supported",
}

impl Status {
    /// The status with this code, if it is one this server sends.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.code() == code)
    }

    /// The three digits.
    pub fn code(self) -> u16 {
        self.entry().code
    }

    /// The reason phrase.
    pub fn reason(self) -> &'static str {
        self.entry().reason
    }

    /// Whether a final response to the same request follows (RFC 9110, section 15.2).
    pub fn is_interim(self) -> bool {
        self == Self::EARLY_HINTS
    }

    /// Whether a final response with this status never has content (RFC 9110, sections 15.3.5 and 15.4.5).
    #[inline]
    pub fn has_no_content(self) -> bool {
        self == Self::NO_CONTENT || self == Self::NOT_MODIFIED
    }

    /// Status line, Server field and the name of the Date field: what every response begins with.
    #[inline]
    pub(crate) fn opening(self) -> &'static [u8] {
        self.entry().opening.as_bytes()
    }

    #[inline]
    fn entry(self) -> &'static Entry {
        &ENTRIES[usize::from(self.0)]
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.code(), self.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_find_themselves() {
        assert!(Status::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
        for status in Status::ALL {
            assert_eq!(Status::from_code(status.code()), Some(*status));
            let line = format!("HTTP/1.1 {status}\r\n");
            assert!(status.opening().starts_with(line.as_bytes()));
        }
        assert_eq!(Status::from_code(100), None);
    }
}
