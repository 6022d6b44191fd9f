//! `staunch certificates`: lists the store, and asks for the renewal of a certificate.
//!
//! The command must never speak with an authority itself: it puts a request into the store, for the agent of
//! the server that uses it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use staunch_acme::{AttemptOutcome, NameRecord, Store};
use staunch_config::Config;
use staunch_config::units;
use staunch_netio::clock;
use staunch_program::{Failure, output};
use staunch_service::certificates::{self, Listed, now_unix_s};

use crate::config::Loader;

/// Pause between two looks for the outcome of a renewal.
const LOOK: Duration = Duration::from_millis(100);
const DAY_S: u64 = 86_400;

/// The subcommands of `staunch certificates`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CertificatesCommand {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    list: ListArguments,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Have a certificate renewed now, and wait for what comes of it
    Renew(RenewArguments),
}

#[derive(Args, Debug)]
struct ListArguments {
    #[command(flatten)]
    place: PlaceArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct RenewArguments {
    /// Name of the certificate
    name: String,

    #[command(flatten)]
    place: PlaceArguments,

    /// Time to wait for what comes of it
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "120s")]
    timeout: Duration,
}

/// The options that say where the store is.
#[derive(Args, Debug)]
struct PlaceArguments {
    /// File with the server's settings
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The server's state folder, where the file does not say it
    #[arg(long, value_name = "DIR")]
    state_folder: Option<PathBuf>,
}

impl PlaceArguments {
    fn find(&self) -> Result<(Store, Config), Failure> {
        let folder = self.state_folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        let flags = folder.map(|folder| ("state_folder".into(), folder)).into_iter().collect();
        let config = Loader::of_service(flags, self.config.clone()).load()?;
        Ok((certificates::state_store(&config)?, config))
    }
}

/// A row of the list: a name, with its certificate if it has one yet.
struct Row {
    name: String,
    /// The file it stands in, if it is none of the store.
    file: Option<PathBuf>,
    /// First and last second of the certificate's validity, since 1970.
    life: Option<(u64, u64)>,
    record: NameRecord,
    fault: Option<String>,
}

/// Runs `staunch certificates`.
///
/// # Errors
/// The store cannot be read; a renewal failed, or did not end in time.
pub(crate) fn run(command: &CertificatesCommand) -> Result<ExitCode, Failure> {
    match &command.action {
        None => list(&command.list),
        Some(Action::Renew(arguments)) => renew(arguments),
    }
}

fn list(arguments: &ListArguments) -> Result<ExitCode, Failure> {
    let (store, config) = arguments.place.find()?;
    let rows = rows(&store, &config)?;
    if arguments.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        let folder = store.folder().display().to_string();
        output::print(&format!("{:#}\n", json!({"store": folder, "certificates": rows})));
    } else {
        output::print(&table(&rows, &store));
    }
    Ok(ExitCode::SUCCESS)
}

fn rows(store: &Store, config: &Config) -> Result<Vec<Row>, Failure> {
    let mut names = store.names().map_err(|fault| fault.to_string())?;
    names.extend(certificates::wanted_names(config));
    names.sort_unstable();
    names.dedup();
    let of_store = names.into_iter().map(|name| row(store, name));
    of_store.chain(certificates::listed(config).into_iter().map(|listed| Ok(row_of_file(listed)))).collect()
}

fn row_of_file(Listed { names, place, life }: Listed) -> Row {
    let (life, fault) = life.map_or_else(|fault| (None, Some(fault)), |life| (Some(life), None));
    Row { name: names, file: Some(place), life, record: NameRecord::default(), fault }
}

fn row(store: &Store, name: String) -> Result<Row, Failure> {
    let record = store.record(&name).map_err(|fault| fault.to_string())?;
    let (life, fault) = match store.pair(&name) {
        Ok(pair) => (pair.map(|(pair, _)| pair.validity_unix_s()), None),
        Err(fault) => (None, Some(fault.to_string())),
    };
    Ok(Row { name, file: None, life, record, fault })
}

impl Row {
    fn outcome(&self) -> String {
        match (&self.fault, &self.record.outcome) {
            (Some(fault), _) => fault.clone(),
            (None, _) if self.file.is_some() => {
                self.file.iter().map(|file| file.display().to_string()).collect()
            }
            (None, AttemptOutcome::Failed(why)) => why.clone(),
            (None, AttemptOutcome::Obtained) => "obtained".to_owned(),
            (None, AttemptOutcome::None) => "nothing attempted".to_owned(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "file": self.file,
            "not_before_unix_s": self.life.map(|(from, _)| from),
            "not_after_unix_s": self.life.map(|(_, to)| to),
            "renew_unix_s": self.record.renew_unix_s,
            "next_attempt_unix_s": self.record.not_before_unix_s,
            "failures": self.record.failures,
            "outcome": self.outcome(),
        })
    }
}

fn table(rows: &[Row], store: &Store) -> String {
    if rows.is_empty() {
        return format!("no certificates in {}, and the settings name none\n", store.folder().display());
    }
    let now = now_unix_s();
    let span = |until: u64| {
        if until < now {
            return format!("{} ago", days(now - until));
        }
        days(until - now)
    };
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(4);
    let mut text =
        format!("{:width$}  {:>12}  {:>12}  {}\n", "name", "good for", "renewed in", "last attempt, or file");
    for row in rows {
        let good = row.life.map_or("none".to_owned(), |(_, to)| span(to));
        let renewed = row.record.renew_unix_s.map_or("-".to_owned(), span);
        text.push_str(&format!("{:width$}  {good:>12}  {renewed:>12}  {}\n", row.name, row.outcome()));
    }
    text
}

fn days(seconds: u64) -> String {
    match seconds {
        0..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / DAY_S),
    }
}

fn renew(arguments: &RenewArguments) -> Result<ExitCode, Failure> {
    let (store, config) = arguments.place.find()?;
    let name = &arguments.name;
    let is_known = store.names().is_ok_and(|names| names.contains(name));
    if !is_known && !certificates::wanted_names(&config).contains(name) {
        return Err(format!("{name}: no certificate of that name in {}", store.folder().display()).into());
    }
    let record = || store.record(name).map_err(|fault| fault.to_string());
    let before = record()?;
    store.ask_for_renewal(name).map_err(|fault| fault.to_string())?;
    let until_ms = clock::now_ms() + arguments.timeout.as_millis() as u64;
    while clock::now_ms() < until_ms {
        let now = record()?;
        if now.attempts != before.attempts {
            return match now.outcome {
                AttemptOutcome::Failed(why) => Err(format!("{name}: {why}").into()),
                _ => {
                    output::print(&format!("{name}: renewed\n"));
                    Ok(ExitCode::SUCCESS)
                }
            };
        }
        clock::pause(LOOK);
    }
    // A renewal that is no longer waited for is called off.
    store.take_wish(name);
    Err(format!("{name}: nothing came of it within {} s: does a server run?", arguments.timeout.as_secs())
        .into())
}
