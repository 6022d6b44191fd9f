//! A page of a heading and a sentence, in the style of listings: for problems and redirects.
//!
//! It must never hold a byte of a peer's.

use staunch_protocol::Status;

const STYLE: &str = ":root{--paper:#fbfaf7;--ink:#1f2a30;--quiet:#5c6a70;--link:#0b5c75}\
    @media(prefers-color-scheme:dark){:root{--paper:#12191d;--ink:#dde5e6;--quiet:#93a3a8;--link:#7cc7dc}}\
    body{margin:0;padding:18vh 1.5rem 3rem;background:var(--paper);color:var(--ink);\
    font:1.0625rem/1.6 system-ui,\"Segoe UI\",Roboto,\"Helvetica Neue\",sans-serif}\
    main{max-width:34rem;margin:0 auto}h1{margin:0 0 .4rem;font-size:1.6rem;line-height:1.2}\
    p{margin:0 0 1rem}p+p{color:var(--quiet)}a{color:var(--link);text-underline-offset:.2em}\
    a:focus-visible{outline:2px solid var(--link);outline-offset:3px}";

/// Leads from a page that is no help to one that may be.
pub(crate) const WAY_HOME: &str = "<p><a href=\"/\">To the first page</a></p>\n";

/// The page. It names an icon of no bytes, so that a browser asks for none.
pub(crate) fn html(status: Status, text: &str, further: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{status}</title>\n<style>{STYLE}</style>\n\
         <main>\n<h1>{status}</h1>\n<p>{text}</p>\n{further}</main>\n</html>\n"
    )
}
