//! `staunch token`: makes a token for live data, and says what stands in one and whether it is taken.
//!
//! A token is read from a file or from standard input. It must never be an argument: others on the host could
//! read it. Nor may a secret.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use staunch_live::limits::TOKEN_BYTES_MAX;
use staunch_live::token::{Issuer, Key, Making, TokenFault, make, read_parts, verify};
use staunch_program::{Failure, output};
use staunch_service::live;

use crate::config::Loader;

/// The commands of `staunch token`.
#[derive(Args, Debug)]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print a token that may publish to topics and read private ones, signed by a secret (HS256)
    Make(MakeArguments),
    /// Print what stands in a token, and whether the server would take it
    Show(ShowArguments),
}

#[derive(Args, Debug)]
struct MakeArguments {
    /// Topic that may be published to: a name, a pattern such as users.7.>, or * for all; may be repeated
    #[arg(long, value_name = "TOPIC")]
    publish: Vec<String>,

    /// Private topic that may be read, likewise
    #[arg(long, value_name = "TOPIC")]
    subscribe: Vec<String>,

    /// For how long it holds
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    time: Duration,

    #[command(flatten)]
    whose: Whose,
}

#[derive(Args, Debug)]
struct ShowArguments {
    /// File with the token, or - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    #[command(flatten)]
    whose: Whose,
}

/// Whose tokens are meant.
#[derive(Args, Debug)]
struct Whose {
    /// File of settings whose `live_issuer` is meant; without it that of the service
    #[arg(long, short, value_name = "FILE", conflicts_with = "secret_file")]
    config: Option<PathBuf>,

    /// The issuer of this name, where there are several
    #[arg(long, value_name = "NAME")]
    issuer: Option<String>,

    /// File with the secret, alone on its first line; in place of settings
    #[arg(long, value_name = "FILE", requires = "issuer", requires = "audience")]
    secret_file: Option<PathBuf>,

    /// For whom the token is; with --secret-file
    #[arg(long, value_name = "NAME", requires = "secret_file")]
    audience: Option<String>,
}

/// Does what was asked for.
///
/// # Errors
/// There is no issuer, or the token cannot be made or read.
pub(crate) fn run(command: &TokenCommand) -> Result<(), Failure> {
    match &command.verb {
        Verb::Make(arguments) => make_one(arguments),
        Verb::Show(arguments) => show(arguments),
    }
}

fn make_one(arguments: &MakeArguments) -> Result<(), Failure> {
    if arguments.publish.is_empty() && arguments.subscribe.is_empty() {
        return Err("it would grant nothing: name topics by --publish or --subscribe".to_owned().into());
    }
    let issuers = arguments.whose.issuers()?;
    let issuer = issuers.iter().find(|issuer| issuer.keys.iter().any(Key::is_secret)).ok_or_else(|| {
        Failure::from(
            "no issuer has a `secret_file`: whoever has the private key of a set makes its tokens".to_owned(),
        )
    })?;
    let making = Making {
        publish: arguments.publish.clone(),
        subscribe: arguments.subscribe.clone(),
        now_s: now_s(),
        holds_s: arguments.time.as_secs(),
    };
    let token = make(&making, issuer).map_err(|fault| match fault {
        TokenFault::Grants => "a topic of --publish or --subscribe is none, or there are too many".to_owned(),
        fault => format!("it would be refused: {fault}"),
    })?;
    output::print(&format!("{token}\n"));
    Ok(())
}

fn show(arguments: &ShowArguments) -> Result<(), Failure> {
    let token = read(&arguments.file)?;
    let [header, claims] = read_parts(&token).map_err(|fault| format!("it cannot be shown: {fault}"))?;
    let mut text = format!("header {header:#}\nclaims {claims:#}\n");
    for (name, meaning) in [("nbf", "holds from"), ("exp", "holds until")] {
        if let Some(moment) = claims[name].as_f64().and_then(|unix_s| moment(unix_s, now_s())) {
            text += &format!("{name:<6} {meaning} {moment}\n");
        }
    }
    // A stranger's text is not to move the cursor.
    output::print(&text.lines().map(|line| output::printable(line) + "\n").collect::<String>());
    let (whose, issuers) = (&arguments.whose, arguments.whose.issuers());
    match issuers {
        Ok(issuers) => match verify(&token, &issuers, now_s()) {
            Ok(granted) => {
                let which = [("publishing", &granted.publish), ("reading", &granted.subscribe)];
                let which = which.iter().filter(|(_, grants)| !grants.is_empty());
                let named: Vec<&str> = which.map(|(name, _)| *name).collect();
                let grants = if named.is_empty() { "nothing".to_owned() } else { named.join(" and ") };
                output::print(&format!("taken: it grants {grants}\n"));
                Ok(())
            }
            Err(fault) => Err(format!("refused: {fault}").into()),
        },
        // Nothing was said of issuers: what stands in it was all that was asked.
        Err(failure) if whose.config.is_none() && whose.secret_file.is_none() && whose.issuer.is_none() => {
            output::remark(&format!("not checked: {}\n", failure.text));
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

impl Whose {
    /// Those that are meant, with their keys.
    fn issuers(&self) -> Result<Vec<Issuer>, Failure> {
        if let (Some(file), Some(name), Some(audience)) = (&self.secret_file, &self.issuer, &self.audience) {
            let key = Key::secret(&live::read_handed_token("--secret-file", file)?);
            let key = key.map_err(|fault| format!("--secret-file: {}: {fault}", file.display()))?;
            let (name, audience, mercure_compatibility) = (name.clone(), audience.clone(), false);
            return Ok(vec![Issuer { name, audience, keys: vec![key], mercure_compatibility }]);
        }
        let loader = Loader::of_service(Vec::new(), self.config.clone());
        let mut issuers = live::issuers(&loader.load()?)?;
        issuers.retain(|issuer| self.issuer.as_ref().is_none_or(|name| *name == issuer.name));
        if issuers.is_empty() {
            let text =
                format!("no `live_issuer` in {}: name --secret-file, --issuer and --audience", loader.name());
            return Err(text.into());
        }
        Ok(issuers)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let is_standard = file == Path::new("-");
    let fault = |error: std::io::Error| Failure::from(format!("{}: {error}", file.display()));
    let source: Box<dyn Read> = match is_standard {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(file).map_err(fault)?),
    };
    if is_standard && std::io::stdin().is_terminal() {
        output::remark("paste the token, then Enter and Ctrl-D\n");
    }
    let mut token = Vec::new();
    source.take(2 * TOKEN_BYTES_MAX as u64).read_to_end(&mut token).map_err(fault)?;
    let token = token.trim_ascii();
    // As it is copied from a request.
    Ok(token.strip_prefix(b"Bearer ").unwrap_or(token).to_vec())
}

fn now_s() -> u64 {
    // tidy: allow(clock): tokens are good for a time that the clock of the world tells.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A moment in seconds since 1970, and how far it is; `None` where a calendar has no room for it.
fn moment(unix_s: f64, now_s: u64) -> Option<String> {
    let year_9999 = 253_402_300_799.0;
    let whole_s = (0.0..=year_9999).contains(&unix_s).then_some(unix_s as u64)?;
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(whole_s));
    let distance = humantime::format_duration(Duration::from_secs(whole_s.abs_diff(now_s)));
    Some(if whole_s >= now_s { format!("{time}, in {distance}") } else { format!("{time}, {distance} ago") })
}
