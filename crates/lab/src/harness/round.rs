//! A round of one row: a server, a client, and what both are found to have done.
//!
//! It must never go on with a server that has failed, nor hide that it has.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use staunch_netio::clock;

use crate::leaks;
use crate::meter;
use crate::results::{AskedBy, ClientReport, Protocol, Round, Row};
use crate::subject::Subject;
use crate::usage::{self, Ticks, UsageReading};

/// How long a server may take to listen, to rest, to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a client waits in one step: with keep-alive and a small pool, until others have done all they
/// want.
const CLIENT_PATIENCE: &str = "10min";
/// How long a client may take to end when it is told to.
const PATIENCE_WITH_CLIENT: Duration = Duration::from_secs(5);
/// How long a server may hold what it had for clients when they are gone.
const PATIENCE_AFTER_LOAD: Duration = Duration::from_secs(5);
/// How often it is looked whether the client has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How often memory is looked at; less often where a look takes long.
const MEMORY_EVERY_NS: u64 = 50_000_000;
/// What part of the time may be spent looking, as its inverse.
const LOOKING_PART: u64 = 20;
/// What a server says before its address.
const LISTENING: &str = "listening on http://";

/// Why a round was given up.
const STOPPED: &str = "it was told to stop";

/// Where and by what rounds are measured.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub(super) program: &'a Path,
    pub(super) server_cpus: &'a [usize],
    pub(super) client_cpus: &'a [usize],
    pub(super) own_cpus: Vec<usize>,
}

impl Bench<'_> {
    /// Measures a row once; `None` if it was told to stop before the end.
    ///
    /// # Errors
    /// What failed, a sentence.
    pub(super) fn measure(&self, row: &Row, stop: &AtomicBool) -> Result<Option<Round>, String> {
        match self.round(row, stop) {
            Err(_) if is_set(stop) => Ok(None),
            measured => measured.map(Some),
        }
    }

    fn round(&self, row: &Row, stop: &AtomicBool) -> Result<Round, String> {
        if is_set(stop) {
            return Err(STOPPED.to_owned());
        }
        let (mut server, address) = self.start_server(row)?;
        let group = server.group();
        // As many as the pool is to have, and one that leads them.
        let is_complete = |reading: &UsageReading| reading.threads.len() > row.pool;
        let before = UsageReading::at_rest(group, PATIENCE, is_complete);
        let ticks_before = Ticks::of(self.server_cpus);
        let mut client = self.start_client(row, address)?;
        let peak_memory_bytes = self.attend(&mut server, &mut client, stop)?.max(before.resident_bytes);
        let report = report(&mut client)?;
        let is_as_before = |reading: &UsageReading| leaks::after_load(&before, reading).is_empty();
        let after = UsageReading::at_rest(group, PATIENCE_AFTER_LOAD, is_as_before);
        let ticks = Ticks::of(self.server_cpus).since(ticks_before);
        server.tell(Signal::TERM);
        let (status, whole) = server.wait(PATIENCE).map_err(|text| format!("the server: {text}"))?;
        if !status.success() {
            return Err(format!("the server ended with {status}: {}", server.complaints()));
        }
        let mut leaks = leaks::after_load(&before, &after);
        leaks.extend(leaks::after_end(group, address, true));
        Ok(Round {
            server: usage::between(&before, &after, &whole, &ticks),
            peak_memory_bytes: peak_memory_bytes.max(after.resident_bytes),
            served_by: meter::parse(&server.rest_of_output()),
            leaks,
            client: report,
        })
    }

    fn start_server(&self, row: &Row) -> Result<(Subject, SocketAddr), String> {
        let cpus: Vec<String> = self.server_cpus.iter().map(usize::to_string).collect();
        let mut arguments: Vec<String> =
            ["lab", "serve", &row.model, "--cpus", &cpus.join(",")].map(str::to_owned).to_vec();
        if row.pool > 0 {
            arguments.extend(["--pool".to_owned(), row.pool.to_string()]);
        }
        let mut server = Subject::start(self.program, &arguments, self.server_cpus, &self.own_cpus)?;
        let said = server.next_line(PATIENCE).unwrap_or_default();
        match said.strip_prefix(LISTENING).and_then(|address| address.parse().ok()) {
            Some(address) => Ok((server, address)),
            None => {
                server.tell(Signal::KILL);
                server.wait(PATIENCE)?;
                Err(format!("the server does not come up: {}{said}", server.complaints()))
            }
        }
    }

    fn start_client(&self, row: &Row, address: SocketAddr) -> Result<Subject, String> {
        let numbers = [row.children.to_string(), row.loops.to_string(), row.bytes.to_string()];
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let mut arguments = vec!["lab", "client", &host, &port];
        arguments.extend(numbers.iter().map(String::as_str));
        arguments.extend(["--patience", CLIENT_PATIENCE, "--json", "-"]);
        match row.protocol {
            Protocol::Paper => {}
            Protocol::Http => arguments.push("--http"),
            Protocol::KeepAlive => arguments.push("--keep-alive"),
        }
        match row.client {
            AskedBy::Processes => {}
            AskedBy::Threads => arguments.push("--threads"),
            AskedBy::Epoll => arguments.push("--epoll"),
        }
        Subject::start(self.program, &arguments, self.client_cpus, &self.own_cpus)
    }

    /// Looks on until the client has ended: the most memory that the server had.
    fn attend(&self, server: &mut Subject, client: &mut Subject, stop: &AtomicBool) -> Result<u64, String> {
        let failed = |error: std::io::Error| error.to_string();
        let (mut peak_bytes, mut next_ns) = (0, 0);
        while !client.has_ended().map_err(failed)? {
            if server.has_ended().map_err(failed)? {
                let (status, _) = server.wait(PATIENCE)?;
                return Err(format!("the server ended under load with {status}: {}", server.complaints()));
            }
            if is_set(stop) {
                client.tell(Signal::INT);
                client.wait(PATIENCE_WITH_CLIENT)?;
                return Err(STOPPED.to_owned());
            }
            let now_ns = clock::now_ns();
            if now_ns >= next_ns {
                peak_bytes = peak_bytes.max(resident_bytes(server.group()));
                let looked_ns = clock::now_ns() - now_ns;
                next_ns = now_ns + MEMORY_EVERY_NS.max(looked_ns * LOOKING_PART);
            }
            clock::pause(LOOK_EVERY);
        }
        Ok(peak_bytes)
    }
}

