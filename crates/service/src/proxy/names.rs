//! The names of servers, and where they lead at present.
//!
//! A name that fails must never take the last addresses from an application. What the resolver tells is
//! judged here: names and ports are those of the settings, and addresses as many as a name may have.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread::ScopedJoinHandle;

use crate::resolver::{ADDRESSES_MAX, Addresses, Found};

/// The names of all servers, each with its port.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, Name>);

/// A name, and what is known of it.
#[derive(Debug, Default)]
struct Name {
    addresses: Vec<SocketAddr>,
    /// Whether the last lookup led nowhere.
    fails: bool,
    /// Whether it has more addresses than are asked.
    is_cut: bool,
}

/// The consequence of a lookup.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NameChange {
    /// Whether the name leads elsewhere now.
    pub(crate) has_moved: bool,
    /// Lines for the operator.
    pub(crate) lines: Vec<String>,
}

impl Names {
    /// Names that were looked up at the start, all at the same time, and lines about those that lead nowhere.
    pub(crate) fn looked_up(
        all: impl IntoIterator<Item = String>,
        look_up: impl Fn(&str) -> Result<Addresses, String> + Sync,
    ) -> (Self, Vec<String>) {
        let (mut names, mut lines) = (Self::default(), Vec::new());
        for (name, outcome) in all_at_once(all, &look_up) {
            names.0.insert(name.clone(), Name::default());
            let has_failed = outcome.is_err();
            // That a name leads somewhere at the start is no news.
            let said = names.hear(Found { name, outcome }).lines.into_iter();
            lines.extend(said.skip(usize::from(!has_failed)));
        }
        (names, lines)
    }

    /// Where a name leads; of one that is not known or leads nowhere there is nothing.
    pub(crate) fn addresses(&self, name: &str) -> &[SocketAddr] {
        self.0.get(name).map_or(&[], |name| &name.addresses)
    }

    /// Whether a name is followed.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// A name was looked up.
    pub(crate) fn hear(&mut self, found: Found) -> NameChange {
        let Found { name: text, outcome } = found;
        let Some(name) = self.0.get_mut(&text) else { return NameChange::default() };
        match outcome {
            Ok(addresses) => name.lead_to(addresses, &text),
            Err(reason) => name.fail(&reason, &text),
        }
    }
}

/// Looks up each name on a thread of its own: one that is not answered for takes no time from the others.
fn all_at_once(
    all: impl IntoIterator<Item = String>,
    look_up: &(impl Fn(&str) -> Result<Addresses, String> + Sync),
) -> Vec<(String, Result<Addresses, String>)> {
    std::thread::scope(|scope| {
        let begin = |name: String| {
            let asked = name.clone();
            let lookup = std::thread::Builder::new().spawn_scoped(scope, move || look_up(&asked));
            (name, lookup)
        };
        let begun: Vec<_> = all.into_iter().map(begin).collect();
        let end = |(name, lookup): (String, std::io::Result<ScopedJoinHandle<'_, _>>)| {
            // Without a thread for it, a name is looked up behind the others.
            let outcome = lookup.ok().and_then(|lookup| lookup.join().ok()).unwrap_or_else(|| look_up(&name));
            (name, outcome)
        };
        begun.into_iter().map(end).collect()
    })
}

impl Name {
    fn lead_to(&mut self, found: Addresses, text: &str) -> NameChange {
        let Addresses { mut all, left_out } = found;
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        all.retain(|address| Some(address.port()) == port);
        all.truncate(ADDRESSES_MAX);
        if all.is_empty() {
            return self.fail("the name has no address", text);
        }
        let mut lines = Vec::new();
        let has_failed = std::mem::take(&mut self.fails);
        let has_moved = self.addresses != all;
        if has_moved {
            let listed: Vec<String> = all.iter().map(ToString::to_string).collect();
            lines.push(format!("proxy: {text} leads to {}", listed.join(", ")));
            self.addresses = all;
        } else if has_failed {
            lines.push(format!("proxy: {text} is found again, where it was"));
        }
        let was_cut = std::mem::replace(&mut self.is_cut, left_out > 0);
        if self.is_cut && !was_cut {
            let count = self.addresses.len() + left_out;
            lines.push(format!("proxy: {text} has {count} addresses, of which {ADDRESSES_MAX} are asked"));
        }
        NameChange { has_moved, lines }
    }

