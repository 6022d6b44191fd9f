//! What stands in a token: its header and claims (RFC 7519, section 4; RFC 9068; RFC 9396).
//!
//! It owns what is granted by which claim. It must never take a part of what is granted where another part
//! cannot be read.

use serde::Deserialize;

use super::granted::{Granted, Issuer, TokenFault};
use crate::interest::Grants;
use crate::limits::{TOKEN_GRANTS_MAX, TOKEN_LEEWAY_S};
use crate::name::{NameFault, TopicName};
use crate::pattern::Pattern;

/// The type of Mercure's authorization details.
pub(super) const DETAIL_TYPE: &str = "https://mercure.rocks/authorization-detail";

/// A token's header.
#[derive(Deserialize)]
pub(super) struct Header {
    #[serde(rename = "alg")]
    pub(super) algorithm: String,
    #[serde(default, rename = "kid")]
    pub(super) key_id: Option<String>,
    #[serde(default, rename = "typ")]
    kind: Option<String>,
    #[serde(default)]
    crit: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Claims {
    #[serde(default)]
    iss: Option<String>,
    #[serde(default)]
    aud: Option<OneOrMany>,
    #[serde(default)]
    exp: Option<f64>,
    #[serde(default)]
    nbf: Option<f64>,
    #[serde(default)]
    authorization_details: Vec<serde_json::Value>,
    #[serde(default)]
    mercure: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Detail {
    #[serde(rename = "type")]
    _kind: String,
    actions: Vec<String>,
    topics: Vec<Matcher>,
    #[serde(default, rename = "payload")]
    _payload: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Matcher {
    #[serde(rename = "match")]
    text: String,
    #[serde(default)]
    match_type: Option<String>,
}

#[derive(Deserialize)]
struct MercureClaim {
    #[serde(default)]
    publish: Vec<String>,
    #[serde(default)]
    subscribe: Vec<String>,
}

/// Reads a header. A critical extension is not known here (RFC 7515, section 4.1.11).
pub(super) fn read_header(bytes: &[u8]) -> Result<Header, TokenFault> {
    let header: Header = read_object(bytes)?;
    if header.crit.is_some() { Err(TokenFault::Algorithm) } else { Ok(header) }
}

/// An object. A struct would be read from a list as well, which is not meant here.
fn read_object<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, TokenFault> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|_| TokenFault::Form)?;
    let object = Some(value).filter(serde_json::Value::is_object).ok_or(TokenFault::Form)?;
    serde_json::from_value(object).map_err(|_| TokenFault::Form)
}

/// Checks what a token says, after its signature.
pub(super) fn check(
    header: &Header,
    payload: &[u8],
    issuer: &Issuer,
    now_s: u64,
) -> Result<Granted, TokenFault> {
    let claims: Claims = read_object(payload)?;
    let is_old = issuer.mercure_compatibility && claims.mercure.is_some();
    check_kind(header.kind.as_deref())?;
    if claims.iss.as_ref().map_or(!is_old, |iss| *iss != issuer.name) {
        return Err(TokenFault::Issuer);
    }
    let names_us = |audience: &OneOrMany| match audience {
        OneOrMany::One(one) => *one == issuer.audience,
        OneOrMany::Many(many) => many.contains(&issuer.audience),
    };
    if claims.aud.as_ref().map_or(!is_old, |audience| !names_us(audience)) {
        return Err(TokenFault::Audience);
    }
    let ends_at_s = match claims.exp {
        Some(exp) if exp > 0.0 => (exp as u64).saturating_add(TOKEN_LEEWAY_S),
        None if is_old => 0,
        _ => return Err(TokenFault::Expired),
    };
    if ends_at_s != 0 && ends_at_s <= now_s {
        return Err(TokenFault::Expired);
    }
    if claims.nbf.is_some_and(|nbf| nbf > (now_s + TOKEN_LEEWAY_S) as f64) {
        return Err(TokenFault::Early);
    }
    let mut granting = Granting::default();
    for detail in &claims.authorization_details {
        granting.add_detail(detail)?;
    }
    if let Some(claim) = claims.mercure.filter(|_| is_old) {
        granting.add_claim(claim)?;
    }
    let [publish, subscribe] = granting.0.map(|(names, patterns)| Grants::new(names, patterns));
    Ok(Granted { publish, subscribe, ends_at_s })
}

/// `at+jwt` (RFC 9068, section 2.1), or none, or `JWT`, which libraries write unasked. Tokens for other ends,
/// as those of OpenID that say who somebody is, grant nothing here whatever they are called.
fn check_kind(kind: Option<&str>) -> Result<(), TokenFault> {
    let Some(kind) = kind else { return Ok(()) };
    let kind = kind.to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    if matches!(kind, "at+jwt" | "jwt") { Ok(()) } else { Err(TokenFault::Type) }
}

/// Names and patterns for publishing, then those for reading.
#[derive(Default)]
struct Granting([(Vec<TopicName>, Vec<Pattern>); 2]);

impl Granting {
    fn add_detail(&mut self, detail: &serde_json::Value) -> Result<(), TokenFault> {
        if detail["type"] != DETAIL_TYPE {
            return Ok(());
        }
        let detail = Detail::deserialize(detail).map_err(|_| TokenFault::Grants)?;
        for action in &detail.actions {
            let place = match &action[..] {
                "publish" => 0,
                "subscribe" => 1,
                _ => return Err(TokenFault::Grants),
            };
            for matcher in &detail.topics {
                match matcher.match_type.as_deref() {
                    None | Some("exact") => self.add(place, &matcher.text)?,
                    Some("urlpattern") => self.add_pattern(place, Pattern::url(&matcher.text))?,
                    // Dotted patterns are ours.
                    Some("dotted") => self.add_pattern(place, Pattern::new(&matcher.text))?,
                    Some(_) => return Err(TokenFault::Grants),
                }
            }
        }
        Ok(())
    }

    fn add_claim(&mut self, claim: serde_json::Value) -> Result<(), TokenFault> {
        let claim: MercureClaim = serde_json::from_value(claim).map_err(|_| TokenFault::Grants)?;
        for (place, topics) in [claim.publish, claim.subscribe].iter().enumerate() {
            for topic in topics {
                // As 0.x has it: a template, and also the topic of just that name.
                self.add(place, topic)?;
                if topic.contains('{') {
                    self.add_pattern(place, Pattern::template(topic))?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, place: usize, text: &str) -> Result<(), TokenFault> {
        if text == "*" {
            return self.add_pattern(place, Pattern::new(text));
        }
        self.check_room(place)?;
        self.0[place].0.push(TopicName::new(text).map_err(|_| TokenFault::Grants)?);
        Ok(())
    }

    fn add_pattern(&mut self, place: usize, pattern: Result<Pattern, NameFault>) -> Result<(), TokenFault> {
        self.check_room(place)?;
        self.0[place].1.push(pattern.map_err(|_| TokenFault::Grants)?);
        Ok(())
    }

    fn check_room(&self, place: usize) -> Result<(), TokenFault> {
        let (names, patterns) = &self.0[place];
        if names.len() + patterns.len() < TOKEN_GRANTS_MAX { Ok(()) } else { Err(TokenFault::Grants) }
    }
}