fn is_set(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

fn resident_bytes(group: Pid) -> u64 {
    usage::members(group).iter().map(usage::Stat::resident_bytes).sum()
}

/// What the client says. It ends with 1 where connections failed, and says how many then.
fn report(client: &mut Subject) -> Result<ClientReport, String> {
    let (status, _) = client.wait(PATIENCE_WITH_CLIENT)?;
    serde_json::from_str(&client.rest_of_output())
        .map_err(|error| format!("the client ended with {status}: {} ({error})", client.complaints()))
}

/// What went wrong in a round that was measured.
pub(super) fn faults<'a>(row: &Row, round: &'a Round) -> impl Iterator<Item = String> + use<'a> {
    let asked = (row.children as u64).saturating_mul(row.loops);
    let ClientReport { answered, errors, .. } = &round.client;
    let kinds: Vec<String> = errors.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let missing =
        (*answered != asked).then(|| format!("{answered} of {asked} answers came ({})", kinds.join(", ")));
    missing.into_iter().chain(round.leaks.iter().map(|leak| format!("left behind: {leak}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Usage;

    #[test]
    fn what_failed_and_what_was_left_are_faults() {
        let row = Row { children: 2, loops: 5, ..crate::made_up::measured("poll", (1, 1, 1, 0), &[]).row };
        let client = ClientReport { answered: 10, ..ClientReport::default() };
        let mut round = Round {
            server: Usage::default(),
            peak_memory_bytes: 0,
            served_by: Vec::new(),
            leaks: Vec::new(),
            client,
        };
        assert_eq!(faults(&row, &round).count(), 0);
        round.client.answered = 7;
        round.client.errors = vec![("Connection refused".into(), 2), ("short answer".into(), 1)];
        round.leaks.push("a zombie is left: 7 (poll)".into());
        let expected = [
            "7 of 10 answers came (Connection refused 2, short answer 1)",
            "left behind: a zombie is left: 7 (poll)",
        ];
        assert_eq!(faults(&row, &round).collect::<Vec<_>>(), expected);
    }
}
