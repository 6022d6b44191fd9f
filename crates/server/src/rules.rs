//! What applies to a path: the rules of a site, read once, and what those that match come to.
//!
//! It owns the meaning of every rule. What rules add to a response is written into prepared blocks when they
//! are made, so that it costs a request nothing; what has to be decided anew for each request is found in the
//! [`Ruling`] an entry carries. It must never look at a request or at a file but those of users.

pub(crate) mod attempts;
pub(crate) mod auth;
pub(crate) mod dictionary;
pub(crate) mod glob;
mod hashing;
mod hints;
mod identities;
pub(crate) mod line;
pub(crate) mod networks;
mod old_hashes;
pub(crate) mod sharing;
pub(crate) mod target;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use staunch_engine::{PlaceClass, Trusted};
use staunch_protocol::Status;

use crate::config::{Attempts, DemandedIdentity, Destination, PathRule, ProxyWire, Scripts, SiteRules};
use crate::content::branches::prefix_of;
use crate::limits::{RULE_FIELDS_BYTES_MAX, RULES_MAX, RULINGS_KEPT_MAX};
use attempts::Tries;
use auth::Auth;
use dictionary::DictionaryRule;
use glob::Glob;
pub use hashing::{Hashing, SALT_BYTES, hash_password};
use line::Lines;
use networks::Networks;
use sharing::Sharing;
use target::Target;

/// Statuses that may have a page of the operator's: those the site itself answers with a page.
pub const PAGE_STATUSES: [u16; 9] = [400, 401, 403, 404, 405, 410, 500, 501, 503];

/// All rules of a site.
#[derive(Debug)]
pub(crate) struct Rules {
    headers: Vec<(String, String)>,
    server_timing: bool,
    known_cookies: Arc<[Box<[u8]>]>,
    proxy: Option<Arc<Destination>>,
    /// The scripts of the site, if an application runs some.
    pub(crate) scripts: Option<Scripts>,
    /// The files that are tried where an application runs scripts and no rule says `try`.
    scripts_tries: Option<Tries>,
    paths: Vec<Rule>,
    redirects: Vec<Arc<Redirect>>,
    error_pages: Vec<(u16, Box<[u8]>)>,
    tries: Option<Tries>,
    /// Key of the file that answers for what is not there.
    pub(crate) fallback: Option<Box<[u8]>>,
    kept: Mutex<HashMap<Matched, Arc<Ruling>>>,
}

/// Which rules match a path: path rules as bits, and the first redirect.
type Matched = (Box<[u64]>, Option<usize>);

#[derive(Debug)]
struct Rule {
    glob: Glob,
    rule: PathRule,
    tries: Option<Option<Tries>>,
    proxy: Option<Option<Arc<Destination>>>,
    allow: Option<Trusted>,
    deny: Option<Trusted>,
    clients: Option<Option<Arc<DemandedIdentity>>>,
    auth: Option<Option<Arc<Auth>>>,
    sharing: Option<Option<Arc<Sharing>>>,
    dictionary: Option<Option<Arc<DictionaryRule>>>,
}

/// A redirect, ready to be applied.
#[derive(Debug)]
pub(crate) struct Redirect {
    from: Glob,
    to: Target,
    /// The status of the answer.
    pub(crate) status: Status,
}

