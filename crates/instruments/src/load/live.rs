//! `staunch load live`: many readers of live data, and updates that are published meanwhile.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use console::Term;
use staunch_loadgen::live::{self, LiveOutcome, LivePlan, LiveView, LiveWay, PublishPlan, ReaderPlan};
use staunch_loadgen::live::{STAMP_BYTES_MAX, TOPIC_VARIABLE};
use staunch_loadgen::schedule::{Arrivals, Profile};
use staunch_loadgen::url::{self, Url};
use staunch_loadgen::{RunControl, sources};
use staunch_netio::Address;
use staunch_program::output;

use super::arguments::Generator;
use super::files::Sink;
use super::plan::{self, told};
use super::{CROSSED, keys};
use crate::units;

/// What stands at the end of the help.
const EXAMPLES: &str = "\
Examples:
  staunch load live 'http://127.0.0.1:8080/events?topic=load' -c 10k --rate 10/s --token SECRET
  staunch load live 'http://127.0.0.1:8080/events?topic={{topic}}' --topics 100 -c 10k -r 1k/s --token SECRET
  staunch load live 'ws://127.0.0.1:8080/ws?topic=load' -c 10k -r 10/s --token SECRET
  staunch load live 'http://127.0.0.1:3000/.well-known/mercure?topic=load' --publish-as form \\
      --publish-to http://127.0.0.1:3000/.well-known/mercure -r 10/s --token JWT
  staunch load live 'http://127.0.0.1:8080/sub?id=load' --publish-as post \\
      --publish-to 'http://127.0.0.1:8080/pub?id={{topic}}' -r 10/s
  staunch load live ws://127.0.0.1:8000/connection/websocket --send '{\"id\":1,\"connect\":{}}' \\
      --send '{\"id\":2,\"subscribe\":{\"channel\":\"{{topic}}\"}}' -c 10k -r 10/s \\
      --publish-to http://127.0.0.1:8000/api/publish --publish-header 'X-API-Key: KEY' \\
      --publish-body '{\"channel\":\"{{topic}}\",\"data\":\"{{value}}\"}'
  staunch load live 'http://127.0.0.1:8080/events?topic=load' -c 10k        listens only, for 10 s

Exit codes:
  0  it ran; updates that were lost change nothing, --fail-on-loss does
  1  it could not run, no reader's stream was opened, or nothing could be published
  2  it was called wrongly
  3  --fail-on-loss: an update was lost, came twice or out of order";

/// What the command line says.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What readers ask for, such as 'http://127.0.0.1:8080/events?topic=load', or by WebSocket
    /// 'ws://127.0.0.1:8080/ws?topic=load'; {{topic}} stands for the name of their topic
    #[arg(value_name = "URL")]
    url: String,

    #[command(flatten)]
    readers: Readers,
    #[command(flatten)]
    publishing: Publishing,
    #[command(flatten)]
    generator: Generator,

    /// Write the result as JSON
    #[arg(long, value_name = "FILE|-", help_heading = "Results")]
    json: Option<PathBuf>,

    /// Exit with 3 when an update was lost, came twice or out of order
    #[arg(long, help_heading = "Results")]
    fail_on_loss: bool,

    /// Show no progress
    #[arg(long, short, help_heading = "Results")]
    quiet: bool,
}

/// Readers of live data: how many, and of what.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Readers")]
struct Readers {
    /// How many readers
    #[arg(long, short, value_name = "N", value_parser = units::count, default_value = "1000")]
    connections: u64,

    /// Connect at most so many a second
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    open_rate: Option<f64>,

