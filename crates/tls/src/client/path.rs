//! The path from a client's certificate to an authority, and until when that path holds.
//!
//! webpki looks for it. This file owns what webpki does not judge: the ends of authorities, and the moment at
//! which the first part of the path ends. It must never accept what webpki refuses.
use rustls::{CertificateError, Error};
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationOptionsBuilder, VerifiedPath,
};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::authority::ClientAuthority;
use super::identity::subject;
use super::refusal::error_of;

impl ClientAuthority {
    /// Verifies a client's certificate: the last second in which what was verified holds, with every
    /// certificate, authority and list that played a part.
    ///
    /// # Errors
    /// rustls' words for what is wrong.
    pub(super) fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<u64, Error> {
        let certificate = EndEntityCert::try_from(end_entity).map_err(error_of)?;
        let lists: Vec<&CertRevocationList<'_>> = self.lists.iter().map(|list| &list.revoked).collect();
        let revocation = RevocationOptionsBuilder::new(&lists).ok();
        let revocation =
            revocation.map(|options| options.with_expiration_policy(ExpirationPolicy::Enforce).build());
        let path = certificate.verify_for_usage(
            self.algorithms.all,
            &self.anchors[..self.count_valid(now.as_secs())],
            intermediates,
            now,
            KeyUsage::client_auth(),
            revocation,
            None,
        );
        self.last_second(&path.map_err(error_of)?)
    }

    /// How many authorities have not ended.
    fn count_valid(&self, now_unix_s: u64) -> usize {
        self.ends_unix_s.partition_point(|until| now_unix_s <= *until)
    }

    /// The last second in which a path holds.
    fn last_second(&self, path: &VerifiedPath<'_>) -> Result<u64, Error> {
        let bad = || Error::from(CertificateError::BadEncoding);
        let parse = |der: CertificateDer<'_>| Certificate::from_der(&der).map_err(|_| bad());
        let own = parse(path.end_entity().der())?;
        subject(&own).ok_or_else(bad)?;
        let anchor = self.anchors.iter().position(|anchor| anchor == path.anchor());
        let mut until = anchor.map_or(0, |place| self.ends_unix_s[place]).min(end_of(&own));
        let mut issuers = vec![path.end_entity().issuer()];
        for certificate in path.intermediate_certificates() {
            until = until.min(end_of(&parse(certificate.der())?));
            issuers.push(certificate.issuer());
        }
        let asked = self.lists.iter().filter(|list| issuers.contains(&list.revoked.issuer()));
        Ok(asked.fold(until, |until, list| until.min(list.until_unix_s)))
    }
}

/// The last second in which a certificate is valid.
fn end_of(certificate: &Certificate) -> u64 {
    certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs()
}