/// What applies to a path.
#[derive(Debug, Default)]
pub(crate) struct Ruling {
    /// Field lines of every response, whatever its status.
    pub(crate) lines: Box<str>,
    /// Field lines that are sent ahead of an answer that takes its time.
    pub(crate) early_hints: Box<[u8]>,
    /// Value of Cache-Control for content.
    pub(crate) cache_control: Option<Box<str>>,
    /// Whether folders are listed, if rules say so.
    pub(crate) listing: Option<bool>,
    /// Everything is answered with 403.
    pub(crate) deny: bool,
    /// Which clients are served by their networks.
    pub(crate) networks: Networks,
    /// Which clients are served by their certificates.
    pub(crate) clients: Option<Arc<DemandedIdentity>>,
    /// Where it has gone.
    pub(crate) redirect: Option<Arc<Redirect>>,
    /// Which users may see it.
    pub(crate) auth: Option<Arc<Auth>>,
    /// Which origins may read it.
    pub(crate) sharing: Option<Arc<Sharing>>,
    /// To which former answers later ones are told as differences: only where everybody gets the same.
    pub(crate) dictionary: Option<Arc<DictionaryRule>>,
    /// The application that answers.
    pub(crate) proxy: Option<Arc<Destination>>,
    /// Whether what it answers says how long that took.
    pub(crate) server_timing: bool,
    /// How urgent requests are.
    pub(crate) class: PlaceClass,
    /// Names of cookies whose owners go before strangers.
    pub(crate) known_cookies: Arc<[Box<[u8]>]>,
    /// Processor time to burn for each file answered, in microseconds.
    pub(crate) work_us: u32,
}

impl Rules {
    /// Reads the rules of a site; `None` if there are none. Files of users are read before
    /// ([`with_users_files`]).
    ///
    /// # Errors
    /// What is wrong, with its key.
    pub(crate) fn new(rules: &SiteRules) -> Result<Option<Self>, String> {
        if *rules == SiteRules::default() {
            return Ok(None);
        }
        for (name, value) in &rules.headers {
            line::check(name, value)?;
        }
        if rules.paths.len() > RULES_MAX || rules.redirects.len() > RULES_MAX {
            return Err(format!("more than {RULES_MAX} rules for paths or redirects"));
        }
        let error_pages = rules.error_pages.iter().map(error_page).collect::<Result<_, _>>()?;
        let fallback = rules.fallback.as_deref().map(|path| file_path("fallback", path)).transpose()?;
        let rules = Self {
            headers: rules.headers.clone(),
            server_timing: rules.server_timing,
            known_cookies: rules.known_cookies.iter().map(|name| name.as_bytes().into()).collect(),
            proxy: rules.proxy.clone().map(Arc::new),
            scripts: rules.scripts.clone(),
            scripts_tries: rules.scripts.as_ref().map(scripts_tries).transpose()?,
            paths: rules.paths.iter().map(Rule::new).collect::<Result<_, _>>()?,
            redirects: rules.redirects.iter().map(redirect).collect::<Result<_, _>>()?,
            error_pages,
            tries: rules.attempts.as_ref().map(Tries::new).transpose()?,
            fallback,
            kept: Mutex::default(),
        };
        rules.check_length()?;
        Ok(Some(rules))
    }

    /// What applies to a path, if anything does. Takes a lock: for what is not held.
    pub(crate) fn of(&self, path: &[u8]) -> Option<Arc<Ruling>> {
        let matched = self.matched(path);
        if self.headers.is_empty()
            && self.proxy.is_none()
            && matched.1.is_none()
            && matched.0.iter().all(|bits| *bits == 0)
        {
            return None;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ruling) = kept.get(&matched) {
            return Some(Arc::clone(ruling));
        }
        let ruling = Arc::new(self.judge(&matched));
        if kept.len() < RULINGS_KEPT_MAX {
            kept.insert(matched, Arc::clone(&ruling));
        }
        Some(ruling)
    }

    /// Whether one application answers, to which a path goes as it was written, and every path is under the
    /// same rules.
    pub(crate) fn are_of_one_application(&self) -> bool {
        let is_http = self.proxy.as_ref().is_some_and(|proxy| proxy.wire == ProxyWire::Http);
        is_http && self.paths.is_empty() && self.redirects.is_empty()
    }

    /// Whether any path is answered by an application.
    pub(crate) fn have_proxy(&self) -> bool {
        self.proxy.is_some() || self.paths.iter().any(|rule| matches!(rule.proxy, Some(Some(_))))
    }

