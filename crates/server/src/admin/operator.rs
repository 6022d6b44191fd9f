//! The page for people: what the figures say, live, in one file that loads nothing else.
//!
//! The page must never let a script or a style run that is not its own: both carry a word that is drawn anew
//! for each answer (Content Security Policy 3, section 2.3.1).

use std::hash::{BuildHasher as _, RandomState};

use staunch_protocol::Request;

const PAGE: &str = include_str!("operator.html");

/// Whether who asks takes a page: a browser does, and what scrapes does not.
pub(super) fn is_wanted(request: &Request<'_>) -> bool {
    request.values(b"accept").any(|value| memchr::memmem::find(value, b"text/html").is_some())
}

/// Field lines and body of the page.
pub(super) fn page() -> (String, String) {
    // The system draws the keys of hashing once per thread; each page counts them up.
    let nonce = format!("{:016x}{:016x}", RandomState::new().hash_one(0), RandomState::new().hash_one(1));
    let lines = format!(
        "Content-Security-Policy: default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
         Referrer-Policy: no-referrer\r\n"
    );
    (lines, PAGE.replace("\"NONCE\"", &format!("\"{nonce}\"")))
}
