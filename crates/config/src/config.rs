//! The settings as a whole, and how they are read.
//!
//! [`read`] is all there is to call; it may be called again with a file that changed.

use crate::group::Group;
use crate::groups::{
    AccessLog, Acme, ClientAuth, Clients, Content, Deadlines, Fabric, GLOBAL, Live, Logs, Names, Network,
    PathRule, Pressure, Process, Proxy, Tls,
};
use crate::joined;
use crate::key::{Form, Key};
use crate::node::{Misprint, Name, Node, ValueKind};
use crate::reader::{Fault, GivenKey, Origin, Reader};
use crate::report::{Faults, Section};
use crate::site::Site;
use crate::sources::{File, INCLUDE, Sources};
use crate::syntax::variables;
use crate::whole;

/// Two ways of saying who may publish: a site that says one of them inherits neither.
const PUBLISH_TOKENS: [&str; 2] = ["publish_token", "publish_token_file"];

/// Every setting, with what holds where nothing is said.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses, workers, processors.
    pub network: Network,
    /// Where HTTPS is spoken, and with which certificates.
    pub tls: Tls,
    /// Certificates that an authority is asked for.
    pub acme: Acme,
    /// How long things may take.
    pub deadlines: Deadlines,
    /// What gives way first.
    pub pressure: Pressure,
    /// What a single client may have.
    pub clients: Clients,
    /// Live data, as the top of the file says it: what holds for a site stands in the site.
    pub live: Live,
    /// How requests are passed on to applications.
    pub proxy: Proxy,
    /// Other servers of one LAN.
    pub fabric: Fabric,
    /// The error log: lines of the server about itself.
    pub logs: Logs,
    /// How it ends, who it is, and what it tells.
    pub process: Process,
    /// What is served: at least one, and exactly one is the default.
    pub sites: Vec<Site>,
    /// Each value with its origin, in the order of a file.
    pub sections: Vec<Section>,
}

impl Config {
    /// Whether lines are written of answers.
    pub fn has_access_log(&self) -> bool {
        self.sites.iter().any(|site| site.access_log.access_log.is_some())
    }

    /// Values that are probably not meant as they are taken, in sentences: no reason not to serve.
    pub fn warnings(&self) -> Vec<String> {
        let of_sites = self.sites.iter().map(|site| &site.content.headers);
        let of_paths = self.sites.iter().flat_map(|site| &site.paths).map(|rule| &rule.headers);
        let all = of_sites.chain(of_paths).flatten();
        all.filter_map(|(name, value)| Some(format!("headers: {name}: {}", variables::in_value(value)?)))
            .collect()
    }
}

/// The settings as far as they could be read: to be looked at further, and then told about as a whole.
#[derive(Debug)]
pub struct Reading {
    /// All of them, if each could be read.
    pub config: Option<Config>,
    /// Each value that could be read.
    pub sections: Vec<Section>,
    faults: Vec<Fault>,
}

impl Reading {
    /// Blames a value of a section for what the caller has found. A value that nobody wrote is blamed at its
    /// place in the file: the section's.
    pub fn blame(&mut self, section: usize, key: &str, text: String) {
        let entries = self.sections.get(section).map_or(&[][..], |section| &section.entries);
        let origin = entries.iter().find(|entry| entry.key.name == key).map(|entry| entry.origin);
        let origin = origin.unwrap_or(Origin::Default);
        let place = if let Origin::File(place) = origin { Some(place) } else { None };
        self.faults.push(Fault { key: key.into(), origin, place, text });
    }

    /// Whether nothing is wrong so far.
    pub fn is_right(&self) -> bool {
        self.faults.is_empty()
    }

    /// The settings, if nothing was found to be wrong with them.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the places.
    pub fn end(self, file: Option<&File>) -> Result<Config, Faults> {
        match self.config {
            Some(config) if self.faults.is_empty() => Ok(config),
            _ => Err(Faults::new(self.faults, file)),
        }
    }
}

/// Reads the settings.
///
/// # Errors
/// Everything that is wrong, with its places.
pub fn read(sources: &Sources) -> Result<Config, Faults> {
    read_whole(sources).end(sources.file.as_ref())
}

