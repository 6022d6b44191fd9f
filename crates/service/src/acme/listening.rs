//! The thread that reads the agent's messages: it has challenges answered, and writes the agent's lines to
//! the log.
//!
//! A challenge that was withdrawn must never be answered. Nothing else in the server waits for the agent.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use staunch_acme::{Challenge, ChallengeKind, Line, ToAgent, ToServer};
use staunch_engine::Notice;

use super::figures::AcmeFigures;
use crate::certificates::Certificates;

/// Seconds after which the process before this one reads the agent's messages no more: it stops once this one
/// serves.
const BOTH_SECONDS: i64 = 3;

/// What the server keeps of its agent: the line, a descriptor that ends the reading, and metrics.
pub(super) struct ServerEnd {
    pub(super) line: Line,
    /// An eventfd, readable once this process has to stop reading the agent's messages.
    pub(super) rest: OwnedFd,
    pub(super) figures: AcmeFigures,
}

/// Reads the agent's messages until the agent has ended, or another process takes over. `again`: what to send
/// the agent once the process before this one reads no more.
pub(super) fn listen(
    agent: &ServerEnd,
    certificates: &Certificates,
    say: &Notice,
    mut again: Option<ToAgent>,
) {
    loop {
        let timeout = again.is_some().then_some(Timespec { tv_sec: BOTH_SECONDS, tv_nsec: 0 });
        let mut awaited = [PollFd::new(&agent.line, PollFlags::IN), PollFd::new(&agent.rest, PollFlags::IN)];
        match poll(&mut awaited, timeout.as_ref()) {
            Ok(0) => {
                if let Some(told) = again.take() {
                    // Fails when the agent has ended, which the next look at the line tells.
                    let _ = agent.line.tell(&told);
                }
                continue;
            }
            Ok(_) => {}
            // EINTR is no news.
            Err(_) => continue,
        }
        let [has_words, rests] = awaited.map(|one| !one.revents().is_empty());
        if rests {
            return;
        }
        if has_words {
            match agent.line.hear() {
                Ok(Some(told)) => obey(agent, certificates, say, told),
                Ok(None) | Err(_) => {
                    say("acme: the agent has ended: no certificate is renewed until the server is restarted");
                    return;
                }
            }
        }
    }
}

fn obey(agent: &ServerEnd, certificates: &Certificates, say: &Notice, told: ToServer) {
    match told {
        ToServer::Present { number, challenges } => {
            if let Err(fault) = present(certificates, &challenges) {
                say(&format!("acme: {fault}"));
            } else {
                // Fails when the agent has ended, which the next look at the line tells.
                let _ = agent.line.tell(&ToAgent::Presented { number });
            }
        }
        ToServer::Say(text) => say(&text),
        ToServer::State(state) => agent.figures.state(*state),
        ToServer::Attempted { is_success } => agent.figures.attempted(is_success),
    }
}

/// Has the server answer these challenges from now on, and no others.
fn present(certificates: &Certificates, challenges: &[Challenge]) -> Result<(), String> {
    let of = |kind: ChallengeKind| challenges.iter().filter(move |challenge| challenge.kind == kind);
    let by_handshake: Vec<(&str, &str)> =
        of(ChallengeKind::TlsAlpn01).map(|one| (&*one.name, &*one.authorization)).collect();
    let replaced = certificates.context.challenges().replace(&by_handshake);
    replaced.map_err(|fault| fault.to_string())?;
    let by_request = of(ChallengeKind::Http01).map(|one| (one.token.clone(), one.authorization.clone()));
    certificates.https.prove(by_request);
    Ok(())
}
