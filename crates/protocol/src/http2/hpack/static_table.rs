//! The static table of HPACK (RFC 7541, appendix A).
//!
//! It must never change: both ends have it.

use crate::http2::field::{FieldLine, Meaning};

/// An entry.
pub(super) struct StaticField {
    line: &'static str,
    name: &'static str,
    /// What the name says, whatever the value.
    pub(super) named: Meaning,
}

macro_rules! table {
    ($($named:ident $name:literal $value:literal,)*) => {
        /// The entries, the first of which has the index 1.
        pub(super) static STATIC: [StaticField; 61] = [$(StaticField {
            line: concat!($name, ": ", $value, "\r\n"),
            name: $name,
            named: Meaning::$named,
        },)*];
    };
}

table! {
    Authority ":authority" "",
    Method ":method" "GET",
    Method ":method" "POST",
    Path ":path" "/",
    Path ":path" "/index.html",
    Scheme ":scheme" "http",
    Scheme ":scheme" "https",
    Malformed ":status" "200",
    Malformed ":status" "204",
    Malformed ":status" "206",
    Malformed ":status" "304",
    Malformed ":status" "400",
    Malformed ":status" "404",
    Malformed ":status" "500",
    Plain "accept-charset" "",
    Plain "accept-encoding" "gzip, deflate",
    Plain "accept-language" "",
    Plain "accept-ranges" "",
    Plain "accept" "",
    Plain "access-control-allow-origin" "",
    Plain "age" "",
    Plain "allow" "",
    Plain "authorization" "",
    Plain "cache-control" "",
    Plain "content-disposition" "",
    Plain "content-encoding" "",
    Plain "content-language" "",
    Length "content-length" "",
    Plain "content-location" "",
    Plain "content-range" "",
    Plain "content-type" "",
    Cookie "cookie" "",
    Plain "date" "",
    Plain "etag" "",
    Expect "expect" "",
    Plain "expires" "",
    Plain "from" "",
    Host "host" "",
    Plain "if-match" "",
    Plain "if-modified-since" "",
    Plain "if-none-match" "",
    Plain "if-range" "",
    Plain "if-unmodified-since" "",
    Plain "last-modified" "",
    Plain "link" "",
    Plain "location" "",
    Plain "max-forwards" "",
    Plain "proxy-authenticate" "",
    Plain "proxy-authorization" "",
    Plain "range" "",
    Plain "referer" "",
    Plain "refresh" "",
    Plain "retry-after" "",
    Plain "server" "",
    Plain "set-cookie" "",
    Plain "strict-transport-security" "",
    Malformed "transfer-encoding" "",
    Plain "user-agent" "",
    Plain "vary" "",
    Plain "via" "",
    Plain "www-authenticate" "",
}

impl StaticField {
    /// The field. None of the table's own values is a bad one, so what the name says holds, but for an empty
    /// value where one must be.
    #[inline]
    pub(super) fn field(&self) -> FieldLine<'static> {
        FieldLine { line: self.line.as_bytes(), name_bytes: self.name.len(), meaning: self.named }
    }
}

/// The index of a field, and of the first with its name; 0 for none.
pub(super) fn find(name: &[u8], value: &[u8]) -> (usize, usize) {
    let mut of_name = 0;
    for (place, entry) in STATIC.iter().enumerate() {
        if entry.name.as_bytes() == name {
            if entry.field().value() == value {
                return (place + 1, place + 1);
            }
            if of_name == 0 {
                of_name = place + 1;
            }
        }
    }
    (0, of_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::field::judge_name;

    #[test]
    fn what_stands_of_a_name_is_what_would_be_judged() {
        for entry in &STATIC {
            assert_eq!(entry.named, judge_name(entry.name.as_bytes()), "{}", entry.name);
        }
        assert_eq!(find(b":method", b"POST"), (3, 3));
        assert_eq!(find(b":status", b"301"), (0, 8));
        assert_eq!(find(b"www-authenticate", b""), (61, 61));
        assert_eq!(find(b"x", b""), (0, 0));
    }
}