/// Reads the settings as far as they can be read. What is no TOML is told alone: behind a bracket that is
/// missing nothing can be judged.
pub fn read_whole(sources: &Sources) -> Reading {
    let file = sources.file.as_ref();
    let (table, mut faults) = match file.map_or(Ok((Vec::new(), Vec::new())), joined::table) {
        Ok(read) => read,
        Err(misprints) => {
            let fault = |(place, text): Misprint| fault_at(place, text);
            let faults = misprints.into_iter().map(fault).collect();
            return Reading { config: None, sections: Vec::new(), faults };
        }
    };
    let mut reader = Reader::new(&sources.flags, &sources.environment, &table);
    let (config, sections) = read_all(&mut reader, &table, file.is_some());
    faults.append(&mut reader.faults);
    Reading { config, sections, faults }
}

fn read_all(
    reader: &mut Reader<'_>,
    table: &[(Name, Node)],
    has_file: bool,
) -> (Option<Config>, Vec<Section>) {
    let global: Vec<&'static [Key]> = GLOBAL.iter().map(|(_, keys)| *keys).collect();
    let elsewhere =
        [(Names::KEYS, "belongs in [[site]]"), (PathRule::KEYS, "belongs in [[path]] or [[site.path]]")];
    reader.refuse_unknown(&[global, vec![Content::KEYS]].concat(), &elsewhere);
    let network = Network::read(reader);
    let tls = Tls::read(reader);
    let acme = Acme::read(reader);
    let deadlines = Deadlines::read(reader);
    let pressure = Pressure::read(reader);
    let clients = Clients::read(reader);
    let live = Live::read(reader);
    let proxy = Proxy::read(reader);
    let fabric = Fabric::read(reader);
    let access_log = AccessLog::read(reader);
    let logs = Logs::read(reader);
    let process = Process::read(reader);
    let mut within = Vec::new();
    let sites = match tables(reader, table, "site") {
        Some(tables) => several_sites(reader, table, &tables, &mut within),
        None => only_site(reader, table, has_file, (live.as_ref(), access_log.as_ref()), &mut within),
    };
    let mut sections = vec![Section { title: String::new(), entries: std::mem::take(&mut reader.entries) }];
    sections.append(&mut within);
    if let (Some(network), Some(pressure)) = (&network, &pressure) {
        whole::limits(reader, &sections, network, pressure);
    }
    if let (Some(tls), Some(sites)) = (&tls, &sites) {
        whole::clients(reader, &sections, tls, sites);
    }
    if let Some(sites) = &sites {
        whole::scripts(reader, &sections, sites);
        whole::folders(reader, &sections, sites);
        whole::access_logs(reader, &sections, sites);
    }
    let whole = || {
        Some(Config {
            network: network?,
            tls: tls?,
            acme: acme?,
            deadlines: deadlines?,
            pressure: pressure?,
            clients: clients?,
            live: live?,
            proxy: proxy?,
            fabric: fabric?,
            logs: logs?,
            process: process?,
            sites: sites?,
            sections: sections.clone(),
        })
    };
    (whole(), sections)
}

/// The site whose keys stand at the top.
fn only_site(
    reader: &mut Reader<'_>,
    table: &[(Name, Node)],
    has_file: bool,
    (live, access_log): (Option<&Live>, Option<&AccessLog>),
    sections: &mut Vec<Section>,
) -> Option<Vec<Site>> {
    let content = Content::read(reader);
    let is_by_variable = |entry: &GivenKey| entry.key.name == "root" && entry.origin == Origin::Environment;
    let lists = !has_file && !reader.entries.iter().any(is_by_variable);
    let content = settle(reader, content, has_file, lists);
    let paths = path_rules(reader, table, "path", sections);
    Some(vec![Site {
        hosts: Vec::new(),
        canonical_host: None,
        tls: None,
        client_auth: None,
        default: true,
        access_log: access_log?.clone(),
        live: live?.clone(),
        content: content?,
        paths: paths?,
    }])
}

