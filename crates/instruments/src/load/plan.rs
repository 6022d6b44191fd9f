//! A plan from the words of the command line.
//!
//! It must never begin anything: every fault of a command line is found here, before the first connection.

use std::path::Path;
use std::time::Duration;

use staunch_loadgen::mix::{Choice, MixEntry, MixPlan};
use staunch_loadgen::plan::{IoChoice, LaneKind, LanePlan, SlotPlan, TlsPlan, TlsTrust};
use staunch_loadgen::probe::ProbePlan;
use staunch_loadgen::schedule::{Arrivals, Profile, parse_trace};
use staunch_loadgen::url::{self, Url};
use staunch_loadgen::{Fault, Plan};
use staunch_netio::Address;
use staunch_netio::host::cpu;

use super::arguments::{Close, Connections, Generator, Io, LoadArguments, Requests, Slow};
use crate::units::CpuList;

/// Kept connections of an open loop when nothing else is said: more than a server answers slowly at a time.
pub(crate) const KEPT_CONNECTIONS_MAX: u32 = 10_000;

/// Connections of a closed loop when nothing else is said.
const CLOSED_CONNECTIONS: u32 = 64;

/// How long is offered when nothing else is said.
const DURATION: Duration = Duration::from_secs(10);

/// Announced length of a body that comes byte by byte: longer than anybody waits.
const SLOW_BODY_BYTES: u64 = 1 << 20;

/// What is asked of whom, and how one gets there.
pub(crate) struct Aim<'a> {
    pub(crate) url: &'a str,
    pub(crate) requests: &'a Requests,
    pub(crate) ways: &'a Connections,
}

/// A URL that can be asked for, unchanged.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn url(text: &str) -> Result<String, String> {
    text.parse::<Url>().map(|_| text.to_owned()).map_err(told)
}

/// What stands in a sweep's plan where each point puts its own open loop.
pub(crate) fn placeholder(slots: SlotPlan) -> LaneKind {
    LaneKind::Open { arrivals: Arrivals::Constant, profile: Profile::Steady { rate_per_s: 1.0 }, slots }
}

/// A plan with one lane.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn of(
    aim: &Aim<'_>,
    generator: &Generator,
    kind: LaneKind,
    duration: Option<Duration>,
) -> Result<Plan, String> {
    let url: Url = aim.url.parse().map_err(told)?;
    let address = match &aim.ways.unix {
        Some(path) => Address::Unix(path.clone()),
        None => Address::Internet(url::resolve(&url).map_err(told)?),
    };
    let tls = tls(aim.ways, &url)?;
    let lane = lane("main", kind, aim, &url)?;
    Ok(Plan {
        command: command(),
        target: aim.url.to_owned(),
        tls,
        sources: aim.ways.source.clone(),
        lanes: vec![lane],
        duration,
        threads: threads(generator)?,
        io: io(generator),
        seed: generator.seed,
        probe: probe(generator, &address),
        address,
    })
}

/// The plan of TLS for an https:// URL.
///
/// # Errors
/// Words about TLS, and a URL without.
fn tls(ways: &Connections, url: &Url) -> Result<Option<TlsPlan>, String> {
    let trust = match &ways.cacert {
        _ if ways.insecure => TlsTrust::Anything,
        Some(path) => TlsTrust::File(path.clone()),
        None => TlsTrust::System,
    };
    if url.secure {
        return Ok(Some(TlsPlan { server: url.host.clone(), trust, resumes: !ways.no_resumption }));
    }
    let given = [
        (ways.insecure, "--insecure"),
        (ways.cacert.is_some(), "--cacert"),
        (ways.no_resumption, "--no-resumption"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, word)) => Err(format!("{word} is about https://, and {url} is not")),
        None => Ok(None),
    }
}

/// Which way to the network.
pub(crate) fn io(generator: &Generator) -> IoChoice {
    match generator.io {
        Io::Auto => IoChoice::Auto,
        Io::Uring => IoChoice::Uring,
        Io::Epoll => IoChoice::Epoll,
    }
}

/// A lane with the requests of the command line.
///
/// # Errors
/// What is wrong with the requests.
pub(crate) fn lane(name: &str, kind: LaneKind, aim: &Aim<'_>, url: &Url) -> Result<LanePlan, String> {
    let per_request = matches!(
        kind,
        LaneKind::Open { slots: SlotPlan::PerRequest, .. }
            | LaneKind::Closed { requests_per_connection: Some(1), .. }
    );
    let open_per_request = matches!(kind, LaneKind::Open { slots: SlotPlan::PerRequest, .. });
    Ok(LanePlan {
        name: name.to_owned(),
        kind,
        mix: mix(aim.requests, url, !per_request)?,
        patience: aim.ways.patience,
        late_after: aim.ways.late_after,
        reset_on_close: match aim.ways.close {
            Close::Auto => open_per_request,
            Close::Fin => false,
            Close::Rst => true,
        },
    })
}