    /// How urgent requests for a path are, if any rule says so of it.
    pub(crate) fn class(&self, path: &[u8]) -> Option<PlaceClass> {
        let of_rule = |rule: &Rule| rule.rule.class.filter(|_| rule.glob.matches(path));
        self.paths.iter().rev().find_map(of_rule)
    }

    /// Whether any answer is told as a dictionary.
    pub(crate) fn have_dictionary(&self) -> bool {
        self.paths.iter().any(|rule| matches!(rule.dictionary, Some(Some(_))))
    }

    /// Key of the file that is the page of a status.
    pub(crate) fn error_page(&self, status: Status) -> Option<&[u8]> {
        let page = self.error_pages.iter().find(|(code, _)| *code == status.code())?;
        Some(&page.1)
    }

    /// What is tried for a path, if anything is. For what is not held.
    pub(crate) fn tries(&self, path: &[u8]) -> Option<&Tries> {
        let said = self.paths.iter().rev().find(|rule| rule.tries.is_some() && rule.glob.matches(path));
        match said {
            Some(rule) => rule.tries.as_ref().and_then(Option::as_ref),
            None => self.tries.as_ref().or_else(|| self.scripts_tries(path)),
        }
    }

    /// The files that are tried for a path because an application runs scripts for it.
    fn scripts_tries(&self, path: &[u8]) -> Option<&Tries> {
        let tries = self.scripts_tries.as_ref()?;
        let said = self.paths.iter().rev().find(|rule| rule.proxy.is_some() && rule.glob.matches(path));
        let destination = match said {
            Some(rule) => rule.proxy.as_ref()?.as_deref(),
            None => self.proxy.as_deref(),
        };
        destination.filter(|destination| destination.wire == ProxyWire::FastCgi).map(|_| tries)
    }

    /// Everything that is tried for any path.
    pub(crate) fn all_tries(&self) -> impl Iterator<Item = &Tries> {
        let of_paths = self.paths.iter().filter_map(|rule| rule.tries.as_ref()?.as_ref());
        self.tries.iter().chain(of_paths).chain(&self.scripts_tries)
    }

    fn matched(&self, path: &[u8]) -> Matched {
        let mut bits = vec![0_u64; self.paths.len().div_ceil(64)];
        for (index, rule) in self.paths.iter().enumerate() {
            bits[index / 64] |= u64::from(rule.glob.matches(path)) << (index % 64);
        }
        (bits.into(), self.redirects.iter().position(|redirect| redirect.from.matches(path)))
    }

    /// All matching rules in order; later ones override.
    fn judge(&self, matched: &Matched) -> Ruling {
        let mut lines = Lines::default();
        let (proxy, server_timing) = (self.proxy.clone(), self.server_timing);
        let known_cookies = Arc::clone(&self.known_cookies);
        let mut ruling = Ruling { proxy, server_timing, known_cookies, ..Ruling::default() };
        for (name, value) in &self.headers {
            lines.set(name, value);
        }
        let mut said_hints = None;
        for (index, rule) in self.paths.iter().enumerate() {
            if matched.0[index / 64] >> (index % 64) & 1 == 1 {
                rule.apply(&mut lines, &mut ruling);
                said_hints = rule.rule.early_hints.as_deref().or(said_hints);
            }
        }
        ruling.early_hints = hints::lines(said_hints, lines.value("link")).into();
        ruling.redirect = matched.1.map(|index| Arc::clone(&self.redirects[index]));
        ruling.cache_control = lines.take("cache-control").map(String::into_boxed_str);
        ruling.settle_dictionary();
        let mut text = lines.text();
        text.push_str(ruling.sharing.as_ref().map_or("", |sharing| sharing.lines_for_all()));
        ruling.lines = text.into();
        ruling
    }

