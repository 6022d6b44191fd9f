//! What only the settings as a whole can tell: values that are right each, and not together.

use crate::groups::{AccessLog, Network, PathRule, Pressure, Tls};
use crate::reader::{Fault, Origin, Reader};
use crate::report::Section;
use crate::site::Site;
use crate::units::{Application, Wire};

/// Limits that cannot all hold.
pub(crate) fn limits(reader: &mut Reader<'_>, sections: &[Section], network: &Network, pressure: &Pressure) {
    let Some(most) = network.max_connections else { return };
    if let Some(soft) = pressure.soft_connections.filter(|soft| *soft > most) {
        let text = format!("{soft} is more than max_connections ({most})");
        refuse(reader, &sections[0], "soft_connections", text);
    }
    if let Some(reserved) = pressure.reserved_connections.filter(|reserved| *reserved >= most) {
        let text = format!("{reserved} leaves nothing of max_connections ({most})");
        refuse(reader, &sections[0], "reserved_connections", text);
    }
}

/// Certificates of clients that nobody is asked for, and such as nobody could show.
pub(crate) fn clients(reader: &mut Reader<'_>, sections: &[Section], tls: &Tls, sites: &[Site]) {
    let mut of_sites = sections.iter().filter(|section| section.title == "site");
    let mut of_paths = sections.iter().filter(|section| section.title.ends_with("path"));
    let is_named = |site: &Site| site.tls.is_some();
    let is_secured = tls.tls.is_some() || tls.tls_certificate.is_some() || sites.iter().any(is_named);
    let unsecured = "no certificate of the server is named (`tls`), so there is no HTTPS to show one with";
    if tls.client_auth.is_some() && !is_secured {
        refuse(reader, &sections[0], "client_auth", unsecured.into());
    }
    for site in sites {
        let section = of_sites.next().unwrap_or(&sections[0]);
        if matches!(site.client_auth, Some(Some(_))) && !is_secured {
            refuse(reader, section, "client_auth", unsecured.into());
        }
        let is_asked = site.client_auth.as_ref().unwrap_or(&tls.client_auth).is_some();
        for rule in &site.paths {
            let section = of_paths.next();
            if let (false, Some(Some(_)), Some(section)) = (is_asked, &rule.client_auth, section) {
                let text = "the site asks no client for a certificate: write `client_auth` there as well";
                refuse(reader, section, "client_auth", text.into());
            }
        }
    }
}

/// Scripts that are in no folder.
pub(crate) fn scripts(reader: &mut Reader<'_>, sections: &[Section], sites: &[Site]) {
    const TEXT: &str = "scripts are in a folder: write `root` (`--root DIR`), or `fastcgi_root` if it \
        is on another machine, or `fastcgi_index = \"off\"` for an application without scripts";
    let mut of_sites = sections.iter().filter(|section| section.title == "site");
    let mut of_paths = sections.iter().filter(|section| section.title.ends_with("path"));
    let has_scripts = |application: &Application| application.wire == Wire::FastCgi;
    for site in sites {
        let section = of_sites.next().unwrap_or(&sections[0]);
        let content = &site.content;
        let is_nowhere =
            content.root.is_none() && content.fastcgi_root.is_none() && content.fastcgi_index.is_some();
        if is_nowhere && content.proxy.as_ref().is_some_and(has_scripts) {
            refuse(reader, section, "proxy", TEXT.into());
        }
        for rule in &site.paths {
            let section = of_paths.next();
            let application = rule.proxy.as_ref().and_then(Option::as_ref);
            if let (true, Some(section)) = (is_nowhere && application.is_some_and(has_scripts), section) {
                refuse(reader, section, "proxy", TEXT.into());
            }
        }
    }
}

/// Folders of paths that no request reaches, because a later rule names another one for all of them.
pub(crate) fn folders(reader: &mut Reader<'_>, sections: &[Section], sites: &[Site]) {
    let mut of_paths = sections.iter().filter(|section| section.title.ends_with("path"));
    for site in sites {
        for (index, rule) in site.paths.iter().enumerate() {
            let section = of_paths.next();
            let holds_all = |later: &&PathRule| {
                let prefix = later.root.as_ref().and_then(|_| later.pattern.strip_suffix('*'));
                prefix.is_some_and(|prefix| rule.pattern.starts_with(prefix))
            };
            let wider = site.paths[index + 1..].iter().find(holds_all);
            if let (Some(_), Some(wider), Some(section)) = (&rule.root, wider, section) {
                let text = format!(
                    "is never looked into: the later rule for {} names a folder as well",
                    wider.pattern
                );
                refuse(reader, section, "root", text);
            }
        }
    }
}

/// A file of several sites that each would begin anew at a size of its own.
pub(crate) fn access_logs(reader: &mut Reader<'_>, sections: &[Section], sites: &[Site]) {
    const KEYS: [&str; 2] = ["access_log_size_max", "access_log_keep"];
    let of_sites: Vec<&Section> = sections.iter().filter(|section| section.title == "site").collect();
    let sizes = |log: &AccessLog| (log.access_log_size_max, log.access_log_keep);
    let is_otherwise = |one: &AccessLog, other: &AccessLog| {
        one.access_log.is_some() && one.access_log == other.access_log && sizes(one) != sizes(other)
    };
    for (index, site) in sites.iter().enumerate() {
        let other = sites[..index].iter().position(|other| is_otherwise(&site.access_log, &other.access_log));
        let Some(other) = other else { continue };
        // Either says what the other does not.
        let mut pair = [index, other].into_iter().filter_map(|number| of_sites.get(number).copied());
        let said = pair.find_map(|section| Some((section, KEYS.into_iter().find(|key| says(section, key))?)));
        if let Some((section, key)) = said {
            let text = "another site writes to the same file, and says another one: say the same in both";
            refuse(reader, section, key, text.into());
        }
    }
}

fn says(section: &Section, key: &str) -> bool {
    section.entries.iter().any(|entry| entry.key.name == key)
}

fn refuse(reader: &mut Reader<'_>, section: &Section, key: &str, text: String) {
    let origin = section.entries.iter().find(|entry| entry.key.name == key);
    let origin = origin.map_or(Origin::Default, |entry| entry.origin);
    let place = if let Origin::File(place) = origin { Some(place) } else { None };
    reader.faults.push(Fault { key: key.into(), origin, place, text });
}
