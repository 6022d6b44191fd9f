//! Keys of HTTPS: where it is spoken, and with which certificates.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::group::{Group as _, Inline, group};
use crate::node::{Node, ValueKind};
use crate::syntax::choice::{ClientAuthMode, OnOff};
use crate::syntax::text::{FilePath, Listen, LongTime};
use crate::syntax::{Complaint, Many, OrOff, Syntax, wrong_kind};

group! {
    /// Where HTTPS is spoken, and with which certificates.
    Tls, "HTTPS", |_| None;

    /// HTTPS: certificates by ACME, of a local authority, or files
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
    /// Ask clients for certificates, at all sites that say nothing else
    /// Whoever shows one that is not good is refused in the handshake; see docs/tls.md for what reaches rules
    /// (`client_auth` of a path) and logs.
    client_auth: OrOff<Inline<ClientAuth>> = Some("off"), File, reload,
        "{ authority = \"/etc/staunch/clients.pem\", revoked = \"/etc/staunch/clients.crl\" }";
    /// Answer plain HTTP by a redirect to HTTPS (308)
    /// For hosts with a certificate.
    https_redirect: OnOff = Some("on"), Value, reload, "false";
    /// Tell browsers to use HTTPS alone for so long
    /// Strict-Transport-Security (RFC 6797). A browser goes on with it until that time is over, or until it
    /// is told `0` over HTTPS, so begin with a day. Not said for `tls = "local"`, nor without
    /// `https_redirect`.
    hsts: OrOff<LongTime> = Some("off"), Value, reload, "\"365d\"";
    /// Exchange keys by X25519MLKEM768 with clients that can
    /// What is recorded of such a connection stays secret from a quantum computer. A full handshake costs
    /// nearly twice as many instructions.
    tls_hybrid: OnOff = Some("on"), File, reload, "false";
    /// Folder with keys of tickets, for machines that share them
    /// Files of 80 bytes (`openssl rand 80`) or 48, as nginx reads them; not for others to read. The newest
    /// seals, all open. Files are added and removed while the server runs. `off`: keys are made in memory,
    /// changed every 8 hours, and pass an upgrade.
    ticket_keys: OrOff<FilePath> = Some("off"), File, reload, "\"/etc/staunch/tickets\"";
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

group! {
    /// Which certificates clients show.
    ClientAuth, "Certificates of clients", |_| None;

    /// Whether a client without a certificate is let in
    /// With `required` its handshake is refused (alert certificate_required). With `optional` rules of paths
    /// can ask for one.
    mode: ClientAuthMode = Some("required"), File, reload, "\"optional\"";
    /// File with the certificates of who signs those of clients, in PEM
    /// Several may stand in it. One that has expired is left out; the last one may not have.
    authority: FilePath = None, File, reload, "\"/etc/staunch/clients.pem\"";
    /// File with their lists of revoked certificates (CRL), in PEM
    /// Then each authority in a client's chain needs a list. One that is past its next update is refused, and
    /// so are clients while there is no newer one.
    revoked: OrOff<FilePath> = Some("off"), File, reload, "\"/etc/staunch/clients.crl\"";
}

impl ClientAuth {
    /// Tells its files from those of others, in one process: what one has verified is nothing to another.
    pub fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.authority, &self.revoked).hash(&mut hasher);
        hasher.finish()
    }
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