    /// No combination may add more than what fits: all rules together may not.
    fn check_length(&self) -> Result<(), String> {
        let bits = vec![u64::MAX; self.paths.len().div_ceil(64)];
        let all = self.judge(&(bits.into(), None));
        let length_bytes = all.lines.len() + all.cache_control.map_or(0, |value| value.len());
        if length_bytes > RULE_FIELDS_BYTES_MAX {
            return Err(format!(
                "headers: together they are longer than {RULE_FIELDS_BYTES_MAX} bytes, which clients refuse"
            ));
        }
        Ok(())
    }
}

impl Rule {
    fn new(rule: &PathRule) -> Result<Self, String> {
        let fault = |fault: String| format!("path {:?}: {fault}", rule.pattern);
        let glob = pattern("match", &rule.pattern)?;
        for (name, value) in &rule.headers {
            line::check(name, value).map_err(fault)?;
        }
        if let Some(value) = &rule.cache_control {
            line::check_value("cache_control", value).map_err(fault)?;
        }
        hints::check(rule.early_hints.as_deref().unwrap_or_default()).map_err(fault)?;
        let auth = said(&rule.basic_auth, Auth::new).map_err(fault)?;
        let sharing = said(&rule.cors, Sharing::new).map_err(fault)?;
        let dictionary = said(&rule.dictionary, DictionaryRule::new).map_err(fault)?;
        let is_kept = rule.cache_control.as_deref().is_none_or(|value| !dictionary::is_kept_by_nobody(value));
        if matches!(dictionary, Some(Some(_))) && !is_kept {
            let text = "dictionary: no browser keeps one under this cache_control; write `max-age=...`";
            return Err(fault(text.to_owned()));
        }
        let tries = rule.attempts.as_ref().map(|said| said.as_ref().map(Tries::new).transpose());
        let tries = tries.transpose().map_err(fault)?;
        if rule.folder.is_some() && prefix_of(&rule.pattern).is_none() {
            return Err(fault("`root` is for a path such as /media/*".to_owned()));
        }
        let (allow, deny) = (networks::of(&rule.allow), networks::of(&rule.deny_networks));
        let clients = rule.clients.as_ref().map(|demanded| demanded.clone().map(Arc::new));
        let proxy = rule.proxy.as_ref().map(|said| said.clone().map(Arc::new));
        Ok(Self { glob, rule: rule.clone(), tries, proxy, allow, deny, clients, auth, sharing, dictionary })
    }

    fn apply(&self, lines: &mut Lines, ruling: &mut Ruling) {
        let rule = &self.rule;
        for (name, value) in &rule.headers {
            lines.set(name, value);
        }
        if let Some(value) = &rule.cache_control {
            lines.set("Cache-Control", value);
        }
        ruling.listing = rule.listing.or(ruling.listing);
        ruling.deny = rule.deny.unwrap_or(ruling.deny);
        ruling.server_timing = rule.server_timing.unwrap_or(ruling.server_timing);
        ruling.class = rule.class.unwrap_or(ruling.class);
        let Networks { allow, deny } = &mut ruling.networks;
        *allow = self.allow.clone().unwrap_or(std::mem::take(allow));
        *deny = self.deny.clone().unwrap_or(std::mem::take(deny));
        ruling.clients = self.clients.clone().unwrap_or(ruling.clients.take());
        ruling.work_us = rule.response_work_us.unwrap_or(ruling.work_us);
        ruling.proxy = self.proxy.clone().unwrap_or(ruling.proxy.take());
        ruling.auth = self.auth.clone().unwrap_or(ruling.auth.take());
        ruling.sharing = self.sharing.clone().unwrap_or(ruling.sharing.take());
        ruling.dictionary = self.dictionary.clone().unwrap_or(ruling.dictionary.take());
    }
}