/// Defaults of a site's keys that depend on the sources: with a file, its folder must be said, and before an
/// application there is none unless it is said; `listing` becomes on or off.
fn settle(reader: &mut Reader<'_>, content: Option<Content>, has_file: bool, lists: bool) -> Option<Content> {
    let is_unsaid = |entry: &GivenKey| entry.key.name == "root" && entry.origin == Origin::Default;
    let is_unsaid = reader.entries.iter().any(is_unsaid);
    let is_proxy = content.as_ref().is_some_and(|content| content.proxy.is_some());
    if has_file && is_unsaid && !is_proxy {
        let text = if reader.table_says(INCLUDE) {
            "missing: there is no [[site]], neither here nor in the files of `include`"
        } else {
            "missing: write the folder to serve, for example `root = \"/srv/www\"`"
        };
        reader.faults.push(Fault { key: "root".into(), ..fault_at(reader.place.or(Some(0)), text.into()) });
    }
    let mut content = content?;
    if is_unsaid && is_proxy {
        content.root = None;
        if let Some(entry) = reader.entries.iter_mut().find(|entry| entry.key.name == "root") {
            entry.value = Node::text("off");
        }
    }
    if content.listing.is_none() {
        let lists = lists && !is_proxy;
        content.listing = Some(lists);
        let entry = reader.entries.iter_mut().find(|entry| entry.key.name == "listing");
        entry?.value = Node::new(ValueKind::Switch(lists));
    }
    Some(content)
}

fn several_sites(
    reader: &mut Reader<'_>,
    table: &[(Name, Node)],
    tables: &[&Node],
    sections: &mut Vec<Section>,
) -> Option<Vec<Site>> {
    refuse_beside_sites(reader, table);
    let sites: Vec<Option<Site>> =
        tables.iter().map(|table| one_of_several(reader, table, sections)).collect();
    let mut sites = sites.into_iter().collect::<Option<Vec<Site>>>()?;
    let fault = whose_host(&sites);
    if let Some((index, text)) = fault {
        reader.faults.push(fault_at(tables[index].place, text));
        return None;
    }
    if !sites.iter().any(|site| site.default) {
        sites.first_mut()?.default = true;
        let entries = sections.iter_mut().find(|section| section.title == "site");
        let entry =
            entries.and_then(|section| section.entries.iter_mut().find(|entry| entry.key.name == "default"));
        entry?.value = Node::new(ValueKind::Switch(true));
    }
    Some(sites)
}