/// What the main lane does.
///
/// # Errors
/// A trace that cannot be read.
pub(crate) fn kind(load: &LoadArguments, ways: &Connections) -> Result<LaneKind, String> {
    if let Some(path) = &load.trace {
        let arrivals = Arrivals::Trace(parse_trace(&read(path)?).map_err(|fault| in_file(path, &fault))?);
        // A trace has its own times; the rate only has to be one.
        let profile = Profile::Steady { rate_per_s: 1.0 };
        return Ok(LaneKind::Open { arrivals, profile, slots: slots(ways, load.connections) });
    }
    if let Some(profile) = load.rate.clone() {
        let arrivals = load.arrivals.clone().unwrap_or(Arrivals::Constant);
        return Ok(LaneKind::Open { arrivals, profile, slots: slots(ways, load.connections) });
    }
    let connections = load.connections.unwrap_or(CLOSED_CONNECTIONS);
    let interval = load.interval;
    Ok(match load.slow {
        Some(slow) => slow_kind(slow, connections, interval),
        None => LaneKind::Closed {
            connections,
            pipeline: load.pipeline.max(1),
            requests_per_connection: if ways.no_keep_alive { Some(1) } else { load.requests_per_connection },
            requests: load.requests,
        },
    })
}

/// What a slow lane does.
pub(crate) fn slow_kind(slow: Slow, connections: u32, interval: Duration) -> LaneKind {
    match slow {
        Slow::Headers => LaneKind::SlowHeaders { connections, interval },
        Slow::Body => LaneKind::SlowBody { connections, interval, length_bytes: SLOW_BODY_BYTES },
        Slow::Reader => LaneKind::SlowReader { connections, interval },
    }
}

/// How long the main lane offers.
pub(crate) fn duration(load: &LoadArguments) -> Option<Duration> {
    match (load.duration, load.requests, &load.trace) {
        (None, Some(_), _) | (None, _, Some(_)) => None,
        (duration, ..) => {
            let length = || load.rate.as_ref().and_then(Profile::length_s).map(Duration::from_secs_f64);
            duration.or_else(length).or(Some(DURATION))
        }
    }
}

/// What a request of an open loop travels on.
pub(crate) fn slots(ways: &Connections, connections: Option<u32>) -> SlotPlan {
    if ways.no_keep_alive {
        SlotPlan::PerRequest
    } else {
        SlotPlan::Kept { connections_max: connections.unwrap_or(KEPT_CONNECTIONS_MAX) }
    }
}

fn mix(requests: &Requests, url: &Url, keep_alive: bool) -> Result<MixPlan, String> {
    let mut mix = match &requests.urls {
        Some(path) => MixPlan::from_file(path, Some(url)).map_err(told)?,
        None if requests.webstone => MixPlan::webstone(url),
        None => MixPlan::single(url),
    };
    if let Some(exponent) = requests.zipf {
        mix.choice = Choice::Zipf { exponent };
    } else if requests.in_order {
        mix.choice = Choice::InOrder;
    }
    mix.keep_alive = keep_alive;
    let fields = requests.header.iter().map(|text| field(text)).collect::<Result<Vec<_>, _>>()?;
    let (body, plain_body) = body(requests.body.as_deref())?;
    let method = method(requests);
    for MixEntry { request, check, .. } in &mut mix.entries {
        request.method.clone_from(&method);
        request.fields.clone_from(&fields);
        request.body.clone_from(&body);
        request.plain_body = plain_body;
        if let Some(status) = &requests.expect_status {
            check.status = status.clone();
        }
        if let Some(expected) = &requests.expect_body {
            check.body = expected.clone();
        }
    }
    Ok(mix)
}

/// A request with a body is a POST unless something else is said, as with curl.
fn method(requests: &Requests) -> String {
    let usual = if requests.body.is_some() { "POST" } else { "GET" };
    requests.method.clone().unwrap_or_else(|| usual.to_owned())
}

/// `Name: value`.
///
/// # Errors
/// Shows the right form.
pub(crate) fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.trim().to_owned())),
        _ => {
            Err(format!("--header '{text}': write a name, a colon and a value, such as 'Accept: text/html'"))
        }
    }
}

/// The body, and whether braces in it mean nothing: in a file they do not.
fn body(text: Option<&str>) -> Result<(Vec<u8>, bool), String> {
    let Some(text) = text else { return Ok((Vec::new(), false)) };
    match text.strip_prefix('@') {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))?;
            Ok((bytes, true))
        }
        None => Ok((text.as_bytes().to_vec(), false)),
    }
}

/// A thread per processor asked for, or as many threads as asked for.
///
/// # Errors
/// Names the processor that may not be used.
pub(crate) fn threads(generator: &Generator) -> Result<Vec<Option<usize>>, String> {
    let allowed = cpu::available_cpus().map_err(|error| format!("cannot list the processors: {error}"))?;
    let Some(CpuList(cpus)) = &generator.cpus else {
        let usual = (allowed.len() / 2).max(1);
        return Ok(vec![None; generator.threads.map_or(usual, |threads| usize::from(threads).max(1))]);
    };
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(format!("--cpus: processor {cpu} is not one this process may use ({allowed:?})"));
    }
    let count = generator.threads.map_or(cpus.len(), |threads| usize::from(threads).max(1));
    Ok((0..count).map(|thread| Some(cpus[thread % cpus.len()])).collect())
}

/// The process, when one is named, and the port.
pub(crate) fn probe(generator: &Generator, address: &Address) -> Option<ProbePlan> {
    let pid = generator.probe?;
    let port = match address {
        Address::Internet(address) => Some(address.port()),
        Address::Unix(_) => None,
    };
    Some(ProbePlan { pid: (pid != 0).then_some(pid), port })
}

/// The command line as it can be typed again.
pub(crate) fn command() -> String {
    let quote = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words = std::env::args().skip(1).map(quote);
    std::iter::once("staunch".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn in_file(path: &Path, fault: &Fault) -> String {
    format!("{}: {fault}", path.display())
}

/// The sentence of a fault.
pub(crate) fn told(fault: Fault) -> String {
    fault.to_string()
}