impl Ruling {
    /// Leaves a dictionary only where everybody gets the same answer, and browsers keep it; says how long
    /// they do where no rule does.
    fn settle_dictionary(&mut self) {
        let is_for_some =
            self.deny || !self.networks.is_empty() || self.clients.is_some() || self.auth.is_some();
        let is_kept = self.cache_control.as_deref().is_none_or(|value| !dictionary::is_kept_by_nobody(value));
        if is_for_some || self.redirect.is_some() || !is_kept {
            self.dictionary = None;
        } else if self.dictionary.is_some() && self.cache_control.is_none() {
            self.cache_control = Some(dictionary::CACHE_CONTROL.into());
        }
    }
}

impl Redirect {
    /// The value of Location for a decoded path it matches, with the query of the request.
    pub(crate) fn location(&self, path: &[u8], query: Option<&[u8]>) -> String {
        self.to.location(&self.from.captures(path).unwrap_or_default(), query)
    }
}

/// What a rule says of something that can be switched off, made ready; `None` if it says nothing of it.
fn said<C, R>(
    config: &Option<Option<C>>,
    ready: impl Fn(&C) -> Result<R, String>,
) -> Result<Option<Option<Arc<R>>>, String> {
    let Some(config) = config else { return Ok(None) };
    Ok(Some(config.as_ref().map(ready).transpose()?.map(Arc::new)))
}

/// These rules, with what stands in files of users among their users.
///
/// # Errors
/// A file that cannot be read, or a line of it.
pub(crate) fn with_users_files(
    rules: &SiteRules,
    mut close: Option<impl FnMut(&str)>,
) -> Result<SiteRules, String> {
    let mut rules = rules.clone();
    for auth in rules.paths.iter_mut().filter_map(|rule| rule.basic_auth.as_mut()?.as_mut()) {
        *auth = match (auth::with_users_file(auth), &mut close) {
            (Ok(auth), _) => auth,
            (Err(fault), Some(close)) => {
                close(&fault);
                auth::closed(auth)
            }
            (Err(fault), None) => return Err(fault),
        };
    }
    Ok(rules)
}

/// A folder that has a script or a page, by its redirect too, and then the script at the top.
fn scripts_tries(scripts: &Scripts) -> Result<Tries, String> {
    let paths = vec!["$path".to_owned(), "$path/".to_owned(), format!("/{}", scripts.index)];
    Tries::new(&Attempts { paths, status: 404 })
}

fn redirect(rule: &crate::config::RedirectRule) -> Result<Arc<Redirect>, String> {
    let from = pattern("redirects: from", &rule.from)?;
    let to = Target::new(&rule.to, from.stars())?;
    let status =
        Status::from_code(rule.status).filter(|_| matches!(rule.status, 301 | 302 | 303 | 307 | 308));
    let fault = || format!("redirects: status {} is none of 301, 302, 303, 307, 308", rule.status);
    Ok(Arc::new(Redirect { from, to, status: status.ok_or_else(fault)? }))
}

fn error_page((code, path): (&u16, &String)) -> Result<(u16, Box<[u8]>), String> {
    if !PAGE_STATUSES.contains(code) {
        return Err(format!("error_pages: {code} has no page here; those are {PAGE_STATUSES:?}"));
    }
    Ok((*code, file_path("error_pages", path)?))
}

fn pattern(key: &str, text: &str) -> Result<Glob, String> {
    match text.starts_with(['/', '*']) {
        true => Ok(Glob::new(text)),
        false => Err(format!("{key} = {text:?} begins neither with / nor with *")),
    }
}

/// A path that can be a file's: as it is decoded.
fn file_path(key: &str, text: &str) -> Result<Box<[u8]>, String> {
    let hidden = |name: &str| name.is_empty() || name == "." || name == "..";
    let good =
        text.strip_prefix('/').is_some_and(|rest| !rest.split('/').any(hidden) && !text.contains('\0'));
    match good {
        true => Ok(text.as_bytes().into()),
        false => Err(format!("{key} = {text:?} is no path of a file: write /name.html")),
    }
}

#[cfg(test)]
#[path = "rules/tests.rs"]
mod tests;
