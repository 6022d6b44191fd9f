//! A conversation with an authority: its directory, its nonces, signed requests, the account.
//!
//! It owns the rules of RFC 8555, sections 6 and 7.1 to 7.3. Order of calls: [`AcmeClient::open`],
//! [`AcmeClient::sign_in`], then whatever an order needs.

use serde_json::{Value, json};

use crate::account_key::{AccountKey, Signer};
use crate::answers;
use crate::fault::AcmeFault;
use crate::limits::NONCE_TRIES_MAX;
use crate::web::{WebAnswer, WebRequest, Wire};

/// Addresses of an authority (RFC 8555, section 7.1.1).
struct Directory {
    new_nonce: String,
    new_account: String,
    new_order: String,
    /// The URL of renewal information (RFC 9773), if the authority has it.
    renewal_info: Option<String>,
}

/// Renewal information of a certificate (RFC 9773, section 4.2).
pub(crate) struct RenewalAdvice {
    /// The suggested window for the renewal: its begin and end, in seconds since 1970.
    pub(crate) window: (u64, u64),
    /// Seconds after which to ask again, if the authority said.
    pub(crate) ask_again_s: Option<u64>,
}

/// A client of one authority, with its directory and the next nonce.
pub(crate) struct AcmeClient<'a> {
    wire: &'a mut dyn Wire,
    key: &'a AccountKey,
    directory: Directory,
    nonce: Option<String>,
    account: Option<String>,
    now_unix_s: u64,
}

impl<'a> AcmeClient<'a> {
    /// A client of the authority whose directory is at this URL, which is fetched.
    ///
    /// # Errors
    /// The directory cannot be fetched, or lacks a URL that an order needs.
    pub(crate) fn open(
        wire: &'a mut dyn Wire,
        key: &'a AccountKey,
        directory: &str,
        now_unix_s: u64,
    ) -> Result<Self, AcmeFault> {
        let answer = wire.ask(directory, WebRequest::Get)?;
        let document = answers::document(&answer, now_unix_s)?;
        let directory = Directory {
            new_nonce: answers::address(&document, "newNonce")?,
            new_account: answers::address(&document, "newAccount")?,
            new_order: answers::address(&document, "newOrder")?,
            renewal_info: answers::address(&document, "renewalInfo").ok(),
        };
        Ok(Self { wire, key, directory, nonce: None, account: None, now_unix_s })
    }

    /// Signs in to the account at the URL `known`. Without one an account is made for the key, or found if
    /// the authority has it already (RFC 8555, section 7.3); that agrees to the authority's terms. Gives the
    /// account's URL. `binding`: key id and key of an external account binding.
    ///
    /// # Errors
    /// Those of [`Self::post`].
    pub(crate) fn sign_in(
        &mut self,
        known: Option<&str>,
        contact: Option<&str>,
        binding: Option<(&str, &str)>,
    ) -> Result<String, AcmeFault> {
        let account = match known {
            Some(account) => account.to_owned(),
            None => {
                let contact: Vec<String> = contact.iter().map(|mail| format!("mailto:{mail}")).collect();
                let mut wish = json!({"termsOfServiceAgreed": true, "contact": contact});
                let url = self.directory.new_account.clone();
                if let Some((key_id, secret)) = binding {
                    wish["externalAccountBinding"] = self.key.bind(&url, key_id, secret)?;
                }
                let answer = self.post(&url, Some(&wish))?;
                answers::location(&answer)?
            }
        };
        self.account = Some(account.clone());
        Ok(account)
    }

    /// Makes an order for one host name or IP address. Gives the order's URL and its document. `replaces`:
    /// identifier of the certificate that the new one renews (RFC 9773, section 5).
    ///
    /// # Errors
    /// Those of [`Self::post`].
    pub(crate) fn new_order(
        &mut self,
        name: &str,
        profile: Option<&str>,
        replaces: Option<&str>,
    ) -> Result<(String, Value), AcmeFault> {
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        let kind = if is_address { "ip" } else { "dns" };
        let mut wish = json!({"identifiers": [{"type": kind, "value": name}]});
        if let Some(profile) = profile {
            wish["profile"] = profile.into();
        }
        // An authority that does not know of renewal would refuse the member or leave it out.
        if let (Some(replaces), Some(_)) = (replaces, &self.directory.renewal_info) {
            wish["replaces"] = replaces.into();
        }
        let url = self.directory.new_order.clone();
        let answer = self.post(&url, Some(&wish))?;
        Ok((answers::location(&answer)?, answers::document(&answer, self.now_unix_s)?))
    }

    /// Renewal information of the certificate with this identifier; `None` from an authority without it.
    ///
    /// # Errors
    /// The authority cannot be reached, or its answer cannot be read.
    pub(crate) fn renewal(&mut self, id: &str) -> Result<Option<RenewalAdvice>, AcmeFault> {
        let Some(url) = &self.directory.renewal_info else { return Ok(None) };
        let answer = self.wire.ask(&format!("{}/{id}", url.trim_end_matches('/')), WebRequest::Get)?;
        let document = answers::document(&answer, self.now_unix_s)?;
        let ask_again_s = answers::retry_after_s(&answer, self.now_unix_s);
        Ok(Some(RenewalAdvice { window: answers::window(&document)?, ask_again_s }))
    }

    /// Fetches a document (POST-as-GET; RFC 8555, section 6.3). Gives it with the seconds of `Retry-After`.
    ///
    /// # Errors
    /// Those of [`Self::post`].
    pub(crate) fn look(&mut self, url: &str) -> Result<(Value, Option<u64>), AcmeFault> {
        let answer = self.post(url, None)?;
        let wait = answers::retry_after_s(&answer, self.now_unix_s);
        Ok((answers::document(&answer, self.now_unix_s)?, wait))
    }

    /// Sends a signed request; without a payload it only reads (POST-as-GET). A nonce that is refused is
    /// replaced, and the request sent again.
    ///
    /// # Errors
    /// The authority cannot be reached, or answers with a problem.
    pub(crate) fn post(&mut self, url: &str, payload: Option<&Value>) -> Result<WebAnswer, AcmeFault> {
        let mut tries = 1;
        loop {
            let nonce = match self.nonce.take() {
                Some(nonce) => nonce,
                None => self.new_nonce()?,
            };
            let signer = self.account.as_deref().map_or(Signer::Key, Signer::Account);
            let body = self.key.sign(url, &nonce, signer, payload)?.to_string();
            let answer = self.wire.ask(url, WebRequest::Post(&body))?;
            // An answer of an error has one, too.
            self.nonce.clone_from(&answer.nonce);
            match answers::succeed(&answer, self.now_unix_s) {
                Ok(()) => return Ok(answer),
                Err(fault) if fault.is_bad_nonce() && tries < NONCE_TRIES_MAX => tries += 1,
                Err(fault) => return Err(fault),
            }
        }
    }

    fn new_nonce(&mut self) -> Result<String, AcmeFault> {
        let answer = self.wire.ask(&self.directory.new_nonce, WebRequest::Head)?;
        answers::succeed(&answer, self.now_unix_s)?;
        answer.nonce.ok_or_else(|| AcmeFault::Answer("no `Replay-Nonce` where one was asked for".into()))
    }

    pub(crate) fn authorize(&self, token: &str) -> String {
        self.key.authorize(token)
    }
}