    /// Begin without those who are not there after so long
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "60s")]
    join_within: Duration,

    /// How many topics; readers and updates are dealt out among them
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    topics: u32,

    /// Name of the topic; with several, NAME.0, NAME.1 and so on
    #[arg(long, value_name = "NAME", default_value = "load")]
    topic: String,

    /// A header field of readers' requests such as 'Cookie: a=b'; may be repeated
    #[arg(long, short = 'H', value_name = "FIELD")]
    header: Vec<String>,

    /// A message that is sent when a WebSocket is open, with {{topic}}; may be repeated
    #[arg(long, value_name = "TEXT")]
    send: Vec<String>,

    /// So many readers stop reading once they are there
    #[arg(long, value_name = "N", value_parser = units::count)]
    stalled: Option<u64>,

    /// Cut off so many readers a second; they come back
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    cut: Option<f64>,

    /// Come back after so long [default: what the stream says by `retry`, else 1s]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    return_after: Option<Duration>,

    /// Come back without Last-Event-ID
    #[arg(long)]
    no_resume: bool,

    /// Let readers skip an update when a later one comes, as of a topic whose latest value counts
    #[arg(long)]
    may_skip: bool,

    /// Connect from these addresses in turn
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    source: Vec<IpAddr>,

    /// Connect to this Unix socket; the URL gives host and path
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
}

/// What is published.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Updates")]
struct Publishing {
    /// Publish so many a second, of all topics together: 10/s, '1/s..1k/s over 30s'; without, only listen
    #[arg(long, short, value_name = "RATE", value_parser = units::profile)]
    rate: Option<Profile>,

    /// How updates are spread: constant, poisson, self-similar:HURST
    #[arg(long, value_name = "HOW", value_parser = units::arrivals, requires = "rate")]
    arrivals: Option<Arrivals>,

    /// Publish, or listen, for so long [default: 10s, with --updates as long as they take]
    #[arg(long, short, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Publish so many updates
    #[arg(long, short = 'n', value_name = "N", value_parser = units::count, requires = "rate")]
    updates: Option<u64>,

    /// Length of a value in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    size: usize,

    /// Where to publish; {{topic}} stands for the topic [default: /publish of the URL's host]
    #[arg(long, value_name = "URL", requires = "rate")]
    publish_to: Option<String>,

    /// How a publication is written: JSON, a form as of Mercure, or the value alone by PUT or POST
    #[arg(
        long,
        value_name = "json|form|put|post",
        value_enum,
        hide_possible_values = true,
        default_value = "json"
    )]
    publish_as: PublishAs,

    /// Body of a publication, with {{topic}} and {{value}}, in place of that of --publish-as
    #[arg(long, value_name = "TEXT", requires = "rate")]
    publish_body: Option<String>,

    /// A header field of publications; may be repeated
    #[arg(long, value_name = "FIELD", requires = "rate")]
    publish_header: Vec<String>,

    /// Token of the publisher, sent as Authorization: Bearer [default: STAUNCH_PUBLISH_TOKEN of the
    /// environment]
    #[arg(long, value_name = "TOKEN", requires = "rate")]
    token: Option<String>,

    /// How many connections publish; each topic's updates go over one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    publishers: u16,

    /// End when nothing came for so long after the last update
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "2s")]
    settle: Duration,
}

/// How a publication is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PublishAs {
    /// `{"topic": ..., "data": ...}` by POST
    Json,
    /// `topic=...&data=...` by POST
    Form,
    /// The value by PUT
    Put,
    /// The value by POST
    Post,
}

impl PublishAs {
    fn method(self) -> &'static str {
        if self == Self::Put { "PUT" } else { "POST" }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Form => "application/x-www-form-urlencoded",
            Self::Put | Self::Post => "text/plain",
        }
    }

    fn body(self) -> &'static str {
        match self {
            Self::Json => "{\"topic\":\"{{topic}}\",\"data\":\"{{value}}\"}",
            Self::Form => "topic={{topic}}&data={{value}}",
            Self::Put | Self::Post => "{{value}}",
        }
    }
}

/// How long it publishes or listens when nothing else is said.
const DURATION: Duration = Duration::from_secs(10);

