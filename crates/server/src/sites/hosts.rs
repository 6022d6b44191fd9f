//! From the name a peer asked for to a site.
//!
//! It owns the order: the exact name, then the longest `*.name` it lies below, then the default. Case and
//! port do not matter, nor does a dot at the end (RFC 3986, section 3.2.2).

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::config::{RedirectRule, SiteConfig, SiteError};
use crate::rules::glob::Glob;

/// Names and the sites' numbers.
#[derive(Debug)]
pub(crate) struct Hosts {
    exact: HashMap<Box<[u8]>, Found, RandomState>,
    /// By what follows the star, dot included.
    below: HashMap<Box<[u8]>, Found, RandomState>,
    /// By the site's number: the beginning of the address to which its other names lead.
    canonical: Vec<Option<Box<str>>>,
    /// By the site's number: its first name, or nothing.
    pub(crate) names: Vec<Box<str>>,
    /// The site of all other names.
    pub(crate) default: usize,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Number of the site.
    pub(crate) site: usize,
    /// Whether its requests are redirected to the site's canonical host.
    leads_away: bool,
}

impl Hosts {
    /// The names of these sites.
    ///
    /// # Errors
    /// No site at all, a name that is none or stands twice, two defaults, or a canonical host that is not one
    /// of its site.
    pub(crate) fn new(sites: &[SiteConfig]) -> Result<Self, SiteError> {
        if sites.is_empty() {
            return Err(SiteError::Hosts("there is no site".to_owned()));
        }
        let mut defaults = (0..sites.len()).filter(|&number| sites[number].default);
        let default = defaults.next().unwrap_or(0);
        if let Some(second) = defaults.next() {
            let (first, second) = (sites[default].title(), sites[second].title());
            return Err(SiteError::Hosts(format!("two sites are the default: {first} and {second}")));
        }
        let canonical = sites.iter().map(|site| Some(origin(site.canonical_host.as_ref()?))).collect();
        let names = sites.iter().map(|site| site.hosts.first().map_or("", String::as_str).into()).collect();
        let (exact, below) = (HashMap::default(), HashMap::default());
        let mut hosts = Self { exact, below, canonical, names, default };
        for (number, site) in sites.iter().enumerate() {
            for host in &site.hosts {
                hosts.add(host, number, sites)?;
            }
        }
        for (number, site) in sites.iter().enumerate() {
            if let Some(canonical) = &site.canonical_host {
                hosts.settle(host_of(canonical), number)?;
                hosts.refuse_loop(number, site)?;
            }
        }
        Ok(hosts)
    }

    /// Answers to the canonical host of a site, which must be its own: nothing leads away from there.
    fn settle(&mut self, host: &str, number: usize) -> Result<(), SiteError> {
        let name = host.to_ascii_lowercase();
        let place = self.find(name.as_bytes());
        if !is_name(&name) || place.site != number || !place.leads_away {
            return Err(SiteError::Hosts(format!("canonical_host: {host:?} is not a host of its site")));
        }
        let place = Found { site: number, leads_away: false };
        self.exact.insert(name.trim_end_matches('.').as_bytes().into(), place);
        Ok(())
    }

    /// A redirect of the canonical host must not lead to a name from which one is sent back to its beginning.
    fn refuse_loop(&self, number: usize, site: &SiteConfig) -> Result<(), SiteError> {
        let away = Found { site: number, leads_away: true };
        let comes_back = |rule: &&RedirectRule| {
            let host = rule.to.contains("://").then(|| host_of(&rule.to));
            let rest =
                host.and_then(|host| rule.to.split_once("://")?.1.split_once(host)).map(|parts| parts.1);
            let path = rest.and_then(|rest| Some(&rest[rest.find('/')?..])).unwrap_or("/");
            let path = path.split(['?', '#']).next().unwrap_or("/");
            host.is_some_and(|host| self.find(host.as_bytes()) == away)
                && Glob::new(&rule.from).matches(path.replace('$', "*").as_bytes())
        };
        match site.rules.redirects.iter().find(comes_back) {
            None => Ok(()),
            Some(RedirectRule { from, to, .. }) => Err(SiteError::Hosts(format!(
                "redirects: from = {from:?} leads to {to}, and canonical_host leads back: a loop"
            ))),
        }
    }

