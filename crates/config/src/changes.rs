//! What differs between two settings that a running server cannot take on.

use crate::config::Config;
use crate::group::Group as _;
use crate::groups::{GLOBAL, Live};
use crate::key::Key;
use crate::site::Site;

impl Config {
    /// Keys whose values differ between two settings and that a running server cannot take on.
    pub fn changed_needing_restart(&self, new: &Self) -> Vec<&'static str> {
        let value = |config: &Self, key: &Key| {
            let entries = &config.sections[0].entries;
            entries.iter().find(|entry| entry.key.name == key.name).map(|entry| entry.value.clone())
        };
        let keys = GLOBAL.iter().flat_map(|(_, keys)| keys.iter());
        let changed = keys.filter(|key| !key.reload && value(self, key) != value(new, key));
        let mut names: Vec<_> = changed.map(|key| key.name).collect();
        for name in new.sites.iter().flat_map(|site| self.changed_live(site)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Keys of live data that differ from those of the site of the same name. A site that is new has none
    /// yet.
    fn changed_live(&self, new: &Site) -> Vec<&'static str> {
        let Some(old) = self.sites.iter().find(|old| old.name() == new.name()) else {
            return if new.live.live { vec!["live"] } else { Vec::new() };
        };
        if !old.live.live && !new.live.live {
            return Vec::new();
        }
        let values = old.live.write().into_iter().zip(new.live.write());
        let keys = Live::KEYS.iter().zip(values);
        let mut changed: Vec<_> =
            keys.filter(|(_, (old, new))| old.1 != new.1).map(|(key, _)| key.name).collect();
        // As it is written, every secret looks the same.
        if old.live.publish_token != new.live.publish_token && !changed.contains(&"publish_token") {
            changed.push("publish_token");
        }
        changed
    }
}
