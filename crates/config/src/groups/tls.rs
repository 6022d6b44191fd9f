//! Keys of HTTPS: where it is spoken, and with which certificates.

use crate::group::{Group as _, Inline, group};
use crate::node::{Node, ValueKind};
use crate::syntax::choice::OnOff;
use crate::syntax::text::{FilePath, Listen, LongTime};
use crate::syntax::{Complaint, Many, OrOff, Syntax, wrong_kind};

group! {
    /// Where HTTPS is spoken, and with which certificates.
    Tls, "HTTPS", |_| None;

    /// HTTPS by ACME, by an own authority, from files
    /// `auto` is for `name` and the hosts of sites, and keeps what it gets in the state folder.
    /// `local` is for this machine and private networks: localhost, 127.0.0.1, names below `.localhost`,
    /// `.local`, `.internal` and `home.arpa`, private addresses. Whoever visits has to trust the authority
    /// once; the start-up block says where its certificate is. Files are written
    /// `tls = { certificate = "chain.pem", key = "key.pem" }`, several as `[[tls]]` tables; a client gets the
    /// one for the name that it asks for.
    tls: OrOff<CertificateSource> = Some("off"), Value, reload, "\"local\"";
    /// File with the server's certificate (PEM)
    /// And those it is signed by, the server's own first.
    tls_certificate: OrOff<FilePath> = Some("off"), Value, reload, "\"/etc/staunch/chain.pem\"";
    /// Key of that certificate (PEM); off: same file
    tls_key: OrOff<FilePath> = Some("off"), Value, reload, "\"/etc/staunch/key.pem\"";
    /// Address and port for HTTPS, or a port alone; may be given several times
    /// Nothing is listened at there without a certificate. See `listen`.
    tls_listen: Many<Listen> = Some("127.0.0.1:8443"), Values, reload, "[\"127.0.0.1:8443\", \"[::1]:8443\"]";
    /// Answer plain HTTP by a redirect to HTTPS (308)
    /// For hosts with a certificate.
    https_redirect: OnOff = Some("on"), Value, reload, "false";
    /// Tell browsers to use HTTPS alone for so long
    /// Strict-Transport-Security (RFC 6797). A browser goes on with it until that time is over, or until it
    /// is told `0` over HTTPS, so begin with a day. Not said for `tls = "local"`, nor without
    /// `https_redirect`.
    hsts: OrOff<LongTime> = Some("off"), Value, reload, "\"365d\"";
}

group! {
    /// A certificate and its key.
    CertificateFiles, "Certificates", |_| None;

    /// File with the server's certificate and those it is signed by, in PEM
    /// The server's own stands first.
    certificate: FilePath = None, File, reload, "\"/etc/staunch/chain.pem\"";
    /// File with its key, in PEM; off: it stands in the certificate's file
    key: OrOff<FilePath> = Some("off"), File, reload, "\"/etc/staunch/key.pem\"";
}

/// Where certificates come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Certificates {
    /// An authority is asked for them, by ACME.
    Auto,
    /// The local authority signs them.
    Local,
    /// They are read from files.
    Files(Vec<CertificateFiles>),
}

/// The words `auto` and `local`, a table of files, or a list of such.
#[derive(Debug)]
pub struct CertificateSource;

impl Syntax for CertificateSource {
    type Value = Certificates;

    fn word() -> String {
        "auto|local|FILES".into()
    }

    fn read(node: &Node, complaints: &mut Vec<Complaint>) -> Option<Certificates> {
        match &node.kind {
            ValueKind::Text(text) if text == "auto" => Some(Certificates::Auto),
            ValueKind::Text(text) if text == "local" => Some(Certificates::Local),
            ValueKind::Table(_) => Inline::<CertificateFiles>::read(node, complaints)
                .map(|files| Certificates::Files(vec![files])),
            ValueKind::List(_) => {
                Many::<Inline<CertificateFiles>>::read(node, complaints).map(Certificates::Files)
            }
            _ => {
                let word = format!("auto|local|{}", Inline::<CertificateFiles>::word());
                complaints.push(wrong_kind(node, word));
                None
            }
        }
    }

    fn write(value: &Certificates) -> Node {
        match value {
            Certificates::Auto => Node::text("auto"),
            Certificates::Local => Node::text("local"),
            Certificates::Files(files) if files.len() == 1 => Node::new(ValueKind::Table(files[0].write())),
            Certificates::Files(files) => Many::<Inline<CertificateFiles>>::write(files),
        }
    }
}