    /// Whether any name leads to another.
    pub(crate) fn redirects(&self) -> bool {
        self.canonical.iter().any(Option::is_some)
    }

    /// The beginning of the address to which requests for a name are redirected, if they are.
    pub(crate) fn canonical(&self, place: Found) -> Option<&str> {
        self.canonical.get(place.site).filter(|_| place.leads_away)?.as_deref()
    }

    fn add(&mut self, host: &str, number: usize, sites: &[SiteConfig]) -> Result<(), SiteError> {
        let name = host.to_ascii_lowercase();
        let (table, name) = match name.strip_prefix('*') {
            Some(below) if below.starts_with('.') => (&mut self.below, below.to_owned()),
            _ => (&mut self.exact, name),
        };
        if !is_name(name.trim_start_matches('.')) {
            return Err(SiteError::Hosts(format!(
                "hosts: {host:?} is no name: write a.example or *.a.example, without port"
            )));
        }
        let place = Found { site: number, leads_away: self.canonical[number].is_some() };
        match table.insert(name.trim_end_matches('.').as_bytes().into(), place) {
            Some(Found { site: other, .. }) if other != number => {
                let (first, second) = (&sites[other].root, &sites[number].root);
                let (first, second) = (first.display(), second.display());
                Err(SiteError::Hosts(format!("hosts: {host} stands in two sites, {first} and {second}")))
            }
            _ => Ok(()),
        }
    }

    /// The site that answers to a host without port.
    pub(crate) fn find(&self, host: &[u8]) -> Found {
        let default = Found { site: self.default, leads_away: false };
        let host = if host.iter().any(u8::is_ascii_uppercase) {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        };
        let name = host.strip_suffix(b".").unwrap_or(&host);
        if let Some(&place) = self.exact.get(name) {
            return place;
        }
        let dots = memchr::memchr_iter(b'.', name).skip_while(|&dot| dot == 0);
        let mut found = dots.filter_map(|dot| self.below.get(&name[dot..]).copied());
        if self.below.is_empty() { default } else { found.next().unwrap_or(default) }
    }
}

/// The beginning of an address at a host: with its scheme, or with that of whoever is led there (RFC 3986,
/// section 4.2).
fn origin(address: &String) -> Box<str> {
    if address.contains("://") { address.as_str().into() } else { format!("//{address}").into() }
}

/// The host in an address, without port.
fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let end = rest.find(']').map_or(0, |end| end + 1);
    &rest[..rest[end..].find([':', '/', '?', '#']).map_or(rest.len(), |colon| end + colon)]
}

