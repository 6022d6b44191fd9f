//! Keys of certificates that an authority is asked for (ACME, RFC 8555).

use crate::group::group;
use crate::syntax::choice::ChallengeWord;
use crate::syntax::text::{FilePath, Words};
use crate::syntax::web::{Host, HttpsAddress, MailAddress};
use crate::syntax::{Many, OrAuto, OrOff};

group! {
    /// Certificates of an authority that is asked by ACME: for `tls = "auto"`.
    Acme, "Certificates by ACME", |_| None;

    /// Name to get a certificate for; several times
    /// By `tls = "auto"`. The hosts of sites are names as well. Each name has a certificate of its own. An
    /// address is a name too, where the authority signs for such.
    name: Many<Host> = Some(""), Values, reload, "[\"example.org\", \"www.example.org\"]";
    /// Mail address that the authority may write to
    acme_contact: OrOff<MailAddress> = Some("off"), Value, reload, "\"me@example.org\"";
    /// Authority, by the URL of its ACME directory
    /// Whoever writes `tls = "auto"` agrees to the terms of this authority.
    acme_directory: HttpsAddress = Some("https://acme-v02.api.letsencrypt.org/directory"), Value, reload,
        "\"https://acme-staging-v02.api.letsencrypt.org/directory\"";
    /// Roots to trust the authority by (PEM file)
    /// No other authority is trusted then; without it those that the system trusts.
    acme_authority: OrOff<FilePath> = Some("off"), Value, reload, "\"/etc/staunch/pebble.pem\"";
    /// Account the authority knows (external binding)
    /// Some authorities ask for it (RFC 8555, section 7.3.4) and give out name and key. Written together with
    /// `acme_eab_key_file`, and looked at when the account is made.
    acme_eab_key_id: OrOff<Words> = Some("off"), Value, reload, "\"kid-1\"";
    /// File with that account's key, in base64url
    /// Read by the user that the server becomes.
    acme_eab_key_file: OrOff<FilePath> = Some("off"), Value, reload, "\"/etc/staunch/eab.key\"";
    /// Kind of certificate, by the authority's word
    acme_profile: OrOff<Words> = Some("off"), Value, reload, "\"shortlived\"";
    /// Proof of a name: http-01, tls-alpn-01, auto
    /// By a request in plain HTTP, or by a handshake. `auto` begins with `http-01` where port 80 is listened
    /// at or port 443 is not, and goes on with the other after a failure.
    acme_challenge: OrAuto<ChallengeWord> = Some("auto"), Value, reload, "\"tls-alpn-01\"";
}
