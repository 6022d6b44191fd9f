//! Orders played against a script of answers: what is asked, in which order, and what becomes of faults.

use std::collections::VecDeque;

use staunch_tls::LocalAuthority;

use super::*;
use crate::account_key::AccountKey;
use crate::web::{WebAnswer, WebRequest, Wire};

const NOW: u64 = 1_795_000_000;
const DIRECTORY: &str = "https://a/dir";

/// A scripted authority: gives the next of these answers to the request it belongs to.
struct Script(VecDeque<(&'static str, WebAnswer)>);

impl Wire for Script {
    fn ask(&mut self, url: &str, request: WebRequest<'_>) -> Result<WebAnswer, AcmeFault> {
        let word = match request {
            WebRequest::Get => "GET",
            WebRequest::Head => "HEAD",
            WebRequest::Post(body) => {
                assert!(body.contains("\"signature\""), "{body}");
                "POST"
            }
        };
        let asked = format!("{word} {url}");
        let (expected, answer) = self.0.pop_front().unwrap_or_else(|| panic!("not expected: {asked}"));
        assert_eq!(asked, expected);
        Ok(answer)
    }
}

/// A presenter that notes which challenges were presented, and how long was waited.
#[derive(Default)]
struct Stage {
    presented: Vec<Vec<Challenge>>,
    waited: Duration,
}

impl Presenter for Stage {
    fn present(&mut self, challenges: &[Challenge]) -> Result<(), AcmeFault> {
        self.presented.push(challenges.to_vec());
        Ok(())
    }

    fn wait(&mut self, length: Duration) {
        self.waited += length;
    }
}

fn answer(status: u16, body: Value) -> WebAnswer {
    let location = Some("https://a/order".to_owned());
    let nonce = Some("next".to_owned());
    WebAnswer { status, nonce, location, retry_after: None, body: body.to_string().into_bytes() }
}

fn problem(kind: &str) -> WebAnswer {
    let text = format!("urn:ietf:params:acme:error:{kind}");
    answer(400, json!({"type": text, "detail": format!("because of {kind}")}))
}

/// The script that every order begins with: directory, nonce and account.
fn beginning() -> Vec<(&'static str, WebAnswer)> {
    let directory = json!({
        "newNonce": "https://a/nonce", "newAccount": "https://a/account", "newOrder": "https://a/orders",
    });
    vec![
        ("GET https://a/dir", answer(200, directory)),
        ("HEAD https://a/nonce", answer(200, json!({}))),
        ("POST https://a/account", answer(201, json!({}))),
    ]
}

fn order(status: &str) -> WebAnswer {
    answer(
        201,
        json!({
            "status": status, "authorizations": ["https://a/authz"], "finalize": "https://a/finalize",
            "certificate": "https://a/certificate",
        }),
    )
}

fn authorization(status: &str) -> WebAnswer {
    let challenge = json!({
        "type": "http-01", "token": "tok", "url": "https://a/challenge",
        "error": {"type": "urn:ietf:params:acme:error:connection", "detail": "port 80 is closed"},
    });
    answer(200, json!({"status": status, "challenges": [{"type": "dns-01"}, challenge]}))
}

/// Plays an order by the common beginning and this script.
fn play(rest: Vec<(&'static str, WebAnswer)>) -> (Result<Obtained, AcmeFault>, Stage) {
    let mut script = Script(beginning().into_iter().chain(rest).collect());
    let key = AccountKey::create().expect("a key");
    let mut stage = Stage::default();
    let kinds = [ChallengeKind::TlsAlpn01, ChallengeKind::Http01];
    let wish = OrderWish { name: "localhost", kinds: &kinds, profile: None, replaces: None, now_unix_s: NOW };
    let mut client = AcmeClient::open(&mut script, &key, DIRECTORY, NOW).expect("a directory");
    client.sign_in(None, Some("me@example.org"), None).expect("an account");
    let result = obtain(&mut client, &wish, &mut stage);
    assert!(script.0.is_empty(), "not asked: {:?}", script.0);
    (result, stage)
}

fn fault(rest: Vec<(&'static str, WebAnswer)>) -> (String, Stage) {
    let (result, stage) = play(rest);
    (result.err().expect("a fault").to_string(), stage)
}

#[test]
fn every_step_is_taken_and_a_foreign_certificate_is_not() {
    let issued = LocalAuthority::create(NOW).expect("made").issue(&["localhost"], NOW).expect("issued");
    let chain = WebAnswer { body: issued.certificate_pem.into_bytes(), ..answer(200, json!(null)) };
    let (text, stage) = fault(vec![
        ("POST https://a/orders", order("pending")),
        ("POST https://a/authz", authorization("pending")),
        ("POST https://a/challenge", problem("badNonce")),
        ("POST https://a/challenge", answer(200, json!({}))),
        ("POST https://a/authz", authorization("pending")),
        ("POST https://a/authz", authorization("valid")),
        ("POST https://a/order", order("ready")),
        ("POST https://a/finalize", order("processing")),
        ("POST https://a/order", order("processing")),
        ("POST https://a/order", order("valid")),
        ("POST https://a/certificate", chain),
    ]);
    assert!(text.ends_with("what it sent for localhost: the key does not match the certificate"), "{text}");
    assert_eq!(stage.waited, 2 * POLL_PAUSE);
    let [first, last] = &stage.presented[..] else { panic!("{:?}", stage.presented) };
    assert_eq!((first[0].kind, &*first[0].token, last.len()), (ChallengeKind::Http01, "tok", 0));
    assert!(first[0].authorization.starts_with("tok."));
}

#[test]
fn a_challenge_that_failed_is_withdrawn_and_its_reason_told() {
    let (text, stage) = fault(vec![
        ("POST https://a/orders", order("pending")),
        ("POST https://a/authz", authorization("pending")),
        ("POST https://a/challenge", answer(200, json!({}))),
        ("POST https://a/authz", authorization("invalid")),
    ]);
    assert_eq!(text, "the authority refuses (connection): port 80 is closed");
    assert_eq!(stage.presented.last().map(Vec::len), Some(0));
}

#[test]
fn a_refused_order_is_told() {
    let (text, stage) = fault(vec![("POST https://a/orders", problem("rejectedIdentifier"))]);
    assert_eq!(text, "the authority refuses (rejectedIdentifier): because of rejectedIdentifier");
    assert!(stage.presented.is_empty());
}

#[test]
fn an_authority_that_offers_nothing_fitting_is_told_so() {
    let offer = answer(200, json!({"status": "pending", "challenges": [{"type": "dns-01"}]}));
    let rest = vec![("POST https://a/orders", order("pending")), ("POST https://a/authz", offer)];
    let (text, _) = fault(rest);
    assert!(text.ends_with("no challenge that can be answered here: it offers dns-01"), "{text}");
}

#[test]
fn an_authority_that_never_comes_to_an_end_is_left() {
    let mut rest =
        vec![("POST https://a/orders", order("pending")), ("POST https://a/authz", authorization("valid"))];
    let polls = POLL_TIME_MAX.as_secs() / POLL_PAUSE.as_secs() + 1;
    rest.extend((0..polls).map(|_| ("POST https://a/order", order("pending"))));
    let (text, stage) = fault(rest);
    assert!(text.ends_with("still `pending` after 180 s"), "{text}");
    assert_eq!(stage.waited, POLL_TIME_MAX);
}

#[test]
fn nonces_that_are_never_good_come_to_an_end() {
    let tries = crate::limits::NONCE_TRIES_MAX;
    let (text, _) = fault((0..tries).map(|_| ("POST https://a/orders", problem("badNonce"))).collect());
    assert_eq!(text, "the authority refuses (badNonce): because of badNonce");
}