/// Reads and publishes.
///
/// # Errors
/// Whatever keeps the plan from being carried out; when no reader's stream was opened, and when updates were
/// to be published and none was.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let plan = live_plan(arguments)?;
    let mut sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let control = Arc::new(RunControl::default());
    keys::end_on_signal(&control)?;
    let updates = plan.publishing.as_ref().and_then(|publishing| publishing.updates);
    let readers = u64::from(plan.readers.count);
    let mut view = (!arguments.quiet).then(|| LiveView::new(readers, plan.duration, updates));
    let outcome = live::run_live(&plan, &control, &mut |moment| {
        if let Some(view) = &mut view {
            view.observe(moment);
        }
    });
    if let Some(view) = &mut view {
        view.finish();
    }
    let outcome = outcome.map_err(told)?;
    let to_stdout = arguments.json.as_deref() == Some("-".as_ref());
    if let Some(sink) = &mut sink {
        sink.write(&live::json(&outcome))?;
    }
    if !(arguments.quiet && to_stdout) {
        summarise(&outcome, to_stdout);
    }
    judge(&outcome, arguments.fail_on_loss)
}

fn summarise(outcome: &LiveOutcome, to_stdout: bool) {
    let terminal = if to_stdout { Term::stderr() } else { Term::stdout() };
    let colour = terminal.features().colors_supported();
    let text = live::summary(outcome, colour, usize::from(terminal.size().1));
    if to_stdout {
        output::remark(&text);
    } else {
        output::print(&text);
    }
}

/// What the exit code says.
fn judge(outcome: &LiveOutcome, fail_on_loss: bool) -> Result<ExitCode, String> {
    let because =
        |fault: &Option<String>| fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default();
    if outcome.readers > 0 && outcome.counts.opened == 0 {
        return Err(format!("no stream of {} was opened{}", outcome.target, because(&outcome.first_fault)));
    }
    let told = &outcome.publications;
    if told.published == 0 && told.refused + told.unanswered + told.unsent > 0 {
        return Err(format!("nothing was published{}", because(&told.first_fault)));
    }
    let counts = &outcome.counts;
    if fail_on_loss && counts.lost + counts.duplicated + counts.out_of_order > 0 {
        output::remark(&format!(
            "staunch: failed: {} updates were lost, {} came twice, {} out of order\n",
            counts.lost, counts.duplicated, counts.out_of_order
        ));
        return Ok(ExitCode::from(CROSSED));
    }
    Ok(ExitCode::SUCCESS)
}

fn live_plan(arguments: &Arguments) -> Result<LivePlan, String> {
    let (readers, publishing) = (&arguments.readers, &arguments.publishing);
    let topics = topics(readers);
    check_topic(&readers.topic)?;
    if topics.len() > 1 && !arguments.url.contains(TOPIC_VARIABLE) {
        return Err(format!(
            "--topics {}: the URL has to say {TOPIC_VARIABLE} where the topic stands",
            topics.len()
        ));
    }
    let (way, url) = way(&arguments.url);
    if way == LiveWay::Events && !readers.send.is_empty() {
        return Err("--send is for WebSockets: the URL has to begin with ws://".to_owned());
    }
    let urls = urls(&url, &topics)?;
    let address = match &readers.unix {
        Some(path) => Address::Unix(path.clone()),
        None => Address::Internet(url::resolve(&urls[0]).map_err(told)?),
    };
    let count = u32::try_from(readers.connections).map_err(|_| "at most 4 294 967 295 readers".to_owned())?;
    let publishing = match &publishing.rate {
        Some(rate) => Some(publish_plan(publishing, rate, &topics, &urls[0], &address)?),
        None => None,
    };
    let probe = plan::probe(&arguments.generator, &address);
    let has_count = arguments.publishing.updates.is_some();
    Ok(LivePlan {
        command: command(&arguments.publishing),
        target: arguments.url.clone(),
        sources: sources::enough(&address, &readers.source, u64::from(count)).map_err(told)?,
        address,
        threads: plan::threads(&arguments.generator)?,
        io: plan::io(&arguments.generator),
        seed: arguments.generator.seed,
        topics,
        readers: ReaderPlan {
            count,
            way,
            urls,
            fields: fields(&readers.header)?,
            open_per_s: readers.open_rate,
            stalled: u32::try_from(readers.stalled.unwrap_or(0)).unwrap_or(u32::MAX),
            cut_per_s: readers.cut,
            resume: !readers.no_resume,
            return_after: readers.return_after,
            may_skip: readers.may_skip,
            messages: readers.send.clone(),
        },
        publishing,
        duration: arguments.publishing.duration.or((!has_count).then_some(DURATION)),
        join_within: readers.join_within,
        settle: arguments.publishing.settle,
        probe,
    })
}

