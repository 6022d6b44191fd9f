//! Status codes, each with its ready first lines.
//!
//! It owns the table of codes. It must never know why a status is sent.

/// A status code (RFC 9110, section 15): 101, 103, or any from 200 to 599. Its status line is always ready.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u16);

/// Codes end below this one.
const CODES_END: usize = 600;

/// What a response begins with whose code has no constant: its three digits stand at the place below, and its
/// reason phrase is empty (RFC 9112, section 4).
const UNNAMED_OPENING: &[u8; 38] = b"HTTP/1.1 000 \r\nServer: staunch\r\nDate: ";
const DIGITS_AT: usize = b"HTTP/1.1 ".len();

static UNNAMED: [[u8; UNNAMED_OPENING.len()]; CODES_END] = {
    let mut openings = [*UNNAMED_OPENING; CODES_END];
    let mut code = 0;
    while code < CODES_END {
        let digits = [code / 100, code / 10 % 10, code % 10];
        let mut at = 0;
        while at < digits.len() {
            openings[code][DIGITS_AT + at] = b'0' + digits[at] as u8;
            at += 1;
        }
        code += 1;
    }
    openings
};

macro_rules! statuses {
    ($($name:ident $code:literal $reason:literal,)*) => {
        impl Status {
            $(
                #[doc = concat!($code, " ", $reason)]
                pub const $name: Self = Self($code);
            )*

            /// The reason phrase; empty where the code has no constant.
            pub fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }
        }

        /// What a response begins with, by its code.
        static OPENINGS: [&[u8]; CODES_END] = {
            let mut openings: [&[u8]; CODES_END] = [b""; CODES_END];
            let mut code = 0;
            while code < CODES_END {
                openings[code] = &UNNAMED[code];
                code += 1;
            }
            $(
                openings[$code] =
                    concat!("HTTP/1.1 ", $code, " ", $reason, "\r\nServer: staunch\r\nDate: ").as_bytes();
            )*
            openings
        };
    };
}

statuses! {
    SWITCHING_PROTOCOLS 101 "Switching Protocols",
    EARLY_HINTS 103 "Early Hints",
    OK 200 "OK",
    CREATED 201 "Created",
    ACCEPTED 202 "Accepted",
    NON_AUTHORITATIVE_INFORMATION 203 "Non-Authoritative Information",
    NO_CONTENT 204 "No Content",
    RESET_CONTENT 205 "Reset Content",
    PARTIAL_CONTENT 206 "Partial Content",
    MULTI_STATUS 207 "Multi-Status",
    ALREADY_REPORTED 208 "Already Reported",
    IM_USED 226 "IM Used",
    MULTIPLE_CHOICES 300 "Multiple Choices",
    MOVED_PERMANENTLY 301 "Moved Permanently",
    FOUND 302 "Found",
    SEE_OTHER 303 "See Other",
    NOT_MODIFIED 304 "Not Modified",
    USE_PROXY 305 "Use Proxy",
    TEMPORARY_REDIRECT 307 "Temporary Redirect",
    PERMANENT_REDIRECT 308 "Permanent Redirect",
    BAD_REQUEST 400 "Bad Request",
    UNAUTHORIZED 401 "Unauthorized",
    PAYMENT_REQUIRED 402 "Payment Required",
    FORBIDDEN 403 "Forbidden",
    NOT_FOUND 404 "Not Found",
    METHOD_NOT_ALLOWED 405 "Method Not Allowed",
    NOT_ACCEPTABLE 406 "Not Acceptable",
    PROXY_AUTHENTICATION_REQUIRED 407 "Proxy Authentication Required",
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
    LOCKED 423 "Locked",
    FAILED_DEPENDENCY 424 "Failed Dependency",
    TOO_EARLY 425 "Too Early",
    UPGRADE_REQUIRED 426 "Upgrade Required",
    PRECONDITION_REQUIRED 428 "Precondition Required",
    TOO_MANY_REQUESTS 429 "Too Many Requests",
    REQUEST_HEADER_FIELDS_TOO_LARGE 431 "Request Header Fields Too Large",
    UNAVAILABLE_FOR_LEGAL_REASONS 451 "Unavailable For Legal Reasons",
    INTERNAL_SERVER_ERROR 500 "Internal Server Error",
    NOT_IMPLEMENTED 501 "Not Implemented",
    BAD_GATEWAY 502 "Bad Gateway",
    SERVICE_UNAVAILABLE 503 "Service Unavailable",
    GATEWAY_TIMEOUT 504 "Gateway Timeout",
    HTTP_VERSION_NOT_SUPPORTED 505 "HTTP Version Not Supported",
    VARIANT_ALSO_NEGOTIATES 506 "Variant Also Negotiates",
    INSUFFICIENT_STORAGE 507 "Insufficient Storage",
    LOOP_DETECTED 508 "Loop Detected",
    NOT_EXTENDED 510 "Not Extended",
    NETWORK_AUTHENTICATION_REQUIRED 511 "Network Authentication Required",
}

impl Status {
    /// The status with this code, if it can be sent: 101, 103, or from 200 to 599.
    pub fn from_code(code: u16) -> Option<Self> {
        matches!(code, 101 | 103 | 200..=599).then_some(Self(code))
    }

    /// The three digits.
    pub fn code(self) -> u16 {
        self.0
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
        OPENINGS[usize::from(self.0)]
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
    fn every_code_that_is_sent_has_its_opening() {
        for code in (0..u16::MAX).filter(|code| !matches!(code, 101 | 103 | 200..=599)) {
            assert_eq!(Status::from_code(code), None);
        }
        for code in [101, 103].into_iter().chain(200..=599) {
            let status = Status::from_code(code).unwrap();
            assert_eq!(status.code(), code);
            let opening = format!("HTTP/1.1 {status}\r\nServer: staunch\r\nDate: ");
            assert_eq!(status.opening(), opening.as_bytes());
        }
    }

    #[test]
    fn names_and_those_without_one() {
        assert_eq!(Status::from_code(404), Some(Status::NOT_FOUND));
        assert_eq!(Status::LOOP_DETECTED.to_string(), "508 Loop Detected");
        assert_eq!(Status::from_code(418).map(Status::reason), Some(""));
        assert_eq!(Status::from_code(520).map(Status::opening), Some(&UNNAMED[520][..]));
    }
}
