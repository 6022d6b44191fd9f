//! From the settings' words for live data to what the server is told.
//!
//! It must never judge a value but the token's file: the settings were read strictly.

use std::path::Path;
use std::time::Duration;

use staunch_config::groups::{Live, LiveIssuerRule, LiveTopicRule};
use staunch_config::syntax::choice::{SyncTime, TopicKind};
use staunch_config::{Config, Site};
use staunch_live::token::Issuer;
use staunch_netio::named_file::{read_file, read_handed_text};
use staunch_program::Failure;
use staunch_server::limits::LIVE_SITES_MAX;
use staunch_server::{LiveConfig, LiveIssuer, LiveKeys, LiveState, LiveSync, LiveTopic, LiveTopicKind};

use crate::limits::SECRET_FILE_BYTES_MAX;

/// What is served of live data, by each site that has it. `connections_max` is how many connections there may
/// be, `node` the number of this server among others that publish to the same topics.
///
/// # Errors
/// A file with a token cannot be read, or something has no meaning.
pub(crate) fn of(
    config: &Config,
    connections_max: u64,
    node: Option<u16>,
) -> Result<Vec<LiveConfig>, Failure> {
    let sites: Vec<&Site> = config.sites.iter().filter(|site| site.live.live).collect();
    if sites.len() > LIVE_SITES_MAX {
        let text = format!(
            "live: {} sites have live data, and {LIVE_SITES_MAX} may: say `live = true` in those that need \
             it, not at the top",
            sites.len()
        );
        return Err(Failure::configuration(text));
    }
    let share = connections_max / 2 / sites.len().max(1) as u64;
    let configs = sites.iter().map(|site| {
        let of_site = of_site(site, share, config);
        of_site.map_err(|failure| if config.sites.len() == 1 { failure } else { within(site, &failure) })
    });
    let configs = configs.map(|config| config.map(|config| LiveConfig { node, ..config }));
    let configs: Vec<LiveConfig> = configs.collect::<Result<_, _>>()?;
    let readers_max = configs.iter().fold(0, |sum: u64, site| sum.saturating_add(site.readers_max));
    if readers_max > connections_max {
        let text = format!(
            "live_connections: {readers_max} is more than there may be connections ({connections_max}): \
             raise max_connections, or ulimit -n if that allows no more"
        );
        return Err(Failure::configuration(text));
    }
    Ok(configs)
}

/// A failure that names its site.
fn within(site: &Site, failure: &Failure) -> Failure {
    let name = if site.hosts.is_empty() { "every other host" } else { site.name() };
    Failure::configuration(format!("{} (site {name})", failure.text))
}

/// What is served of live data by a site. `share` is how many readers it has unless its settings say it.
fn of_site(site: &Site, share: u64, config: &Config) -> Result<LiveConfig, Failure> {
    let live = &site.live;
    let token = live.publish_token.as_ref().map(|token| token.clone().into_bytes());
    let token = match &live.publish_token_file {
        Some(file) => Some(read_token("publish_token_file", file)?),
        None => token,
    };
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let config = LiveConfig {
        site: site.name().to_owned(),
        is_default: site.default,
        topics_max: whole(live.live_topics),
        value_bytes_max: whole(live.live_value_size),
        memory_bytes: whole(live.live_memory),
        readers_max: live.live_connections.unwrap_or(share).max(1),
        origins: live.live_origins.clone(),
        issuers: live.live_issuer.iter().map(issuer).collect::<Result<_, _>>()?,
        quotes_prefix: live.live_quotes_prefix.clone().unwrap_or_default(),
        cookie: live.live_cookie.clone(),
        echo: live.live_echo,
        publish_token: token,
        topics: live.live_topic.iter().map(topic).collect(),
        state: live.live_state.as_deref().map(|folder| state(folder, live, config)).transpose()?,
        node: None,
    };
    config.check().map_err(|error| Failure::configuration(error.to_string()))?;
    Ok(config)
}

/// The store's settings, from its folder. A folder inside a site is refused: the store would be served.
fn state(folder: &Path, live: &Live, config: &Config) -> Result<LiveState, Failure> {
    refuse_served(folder, config)?;
    let sync = match live.live_sync {
        SyncTime::Always => LiveSync::Always,
        SyncTime::Interval => LiveSync::Interval,
        SyncTime::Off => LiveSync::Off,
    };
    Ok(LiveState { folder: folder.to_owned(), sync, is_awaited: false })
}

