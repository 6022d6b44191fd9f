//! Makes tokens for those who have the secret: for trying out, and for scripts.
//!
//! It must never make one that [`super::verify`] refuses, nor one without an end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::claims::DETAIL_TYPE;
use super::granted::{Issuer, TokenFault};
use super::key::Key;

/// The claims of a token that is made.
#[derive(Debug, Clone, Default)]
pub struct Making {
    /// Topics that may be published to: names, dotted patterns, or `*`.
    pub publish: Vec<String>,
    /// Topics that may be read though they are private, likewise.
    pub subscribe: Vec<String>,
    /// When it is made, in seconds since 1970.
    pub now_s: u64,
    /// For how long it holds.
    pub holds_s: u64,
}

/// A token of an issuer, signed by its shared secret (HS256).
///
/// # Errors
/// The issuer has no shared secret, or the token would not be taken.
pub fn make(making: &Making, issuer: &Issuer) -> Result<String, TokenFault> {
    let details: Vec<Value> = [("publish", &making.publish), ("subscribe", &making.subscribe)]
        .into_iter()
        .filter(|(_, topics)| !topics.is_empty())
        .map(|(action, topics)| {
            let topics: Vec<Value> = topics.iter().map(|topic| matcher(topic)).collect();
            json!({"type": DETAIL_TYPE, "actions": [action], "topics": topics})
        })
        .collect();
    let ends_at_s = making.now_s.saturating_add(making.holds_s);
    let header = json!({"alg": "HS256", "typ": "at+jwt"});
    let claims = json!({
        "iss": issuer.name, "aud": issuer.audience, "iat": making.now_s, "exp": ends_at_s,
        "authorization_details": details,
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = issuer.keys.iter().find_map(|key: &Key| key.sign(signed.as_bytes()));
    let signature = URL_SAFE_NO_PAD.encode(signature.ok_or(TokenFault::Algorithm)?);
    let token = format!("{signed}.{signature}");
    super::verify(token.as_bytes(), std::slice::from_ref(issuer), making.now_s)?;
    Ok(token)
}

/// A name, or a dotted pattern where it has a star or `>` as a segment.
fn matcher(topic: &str) -> Value {
    let is_pattern = topic != "*" && topic.split('.').any(|segment| matches!(segment, "*" | ">"));
    if is_pattern { json!({"match": topic, "match_type": "dotted"}) } else { json!({"match": topic}) }
}
