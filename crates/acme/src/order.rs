//! An order: from the name to the certificate (RFC 8555, section 7.4).
//!
//! The steps of the order and the waits between them stand here. A certificate that does not fit its key or
//! its name must never be given back, and no challenge may stay answered when the order is over.

use std::time::Duration;

use serde_json::{Value, json};
use staunch_tls::{CertificatePair, CertificateRequest};
use zeroize::Zeroizing;

use crate::answers;
use crate::client::AcmeClient;
use crate::fault::AcmeFault;
use crate::limits::{CLOCK_AHEAD_S, POLL_PAUSE, POLL_PAUSE_MAX, POLL_TIME_MAX};
use crate::message::{Challenge, ChallengeKind};

/// What an order needs of this program: somebody who answers challenges, and the passing of time.
pub(crate) trait Presenter {
    /// Has the server answer these challenges from now on, and no others. Returns once it does.
    ///
    /// # Errors
    /// The server does not confirm it.
    fn present(&mut self, challenges: &[Challenge]) -> Result<(), AcmeFault>;

    /// Waits for so long.
    fn wait(&mut self, length: Duration);
}

/// What an order asks for.
pub(crate) struct OrderWish<'a> {
    pub(crate) name: &'a str,
    /// Challenges that can be answered, the preferred first.
    pub(crate) kinds: &'a [ChallengeKind],
    pub(crate) profile: Option<&'a str>,
    /// Identifier of the certificate that the new one renews (RFC 9773, section 4.1).
    pub(crate) replaces: Option<&'a str>,
    pub(crate) now_unix_s: u64,
}

/// A certificate with its chain, and its private key, both as PEM.
pub(crate) struct Obtained {
    pub(crate) chain_pem: Vec<u8>,
    pub(crate) key_pem: Zeroizing<String>,
}

/// Orders a certificate and gets it.
///
/// # Errors
/// The fault for which there is no certificate.
pub(crate) fn obtain(
    client: &mut AcmeClient<'_>,
    wish: &OrderWish<'_>,
    presenter: &mut dyn Presenter,
) -> Result<Obtained, AcmeFault> {
    let (url, order) = match client.new_order(wish.name, wish.profile, wish.replaces) {
        // A certificate can be replaced once, and by the account that ordered it: then it is a new one.
        Err(AcmeFault::Refused { kind, .. }) if wish.replaces.is_some() && is_about_replacing(&kind) => {
            client.new_order(wish.name, wish.profile, None)?
        }
        other => other?,
    };
    let authorizations = order["authorizations"].as_array().into_iter().flatten();
    let authorizations: Vec<String> = authorizations.filter_map(Value::as_str).map(str::to_owned).collect();
    for authorization in &authorizations {
        let result = authorize(client, authorization, wish, presenter);
        // Whatever came of it, nobody is to ask for it again.
        let withdrawn = presenter.present(&[]);
        result?;
        withdrawn?;
    }
    let request = CertificateRequest::new(wish.name).map_err(|fault| AcmeFault::Here(fault.to_string()))?;
    let payload = json!({"csr": crate::account_key::base64url(&request.der)});
    let order = poll(client, &url, presenter, |status| matches!(status, "pending"))?;
    let order = if answers::status(&order) == "ready" {
        client.post(&answers::address(&order, "finalize")?, Some(&payload))?;
        poll(client, &url, presenter, |status| matches!(status, "pending" | "ready" | "processing"))?
    } else {
        order
    };
    if answers::status(&order) != "valid" {
        return Err(AcmeFault::of_error(&order["error"]));
    }
    let answer = client.post(&answers::address(&order, "certificate")?, None)?;
    let obtained = Obtained { chain_pem: answer.body, key_pem: request.key_pem };
    judge(&obtained, wish)?;
    Ok(obtained)
}

fn is_about_replacing(kind: &str) -> bool {
    matches!(kind, "alreadyReplaced" | "malformed" | "unauthorized" | "conflict")
}

