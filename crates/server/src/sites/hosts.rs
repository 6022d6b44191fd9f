//! From the name a peer asked for to a site.
//!
//! It owns the order: the exact name, then the longest `*.name` it lies below, then the default. Case and
//! port do not matter, nor does a dot at the end (RFC 3986, section 3.2.2).

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::config::{SiteConfig, SiteError};

/// Names and the sites' numbers.
#[derive(Debug)]
pub(crate) struct Hosts {
    exact: HashMap<Box<[u8]>, usize, RandomState>,
    /// By what follows the star, dot included.
    below: HashMap<Box<[u8]>, usize, RandomState>,
    /// The site of all other names.
    pub(crate) default: usize,
}

impl Hosts {
    /// The names of these sites.
    ///
    /// # Errors
    /// No site at all, a name that is none or stands twice, or two defaults.
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
        let mut hosts = Self { exact: HashMap::default(), below: HashMap::default(), default };
        for (number, site) in sites.iter().enumerate() {
            for host in &site.hosts {
                hosts.add(host, number, sites)?;
            }
        }
        Ok(hosts)
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
        match table.insert(name.trim_end_matches('.').as_bytes().into(), number) {
            Some(other) if other != number => {
                let (first, second) = (&sites[other].root, &sites[number].root);
                let (first, second) = (first.display(), second.display());
                Err(SiteError::Hosts(format!("hosts: {host} stands in two sites, {first} and {second}")))
            }
            _ => Ok(()),
        }
    }

    /// The number of the site that answers to a host without port.
    pub(crate) fn find(&self, host: &[u8]) -> usize {
        let host = if host.iter().any(u8::is_ascii_uppercase) {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        };
        let name = host.strip_suffix(b".").unwrap_or(&host);
        if let Some(&number) = self.exact.get(name) {
            return number;
        }
        let dots = memchr::memchr_iter(b'.', name).skip_while(|&dot| dot == 0);
        let mut found = dots.filter_map(|dot| self.below.get(&name[dot..]).copied());
        if self.below.is_empty() { self.default } else { found.next().unwrap_or(self.default) }
    }
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
            assert_eq!(hosts.find(host.as_bytes()), number, "{host}");
        }
        assert_eq!(Hosts::new(&sites(&[&[], &["a"]])).unwrap().default, 0);
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
