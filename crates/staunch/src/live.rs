//! From the settings' words for live data to what the server is told.
//!
//! It must never judge a value but the token's file: the settings were read strictly.

use std::path::Path;
use std::time::Duration;

use staunch_config::Config;
use staunch_config::groups::LiveTopicRule;
use staunch_config::syntax::choice::TopicKind;
use staunch_server::{LiveConfig, LiveTopic, LiveTopicKind};

use crate::config::Failure;

/// What is served of live data, if any is. `connections_max` is how many connections there may be.
///
/// # Errors
/// The file with the token cannot be read, or something has no meaning.
pub(crate) fn of(config: &Config, connections_max: u64) -> Result<Option<LiveConfig>, Failure> {
    let live = &config.live;
    if !live.live {
        return Ok(None);
    }
    let readers_max = live.live_connections.unwrap_or(connections_max / 2).max(1);
    if readers_max > connections_max {
        let text = format!(
            "live_connections: {readers_max} is more than there may be connections ({connections_max}): \
             raise max_connections, or ulimit -n if that allows no more"
        );
        return Err(Failure::configuration(text));
    }
    let token = live.publish_token.as_ref().map(|token| token.clone().into_bytes());
    let token = match &live.publish_token_file {
        Some(file) => Some(read_token(file)?),
        None => token,
    };
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let config = LiveConfig {
        topics_max: whole(live.live_topics),
        value_bytes_max: whole(live.live_value_size),
        memory_bytes: whole(live.live_memory),
        readers_max,
        origins: live.live_origins.clone(),
        publish_token: token,
        topics: live.live_topic.iter().map(topic).collect(),
    };
    config.check().map_err(|error| Failure::configuration(error.to_string()))?;
    Ok(Some(config))
}

/// The first line of the token's file.
fn read_token(file: &Path) -> Result<Vec<u8>, Failure> {
    let fault = |error| Failure::configuration(format!("publish_token_file: {}: {error}", file.display()));
    let text = std::fs::read(file).map_err(fault)?;
    Ok(text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii().to_vec())
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
        cache_control: rule.cache.clone(),
    }
}