fn refuse_served(folder: &Path, config: &Config) -> Result<(), Failure> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut roots = config.sites.iter().flat_map(Site::roots);
    let Some(root) = roots.find(|root| whole(folder).starts_with(whole(root))) else { return Ok(()) };
    let (folder, root) = (folder.display(), root.display());
    let text = format!("live_state: {folder} stands in {root}, which is served: name another folder");
    Err(Failure::configuration(text))
}

/// Refuses new settings whose sites would serve a store that is in use since the start.
///
/// # Errors
/// Which one.
pub(crate) fn refuse_served_stores(started: &Config, new: &Config) -> Result<(), Failure> {
    let with_live = started.sites.iter().filter(|site| site.live.live);
    let mut folders = with_live.filter_map(|site| site.live.live_state.as_deref());
    folders.try_for_each(|folder| refuse_served(folder, new))
}

/// The issuers of all sites, with keys that were read.
///
/// # Errors
/// A file cannot be read, or a key cannot be used.
pub fn issuers(config: &Config) -> Result<Vec<Issuer>, Failure> {
    let rules = config.sites.iter().flat_map(|site| &site.live.live_issuer);
    let read = |rule| issuer(rule)?.read().map_err(|error| Failure::configuration(error.to_string()));
    rules.map(read).collect()
}

/// An issuer, with its keys as they stand in its file.
fn issuer(rule: &LiveIssuerRule) -> Result<LiveIssuer, Failure> {
    let keys = match (&rule.secret_file, &rule.jwks_file) {
        (Some(file), _) => LiveKeys::Secret(read_token("live_issuer: secret_file", file)?),
        (None, Some(file)) => LiveKeys::Set(read("live_issuer: jwks_file", file)?),
        (None, None) => return Err(Failure::configuration("live_issuer: it has no keys")),
    };
    Ok(LiveIssuer {
        name: rule.name.clone(),
        audience: rule.audience.clone(),
        keys,
        mercure_compatibility: rule.mercure_compatibility,
    })
}

fn read(key: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    let fault = |error| Failure::configuration(format!("{key}: {}: {error}", file.display()));
    read_file(file, SECRET_FILE_BYTES_MAX).map_err(fault)
}

/// The first line of a secret's file.
fn read_token(key: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    Ok(first_line(&read(key, file)?))
}

/// Reads the first line of a secret's file as a server does, or of a pipe that whoever gives a command
/// hands over.
///
/// # Errors
/// The file cannot be read.
pub fn read_handed_token(key: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    let by_pipe = || read_handed_text(file, SECRET_FILE_BYTES_MAX).ok().map(String::into_bytes);
    let text = read(key, file).or_else(|failure| by_pipe().ok_or(failure))?;
    Ok(first_line(&text))
}

fn first_line(text: &[u8]) -> Vec<u8> {
    text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii().to_vec()
}

/// The value of Cache-Control of polled values where a rule leaves it open. A browser keeps a dictionary
/// for as long as an answer is fresh or may be used stale: with `no-cache` for no time at all.
fn default_cache(dictionary: bool) -> &'static str {
    if dictionary { "max-age=0, stale-while-revalidate=60" } else { "no-cache" }
}

fn topic(rule: &LiveTopicRule) -> LiveTopic {
    let ms = |time: Option<Duration>| time.map_or(0, |time| time.as_millis() as u64);
    LiveTopic {
        pattern: rule.topics.clone(),
        kind: match rule.kind {
            TopicKind::Value => LiveTopicKind::Value,
            TopicKind::Log => LiveTopicKind::Log,
            TopicKind::Json => LiveTopicKind::Json,
        },
        ring_entries: usize::try_from(rule.ring).unwrap_or(usize::MAX),
        ring_bytes: usize::try_from(rule.ring_size).unwrap_or(usize::MAX),
        every_ms: ms(rule.every),
        keep_ms: ms(rule.keep),
        private: rule.private,
        cache_control: rule.cache.clone().unwrap_or_else(|| default_cache(rule.dictionary).to_owned()),
        dictionary: rule.dictionary,
    }
}