fn is_name(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            !text.is_empty() && !text.starts_with('.') && !text.contains("..") && text.bytes().all(good)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(hosts: &[&[&str]]) -> Vec<SiteConfig> {
        let site = |names: &&[&str]| {
            let hosts = names.iter().map(|&name| name.to_owned()).collect();
            SiteConfig { hosts, ..SiteConfig::default() }
        };
        hosts.iter().map(site).collect()
    }

    #[test]
    fn names() {
        let mut configs = sites(&[
            &["a.example", "*.a.example"],
            &["*.b.a.example", "x.b.a.example"],
            &["C.Example."],
            &["[::1]", "127.0.0.1"],
        ]);
        configs[2].default = true;
        let hosts = Hosts::new(&configs).unwrap();
        for (host, number) in [
            ("a.example", 0),
            ("A.EXAMPLE", 0),
            ("a.example.", 0),
            ("www.a.example", 0),
            ("b.a.example", 0),
            ("1.b.a.example", 1),
            ("1.2.b.a.example", 1),
            ("x.b.a.example", 1),
            ("c.example", 2),
            ("aa.example", 2),
            (".a.example", 2),
            ("", 2),
            (".", 2),
            ("[::1]", 3),
            ("127.0.0.1", 3),
            ("xa.example", 2),
        ] {
            assert_eq!(hosts.find(host.as_bytes()).site, number, "{host}");
        }
        assert_eq!(Hosts::new(&sites(&[&[], &["a"]])).unwrap().default, 0);
    }

    #[test]
    fn other_names_lead_to_the_canonical_one() {
        let mut configs = sites(&[
            &["example.org", "www.example.org", "*.old.example"],
            &["*.b.example", "[::1]"],
            &["c.example"],
        ]);
        configs[0].canonical_host = Some("https://example.org".into());
        configs[1].canonical_host = Some("www.b.example:8443".into());
        let hosts = Hosts::new(&configs).unwrap();
        assert!(hosts.redirects());
        for (host, number, expected) in [
            ("example.org", 0, None),
            ("EXAMPLE.ORG.", 0, None),
            ("www.example.org", 0, Some("https://example.org")),
            ("a.b.old.example", 0, Some("https://example.org")),
            ("other", 0, None),
            ("", 0, None),
            ("www.b.example", 1, None),
            ("b.b.example", 1, Some("//www.b.example:8443")),
            ("[::1]", 1, Some("//www.b.example:8443")),
            ("c.example", 2, None),
        ] {
            let place = hosts.find(host.as_bytes());
            assert_eq!((place.site, hosts.canonical(place)), (number, expected), "{host}");
        }
        assert!(!Hosts::new(&sites(&[&["a"], &["b"]])).unwrap().redirects());
    }

    #[test]
    fn no_redirect_comes_back() {
        for (canonical, from, to, words) in [
            ("https://c.example", "/x", "/y", "is not a host of its site"),
            ("https://b.example", "/x", "/y", "is not a host of its site"),
            ("https://a.example", "/*", "https://www.a.example/$1", "a loop"),
            ("https://a.example", "/old/*", "http://www.a.example:80/old/new/$1?a#b", "a loop"),
            ("https://a.example", "/", "https://www.a.example", "a loop"),
            ("https://a.example", "/old/*", "https://www.a.example/new/$1", ""),
            ("https://a.example", "/*", "https://b.example/$1", ""),
            ("https://a.example", "/*", "https://elsewhere.example/$1", ""),
        ] {
            let mut configs = sites(&[&["a.example", "*.a.example"], &["b.example"]]);
            configs[0].canonical_host = Some(canonical.into());
            let rule = RedirectRule { from: from.into(), to: to.into(), status: 301 };
            configs[0].rules.redirects = vec![rule];
            let error = Hosts::new(&configs).err().map_or(String::new(), |error| error.to_string());
            assert!(error.contains(words) && error.is_empty() == words.is_empty(), "{to}: {error}");
        }
    }

    #[test]
    fn what_does_not_fit_together() {
        for (hosts, words) in [
            (&[][..], "no site"),
            (&[&["a:80"][..]], "without port"),
            (&[&["http://a"]], "without port"),
            (&[&["a.*"]], "without port"),
            (&[&["*a"]], "without port"),
            (&[&["*."]], "without port"),
            (&[&[""]], "without port"),
            (&[&["a"], &["A"]], "two sites"),
            (&[&["*.a"], &["*.a"]], "two sites"),
        ] {
            let error = Hosts::new(&sites(hosts)).unwrap_err().to_string();
            assert!(error.contains(words), "{hosts:?}: {error}");
        }
        let mut two = sites(&[&["a"], &["b"]]);
        two.iter_mut().for_each(|site| site.default = true);
        assert!(Hosts::new(&two).unwrap_err().to_string().contains("two sites are the default: a and b"));
    }
}