fn one_of_several(reader: &mut Reader<'_>, table: &Node, sections: &mut Vec<Section>) -> Option<Site> {
    let entries = entries_of(reader, table)?;
    let mut inner = Reader::of_table(entries, table.place);
    let global: Vec<(&'static [Key], &str)> = GLOBAL
        .iter()
        .map(|(_, keys)| (*keys, "stands above the first [[...]] of the file: it holds for the whole server"))
        .collect();
    let elsewhere = [global, vec![(PathRule::KEYS, "belongs in [[site.path]]")]].concat();
    inner.refuse_unknown(&[Names::KEYS, Content::KEYS, Live::KEYS, AccessLog::KEYS], &elsewhere);
    let names = Names::read(&mut inner);
    inner.inherit(reader, Live::KEYS, &PUBLISH_TOKENS);
    let live = Live::read(&mut inner);
    inner.inherit(reader, AccessLog::KEYS, &[]);
    let access_log = AccessLog::read(&mut inner);
    let content = Content::read(&mut inner);
    let content = settle(&mut inner, content, true, false);
    reader.faults.append(&mut inner.faults);
    sections.push(Section { title: "site".into(), entries: inner.entries });
    let paths = path_rules(reader, entries, "site.path", sections);
    let Names { hosts, canonical_host, tls, client_auth, default } = names?;
    let (access_log, live, content, paths) = (access_log?, live?, content?, paths?);
    Some(Site { hosts, canonical_host, tls, client_auth, default, access_log, live, content, paths })
}

/// With several sites, nothing may be said that sounds as if it were for one of them.
fn refuse_beside_sites(reader: &mut Reader<'_>, table: &[(Name, Node)]) {
    if let Some((key, origin)) = reader.first_said(Content::KEYS) {
        let text = match origin {
            Origin::File(_) => {
                format!("`{}` stands beside [[site]]: write it into each site it is meant for", key.name)
            }
            _ => "this is for a single site, but the file has [[site]] tables: say it there".into(),
        };
        let place = if let Origin::File(place) = origin { Some(place) } else { None };
        let key = if place.is_some() { String::new() } else { key.name.into() };
        reader.faults.push(Fault { key, origin, place, text });
    }
    if let Some((name, _)) = table.iter().find(|(name, _)| name.text == "path") {
        let text =
            "[[path]] stands beside [[site]]: write [[site.path]] below the site it is meant for".into();
        reader.faults.push(fault_at(name.place, text));
    }
}

fn path_rules(
    reader: &mut Reader<'_>,
    table: &[(Name, Node)],
    title: &str,
    sections: &mut Vec<Section>,
) -> Option<Vec<PathRule>> {
    let tables = tables(reader, table, "path").unwrap_or_default();
    let mut rules = Vec::new();
    for table in tables {
        let mut inner = Reader::of_table(entries_of(reader, table)?, table.place);
        let above = "stands above the first [[...]] of the file: it holds for the whole server";
        let global = GLOBAL.iter().map(|(_, keys)| (*keys, above));
        let elsewhere: Vec<_> = [(Content::KEYS, "belongs in the site, above its paths, not to a path")]
            .into_iter()
            .chain(global)
            .collect();
        inner.refuse_unknown(&[PathRule::KEYS], &elsewhere);
        rules.push(PathRule::read(&mut inner));
        reader.faults.append(&mut inner.faults);
        sections.push(Section { title: title.into(), entries: inner.entries });
    }
    rules.into_iter().collect()
}

/// The tables of a section, such as all `[[site]]`; `None` if there is none.
fn tables<'a>(reader: &mut Reader<'_>, table: &'a [(Name, Node)], section: &str) -> Option<Vec<&'a Node>> {
    let (name, node) = table.iter().find(|(name, _)| name.text == section)?;
    match &node.kind {
        ValueKind::List(items) => Some(items.iter().collect()),
        ValueKind::Table(_) => {
            let text = format!("[{section}] has single brackets: write [[{section}]], there may be several");
            reader.faults.push(fault_at(name.place, text));
            None
        }
        _ => {
            reader.faults.push(fault_at(name.place, format!("`{section}` is a table: write [[{section}]]")));
            None
        }
    }
}

fn entries_of<'a>(reader: &mut Reader<'_>, node: &'a Node) -> Option<&'a [(Name, Node)]> {
    if let ValueKind::Table(entries) = &node.kind {
        return Some(entries);
    }
    reader.faults.push(fault_at(node.place, format!("{} stands where a table should", node.describe())));
    None
}

/// Two defaults, a host of two sites, a site of no host: the site to blame, and why.
fn whose_host(sites: &[Site]) -> Option<(usize, String)> {
    let mut default = None;
    for (index, site) in sites.iter().enumerate() {
        if site.default && default.replace(index).is_some() {
            return Some((index, "a second site says `default = true`".into()));
        }
        let before = &sites[..index];
        let taken = site.hosts.iter().find(|host| before.iter().any(|other| other.hosts.contains(host)));
        if let Some(host) = taken {
            return Some((index, format!("another site answers for {host} already")));
        }
    }
    let has_default = default.is_some();
    let is_lost = |(index, site): &(usize, &Site)| {
        site.hosts.is_empty() && !site.default && (has_default || *index > 0)
    };
    let (index, _) = sites.iter().enumerate().find(is_lost)?;
    Some((index, "nobody would ever see this site: write `hosts`, or `default = true`".into()))
}

fn fault_at(place: Option<usize>, text: String) -> Fault {
    Fault { key: String::new(), origin: Origin::File(place.unwrap_or(0)), place, text }
}

impl Config {
    /// The site that answers for hosts of no other.
    ///
    /// # Panics
    /// Not on settings that were read: they have exactly one such site.
    pub fn default_site(&self) -> &Site {
        self.sites.iter().find(|site| site.default).expect("exactly one site is the default")
    }

    /// Whose certificates the clients of a site show, if they are asked.
    pub fn client_auth<'a>(&'a self, site: &'a Site) -> Option<&'a ClientAuth> {
        site.client_auth.as_ref().unwrap_or(&self.tls.client_auth).as_ref()
    }
}

/// Keys that have a flag, with the heading they stand under, in the order of the help.
pub fn flags() -> impl Iterator<Item = (&'static str, &'static Key)> + Clone {
    let content = [(Content::TITLE, Content::KEYS)];
    let groups = GLOBAL.iter().copied().chain(content);
    groups
        .flat_map(|(title, keys)| keys.iter().map(move |key| (title, key)))
        .filter(|(_, key)| key.form != Form::File)
}
