//! The rule of safety: when a difference may be sent at all (RFC 9842, sections 8 and 9.3).
//!
//! This module owns the rule. It must never look up the facts that it judges: they are arguments.
//!
//! The rule guards against this: the length of a difference tells how alike two texts are. So nobody may
//! get one who could not read the answer itself, nobody may get one of an answer that depends on who asks,
//! and nobody in between may see its length, or give a dictionary of their own.

/// Facts known of a request and of the answer that it would get.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Whether the request came by TLS, or to a name of this machine ([`is_local_host`]).
    pub is_secure: bool,
    /// Whether the answer depends on who asks: authorised, told apart by a cookie or by a client certificate.
    pub depends_on_client: bool,
    /// Value of `Sec-Fetch-Site`. A field that stands twice is given as both values, joined, which is no
    /// known one.
    pub site: Option<&'a [u8]>,
    /// Value of `Sec-Fetch-Mode`, given as `site` is.
    pub mode: Option<&'a [u8]>,
    /// Value of `Origin`.
    pub origin: Option<&'a [u8]>,
    /// The value of `Access-Control-Allow-Origin` that the answer carries.
    pub allow_origin: Option<&'a [u8]>,
}

impl Facts<'_> {
    /// Whether a difference may be the answer.
    pub fn allow_difference(&self) -> bool {
        self.is_secure && !self.depends_on_client && self.can_be_read()
    }

    /// Whether the page that asks may read the answer: its own origin, a navigation, or CORS allows it.
    fn can_be_read(&self) -> bool {
        match (self.site, self.mode) {
            (None | Some(b"same-origin" | b"none"), _) | (_, None | Some(b"navigate" | b"same-origin")) => {
                true
            }
            (_, Some(b"cors")) => self.is_shared(),
            _ => false,
        }
    }

    fn is_shared(&self) -> bool {
        match (self.origin, self.allow_origin) {
            (Some(_), Some(b"*")) => true,
            (Some(origin), Some(allowed)) => origin == allowed,
            _ => false,
        }
    }
}

/// Whether a host, as `Host` or `:authority` has it with or without a port, is this machine by name: a
/// browser takes such an origin for a secure one without TLS.
pub fn is_local_host(host: &[u8]) -> bool {
    let name = match host {
        [b'[', ..] => host.split_inclusive(|&byte| byte == b']').next().unwrap_or(host),
        _ => host.split(|&byte| byte == b':').next().unwrap_or(host),
    };
    let is_named = |suffix: &[u8]| {
        name.len() >= suffix.len() && name[name.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
    };
    name == b"[::1]"
        || (name.len() == 9 && is_named(b"localhost"))
        || is_named(b".localhost")
        || is_loopback(name)
}

/// Whether a name is an address of 127.0.0.0/8, written in four numbers.
fn is_loopback(name: &[u8]) -> bool {
    std::str::from_utf8(name)
        .is_ok_and(|name| name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: Facts<'_> = Facts {
        is_secure: true,
        depends_on_client: false,
        site: None,
        mode: None,
        origin: None,
        allow_origin: None,
    };

    #[test]
    fn table_of_who_may_read() {
        let page: Option<&[u8]> = Some(b"https://page.example");
        let other: Option<&[u8]> = Some(b"https://other.example");
        let any: Option<&[u8]> = Some(b"*");
        type Row<'a> = (&'a str, &'a str, Option<&'a [u8]>, Option<&'a [u8]>, bool);
        let table: [Row<'_>; 19] = [
            ("", "", None, None, true),
            ("", "no-cors", None, None, true),
            ("same-origin", "cors", None, None, true),
            ("same-origin", "no-cors", None, None, true),
            ("none", "navigate", None, None, true),
            ("cross-site", "navigate", None, None, true),
            ("same-site", "same-origin", None, None, true),
            ("cross-site", "", None, None, true),
            ("cross-site", "no-cors", None, None, false),
            ("same-site", "no-cors", None, None, false),
            ("cross-site", "no-cors", page, any, false),
            ("cross-site", "cors", None, None, false),
            ("cross-site", "cors", page, None, false),
            ("cross-site", "cors", None, any, false),
            ("cross-site", "cors", page, any, true),
            ("cross-site", "cors", page, page, true),
            ("cross-site", "cors", page, other, false),
            ("cross-site", "websocket", page, any, false),
            ("same-origin, cross-site", "no-cors", None, None, false),
        ];
        for (site, mode, origin, allow_origin, expected) in table {
            let given = |value: &'static str| (!value.is_empty()).then_some(value.as_bytes());
            let facts = Facts { site: given(site), mode: given(mode), origin, allow_origin, ..PUBLIC };
            assert_eq!(facts.allow_difference(), expected, "{facts:?}");
            assert!(!Facts { is_secure: false, ..facts }.allow_difference(), "{facts:?}");
            assert!(!Facts { depends_on_client: true, ..facts }.allow_difference(), "{facts:?}");
        }
    }

    #[test]
    fn names_of_this_machine() {
        for host in
            ["localhost", "LOCALHOST:8080", "a.localhost", "127.0.0.1", "127.9.8.7:80", "[::1]", "[::1]:80"]
        {
            assert!(is_local_host(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            "xlocalhost",
            "localhost.example",
            "example",
            "128.0.0.1",
            "127.0.0.1.example",
            "127.1",
            "[::2]",
            "[::1",
            "::1",
            "\u{ff}",
        ] {
            assert!(!is_local_host(host.as_bytes()), "{host}");
        }
    }
}