fn publish_plan(
    publishing: &Publishing,
    rate: &Profile,
    topics: &[String],
    readers: &Url,
    address: &Address,
) -> Result<PublishPlan, String> {
    if publishing.size < STAMP_BYTES_MAX {
        return Err(format!("--size {}: a value has at least {STAMP_BYTES_MAX} bytes", publishing.size));
    }
    let usual = format!("http://{}/publish", readers.authority());
    let urls = urls(publishing.publish_to.as_deref().unwrap_or(&usual), topics)?;
    let address = match &publishing.publish_to {
        Some(_) => Address::Internet(url::resolve(&urls[0]).map_err(told)?),
        None => address.clone(),
    };
    let way = publishing.publish_as;
    let mut fields = fields(&publishing.publish_header)?;
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        fields.push(("Content-Type".to_owned(), way.content_type().to_owned()));
    }
    if let Some(token) = token(publishing) {
        fields.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    check_fields(&fields)?;
    Ok(PublishPlan {
        urls,
        address,
        method: way.method().to_owned(),
        fields,
        body: publishing.publish_body.clone().unwrap_or_else(|| way.body().to_owned()),
        profile: rate.clone(),
        arrivals: publishing.arrivals.clone().unwrap_or(Arrivals::Constant),
        updates: publishing.updates,
        value_bytes: publishing.size,
        connections: publishing.publishers,
    })
}

/// The token of the command line, or of the environment.
fn token(publishing: &Publishing) -> Option<String> {
    publishing.token.clone().or_else(|| std::env::var("STAUNCH_PUBLISH_TOKEN").ok())
}

/// The command line without what is secret in it.
fn command(publishing: &Publishing) -> String {
    let command = plan::command();
    match publishing.token.as_deref() {
        Some(token) if !token.is_empty() => command.replace(token, "..."),
        _ => command,
    }
}

/// How readers read, and the URL as one of HTTP.
fn way(url: &str) -> (LiveWay, String) {
    match url.split_at_checked(5) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws://") => {
            (LiveWay::WebSocket, format!("http://{rest}"))
        }
        _ => (LiveWay::Events, url.to_owned()),
    }
}

fn topics(readers: &Readers) -> Vec<String> {
    match readers.topics {
        1 => vec![readers.topic.clone()],
        many => (0..many).map(|number| format!("{}.{number}", readers.topic)).collect(),
    }
}

/// The name stands in URLs, forms and JSON as it is.
fn check_topic(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "--topic {name:?}: letters, digits, point, hyphen and underscore can stand in it"
        ));
    }
    Ok(())
}

fn urls(text: &str, topics: &[String]) -> Result<Vec<Url>, String> {
    let url = |topic: &String| {
        let url: Url = text.replace(TOPIC_VARIABLE, topic).parse().map_err(told)?;
        if url.secure {
            Err(format!("`{text}`: live data is read by http:// and ws:// only"))
        } else {
            Ok(url)
        }
    };
    topics.iter().map(url).collect()
}

fn fields(texts: &[String]) -> Result<Vec<(String, String)>, String> {
    let fields = texts.iter().map(|text| plan::field(text)).collect::<Result<Vec<_>, _>>()?;
    check_fields(&fields)?;
    Ok(fields)
}

fn check_fields(fields: &[(String, String)]) -> Result<(), String> {
    match fields.iter().find(|(name, value)| name.contains(['\r', '\n']) || value.contains(['\r', '\n'])) {
        Some((name, _)) => Err(format!("the field {name:?} must not have a line end")),
        None => Ok(()),
    }
}
