//! Cross-origin resource sharing: what a script of another origin is told (the Fetch standard, section 3.3).
//!
//! It must never grant what was not named: an origin is compared byte by byte, and none is sent back that is
//! not on the list.

use std::collections::HashSet;
use std::fmt::Write;

use crate::config::Cors;
use crate::rules::line::check_value;

/// A rule ready to be applied.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// `None`: everybody.
    origins: Option<HashSet<Box<[u8]>>>,
    credentials: bool,
    /// The lines that only a preflight gets.
    preflight: Box<str>,
}

impl Sharing {
    /// Reads a rule.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn new(cors: &Cors) -> Result<Self, String> {
        let everybody = cors.origins == ["*"];
        if cors.origins.is_empty() {
            return Err("cors: origins is empty: name some, or \"*\" for all".to_owned());
        }
        if cors.credentials && everybody {
            return Err("cors: credentials need origins by name, not \"*\" (browsers refuse both)".to_owned());
        }
        if cors.credentials && cors.headers.iter().any(|name| name == "*") {
            return Err("cors: with credentials the headers must be named, \"*\" has no meaning".to_owned());
        }
        if let Some(wrong) = cors.origins.iter().find(|origin| !everybody && !is_origin(origin)) {
            return Err(format!("cors: {wrong:?} is no origin (write https://host or https://host:port)"));
        }
        for text in cors.methods.iter().chain(&cors.headers) {
            check_value("cors", text)?;
        }
        let origins = cors.origins.iter().map(|origin| origin.as_bytes().into()).collect();
        Ok(Self {
            origins: (!everybody).then_some(origins),
            credentials: cors.credentials,
            preflight: preflight(cors).into(),
        })
    }

    /// The lines of every response, whoever asks.
    pub(crate) fn lines_for_all(&self) -> &'static str {
        match self.origins {
            None => "Access-Control-Allow-Origin: *\r\n",
            Some(_) => "Vary: Origin\r\n",
        }
    }

    /// The value of Access-Control-Allow-Origin for a request from this origin, if it is granted anything.
    pub(crate) fn allowed<'a>(&self, origin: &'a [u8]) -> Option<&'a [u8]> {
        match &self.origins {
            None => Some(b"*"),
            Some(origins) => origins.contains(origin).then_some(origin),
        }
    }

    /// Appends the lines for a request from this origin. False if it is granted nothing.
    pub(crate) fn grant(&self, origin: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(origins) = &self.origins else { return true };
        if !origins.contains(origin) {
            return false;
        }
        out.extend_from_slice(b"Access-Control-Allow-Origin: ");
        out.extend_from_slice(origin);
        out.extend_from_slice(b"\r\n");
        if self.credentials {
            out.extend_from_slice(b"Access-Control-Allow-Credentials: true\r\n");
        }
        true
    }

    /// The further lines of a preflight that is granted.
    pub(crate) fn preflight(&self) -> &[u8] {
        self.preflight.as_bytes()
    }
}

fn preflight(cors: &Cors) -> String {
    let methods = if cors.methods.is_empty() { "GET, HEAD".to_owned() } else { cors.methods.join(", ") };
    let mut out = format!("Access-Control-Allow-Methods: {methods}\r\n");
    if !cors.headers.is_empty() {
        let _ = write!(out, "Access-Control-Allow-Headers: {}\r\n", cors.headers.join(", "));
    }
    if let Some(max_age_s) = cors.max_age_s {
        let _ = write!(out, "Access-Control-Max-Age: {max_age_s}\r\n");
    }
    out
}

/// Scheme, host and port as a browser writes them (RFC 6454, section 6.2).
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte);
    !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || b"+-.".contains(&byte))
        && !host.is_empty()
        && host.bytes().all(small)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        Cors { origins: origins.iter().map(|&origin| origin.to_owned()).collect(), ..Cors::default() }
    }

    #[test]
    fn wrong_rules() {
        for origins in [&[][..], &["a.example"], &["https://A.example"], &["https://a.example/"], &["null"]] {
            assert!(Sharing::new(&cors(origins)).is_err(), "{origins:?}");
        }
        assert!(Sharing::new(&cors(&["*", "https://a.example"])).is_err());
        assert!(Sharing::new(&Cors { credentials: true, ..cors(&["*"]) }).is_err());
        let any_header =
            Cors { credentials: true, headers: vec!["*".into()], ..cors(&["https://a.example"]) };
        assert!(Sharing::new(&any_header).is_err());
    }

    #[test]
    fn only_the_named_are_granted() {
        let config = Cors { credentials: true, ..cors(&["https://a.example", "https://b.example:8443"]) };
        let sharing = Sharing::new(&config).unwrap();
        for (origin, granted) in [
            ("https://a.example", true),
            ("https://b.example:8443", true),
            ("https://b.example", false),
            ("http://a.example", false),
            ("https://a.example.evil", false),
            ("null", false),
        ] {
            let mut out = Vec::new();
            assert_eq!(sharing.grant(origin.as_bytes(), &mut out), granted, "{origin}");
            let expected = format!(
                "Access-Control-Allow-Origin: {origin}\r\nAccess-Control-Allow-Credentials: true\r\n"
            );
            assert_eq!(out, if granted { expected.into_bytes() } else { Vec::new() });
        }
    }
}