    fn fail(&mut self, reason: &str, text: &str) -> NameChange {
        if std::mem::replace(&mut self.fails, true) {
            return NameChange::default();
        }
        let consequence = match self.addresses.is_empty() {
            true => "no request goes there until it leads somewhere",
            false => "requests go where it led last",
        };
        NameChange { has_moved: false, lines: vec![format!("proxy: {text}: {reason}: {consequence}")] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "app:80";

    fn to(texts: &[&str]) -> Result<Addresses, String> {
        let all = texts.iter().map(|text| text.parse().expect("an address")).collect();
        Ok(Addresses { all, left_out: 0 })
    }

    fn hear(names: &mut Names, outcome: Result<Addresses, String>) -> (bool, usize) {
        let NameChange { has_moved, lines } = names.hear(Found { name: NAME.into(), outcome });
        (has_moved, lines.len())
    }

    #[test]
    fn a_name_that_fails_leads_where_it_led_and_each_change_is_told_once() {
        let (mut names, lines) = Names::looked_up([NAME.to_owned()], |_| to(&["10.0.0.1:80"]));
        assert_eq!(lines, [""; 0]);
        assert_eq!(hear(&mut names, to(&["10.0.0.1:80"])), (false, 0));
        assert_eq!(hear(&mut names, to(&["10.0.0.1:80", "10.0.0.2:80"])), (true, 1));
        assert_eq!(hear(&mut names, Err("no answer".into())), (false, 1));
        assert_eq!(hear(&mut names, Err("no such name".into())), (false, 0));
        assert_eq!(names.addresses(NAME).len(), 2);
        assert_eq!(hear(&mut names, to(&["10.0.0.1:80", "10.0.0.2:80"])), (false, 1));
        assert_eq!(hear(&mut names, to(&[])), (false, 1));
        assert_eq!(names.addresses(NAME).len(), 2);
    }

    #[test]
    fn a_name_that_led_nowhere_at_the_start_begins_to() {
        let (mut names, lines) = Names::looked_up([NAME.to_owned()], |_| Err("no such name".into()));
        assert_eq!(lines, ["proxy: app:80: no such name: no request goes there until it leads somewhere"]);
        assert!(names.knows(NAME) && names.addresses(NAME).is_empty());
        assert_eq!(hear(&mut names, to(&["10.0.0.1:80"])), (true, 1));
    }

    #[test]
    fn what_the_resolver_must_not_tell_changes_nothing() {
        let (mut names, _) = Names::looked_up([NAME.to_owned()], |_| to(&["10.0.0.1:80"]));
        let other = names.hear(Found { name: "other:80".into(), outcome: to(&["10.0.0.2:80"]) });
        assert_eq!(other, NameChange::default());
        assert_eq!(hear(&mut names, to(&["10.0.0.2:81"])), (false, 1), "another port");
        let many: Vec<String> = (0..200).map(|number| format!("10.0.0.{number}:80")).collect();
        let many = to(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(hear(&mut names, many), (true, 1));
        assert_eq!(names.addresses(NAME).len(), ADDRESSES_MAX);
    }

    #[test]
    fn addresses_that_are_too_many_are_told_of_once() {
        let (mut names, _) = Names::looked_up([NAME.to_owned()], |_| to(&["10.0.0.1:80"]));
        let cut = |address: &str| to(&[address]).map(|found| Addresses { left_out: 5, ..found });
        assert_eq!(hear(&mut names, cut("10.0.0.1:80")), (false, 1));
        assert_eq!(hear(&mut names, cut("10.0.0.2:80")), (true, 1), "only that it has moved");
    }
}