/// Completes an authorization: answers one of its challenges, unless the authority has it as valid already.
fn authorize(
    client: &mut AcmeClient<'_>,
    url: &str,
    wish: &OrderWish<'_>,
    presenter: &mut dyn Presenter,
) -> Result<(), AcmeFault> {
    let (authorization, _) = client.look(url)?;
    if answers::status(&authorization) == "valid" {
        return Ok(());
    }
    let (challenge, kind) = choose(&authorization, wish.kinds)?;
    let token = answers::token(challenge)?;
    let answered = Challenge {
        kind,
        name: wish.name.to_owned(),
        token: token.to_owned(),
        authorization: client.authorize(token),
    };
    presenter.present(&[answered])?;
    client.post(&answers::address(challenge, "url")?, Some(&json!({})))?;
    let authorization = poll(client, url, presenter, |status| matches!(status, "pending"))?;
    if answers::status(&authorization) == "valid" {
        return Ok(());
    }
    let challenges = authorization["challenges"].as_array().into_iter().flatten();
    let error = challenges.map(|challenge| &challenge["error"]).find(|error| error.is_object());
    Err(error.map_or_else(
        || AcmeFault::Answer(format!("an authorization is `{}`", answers::status(&authorization))),
        AcmeFault::of_error,
    ))
}

/// The challenge to answer: of the kinds wished for, the first that the authority offers.
fn choose<'a>(
    authorization: &'a Value,
    kinds: &[ChallengeKind],
) -> Result<(&'a Value, ChallengeKind), AcmeFault> {
    let offered = authorization["challenges"].as_array().map_or(&[][..], Vec::as_slice);
    let find = |kind: &ChallengeKind| {
        let found = offered.iter().find(|challenge| challenge["type"].as_str() == Some(kind.word()))?;
        Some((found, *kind))
    };
    kinds.iter().find_map(find).ok_or_else(|| {
        let offered: Vec<&str> = offered.iter().filter_map(|challenge| challenge["type"].as_str()).collect();
        let text = format!("no challenge that can be answered here: it offers {}", offered.join(", "));
        AcmeFault::Answer(crate::fault::plain(&text))
    })
}

/// Fetches an order or an authorization again and again until its status is no longer one of those under way.
fn poll(
    client: &mut AcmeClient<'_>,
    url: &str,
    presenter: &mut dyn Presenter,
    is_under_way: impl Fn(&str) -> bool,
) -> Result<Value, AcmeFault> {
    let mut waited = Duration::ZERO;
    loop {
        let (document, wait_s) = client.look(url)?;
        if !is_under_way(answers::status(&document)) {
            return Ok(document);
        }
        if waited >= POLL_TIME_MAX {
            let status = crate::fault::plain(answers::status(&document));
            return Err(AcmeFault::Answer(format!("still `{status}` after {} s", waited.as_secs())));
        }
        let pause = wait_s.map_or(POLL_PAUSE, Duration::from_secs).clamp(POLL_PAUSE, POLL_PAUSE_MAX);
        presenter.wait(pause);
        waited += pause;
    }
}

/// Checks that the authority sent a valid certificate for this key and this name.
fn judge(obtained: &Obtained, wish: &OrderWish<'_>) -> Result<(), AcmeFault> {
    let pair = CertificatePair::read(&obtained.chain_pem, obtained.key_pem.as_bytes());
    let checked = pair.and_then(|pair| {
        // An order takes a while, and clocks differ.
        let latest = pair.validity_unix_s().0.min(wish.now_unix_s + CLOCK_AHEAD_S);
        pair.check(wish.now_unix_s.max(latest), &[wish.name])
    });
    checked.map_err(|fault| AcmeFault::Answer(format!("what it sent for {}: {fault}", wish.name)))
}

#[cfg(test)]
#[path = "order/tests.rs"]
mod tests;
