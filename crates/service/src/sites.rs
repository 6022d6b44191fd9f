//! From the settings' words for sites to what the server is told.
//!
//! It must never judge a value: the settings were read strictly, and what only the whole can tell is refused
//! when the sites are opened.

use staunch_config::groups::{BasicAuth, Certificates, ClientAuth, Cors, PathRule, Redirect};
use staunch_config::syntax::access::{AllowedClients, ClientName, Denied};
use staunch_config::syntax::attempt::Try;
use staunch_config::syntax::choice::{ClientAuthMode, Coding, RequestClass};
use staunch_config::syntax::dictionary::Dictionary as DictionaryOf;
use staunch_config::syntax::text::AddressBlock;
use staunch_config::units::{Application, Wire};
use staunch_config::{Config, Site};
use staunch_engine::PlaceClass;
use staunch_server::{
    Attempts, ClientDemand, DemandedIdentity, Destination, Dictionary, Encoding, KnownIdentity, Network,
    ProxyWire, RedirectRule, Scripts, SiteConfig, SiteRules,
};

/// All sites of the settings.
pub(crate) fn of(config: &Config) -> Vec<SiteConfig> {
    let demand = |told: &ClientAuth| ClientDemand {
        policy: told.number(),
        is_required: told.mode == ClientAuthMode::Required,
    };
    let clients = |one| config.client_auth(one).map(demand);
    config
        .sites
        .iter()
        .map(|one| SiteConfig { clients: clients(one), ..site(one, hsts(config, one)) })
        .collect()
}

/// The field that tells browsers to ask for a site over HTTPS alone. It stands in every answer: in plain
/// text a browser does not believe it, and is led away before. A site of the local authority says nothing,
/// also beside one with other certificates: a browser that does not know the authority lets nobody pass
/// such a promise by.
fn hsts(config: &Config, site: &Site) -> Option<(String, String)> {
    let tls = &config.tls;
    let may_be_public =
        |told: &Option<Certificates>| matches!(told, Some(Certificates::Files(_) | Certificates::Auto));
    let is_secured = tls.tls_certificate.is_some() || may_be_public(&tls.tls) || may_be_public(&site.tls);
    let is_local = site.tls == Some(Certificates::Local);
    let time = tls.hsts.filter(|_| is_secured && !is_local && tls.https_redirect)?;
    Some(("Strict-Transport-Security".to_owned(), format!("max-age={}", time.as_secs())))
}

fn site(site: &Site, hsts: Option<(String, String)>) -> SiteConfig {
    let content = &site.content;
    SiteConfig {
        root: content.root.clone().unwrap_or_default(),
        encodings: content.encodings.iter().flatten().map(encoding).collect(),
        cache_bytes_max: content.cache_size,
        no_cache: content.no_cache,
        listing: content.listing.unwrap_or(false),
        index: index(site),
        types: content.types.iter().cloned().collect(),
        charset: content.charset.clone(),
        dotfiles: content.dotfiles,
        hosts: site.hosts.clone(),
        canonical_host: site.canonical_host.clone(),
        default: site.default,
        clients: None,
        rules: SiteRules {
            headers: hsts.into_iter().chain(content.headers.iter().cloned()).collect(),
            error_pages: content.error_pages.iter().cloned().collect(),
            attempts: content.attempts.as_deref().map(attempts),
            fallback: content.fallback.clone(),
            redirects: content.redirects.iter().map(redirect).collect(),
            proxy: content.proxy.as_ref().map(destination),
            server_timing: content.server_timing,
            known_cookies: content.known_cookie.clone(),
            paths: site.paths.iter().map(path).collect(),
            scripts: scripts(site),
        },
    }
}

fn destination(application: &Application) -> Destination {
    Destination { application: application.name(), wire: wire(application.wire) }
}

/// The language that is spoken with an application.
pub(crate) fn wire(wire: Wire) -> ProxyWire {
    match wire {
        Wire::Http | Wire::Https => ProxyWire::Http,
        Wire::FastCgi => ProxyWire::FastCgi,
    }
}

/// The scripts of a site, if an application runs them.
fn scripts(site: &Site) -> Option<Scripts> {
    let content = &site.content;
    let index = content.fastcgi_index.clone()?;
    let runs = site.applications().any(|application| application.wire == Wire::FastCgi);
    runs.then(|| Scripts { index, far_root: content.fastcgi_root.clone() })
}

/// The index files of a site: a script goes before pages.
fn index(site: &Site) -> Vec<String> {
    let script = scripts(site).map(|scripts| scripts.index);
    let pages = site.content.index.iter().filter(|page| Some(*page) != script.as_ref());
    script.iter().chain(pages).cloned().collect()
}

fn encoding(coding: &Coding) -> Encoding {
    match coding {
        Coding::Br => Encoding::Brotli,
        Coding::Zstd => Encoding::Zstd,
        Coding::Gzip => Encoding::Gzip,
    }
}

fn redirect(redirect: &Redirect) -> RedirectRule {
    RedirectRule { from: redirect.from.clone(), to: redirect.to.clone(), status: redirect.status }
}

fn path(rule: &PathRule) -> staunch_server::PathRule {
    staunch_server::PathRule {
        pattern: rule.pattern.clone(),
        headers: rule.headers.clone(),
        early_hints: rule.early_hints.as_ref().map(|said| said.clone().unwrap_or_default()),
        cache_control: rule.cache_control.clone(),
        listing: rule.listing,
        deny: rule.deny.as_ref().map(|denied| *denied == Denied::Everybody),
        allow: rule.allow.as_ref().map(|allowed| networks(allowed.as_deref().unwrap_or_default())),
        deny_networks: rule.deny.as_ref().map(|denied| match denied {
            Denied::Networks(blocks) => networks(blocks),
            Denied::Nobody | Denied::Everybody => Vec::new(),
        }),
        attempts: rule.attempts.as_ref().map(|said| said.as_deref().map(attempts)),
        clients: rule.client_auth.as_ref().map(|allowed| allowed.as_ref().map(clients)),
        basic_auth: rule.basic_auth.as_ref().map(|auth| auth.as_ref().map(basic_auth)),
        cors: rule.cors.as_ref().map(|sharing| sharing.as_ref().map(cors)),
        // Files of a folder of its own are not for an application to answer for.
        proxy: match (&rule.proxy, &rule.root) {
            (None, Some(_)) => Some(None),
            (said, _) => said.as_ref().map(|said| said.as_ref().map(destination)),
        },
        server_timing: rule.server_timing,
        folder: rule.root.clone(),
        class: rule.class.map(class),
        dictionary: rule.dictionary.as_ref().map(dictionary),
        response_work_us: rule.response_work.map(|work| u32::try_from(work.as_micros()).unwrap_or(u32::MAX)),
    }
}

fn class(class: RequestClass) -> PlaceClass {
    match class {
        RequestClass::Low => PlaceClass::Low,
        RequestClass::Normal => PlaceClass::Normal,
        RequestClass::High => PlaceClass::High,
    }
}

fn clients(allowed: &AllowedClients) -> DemandedIdentity {
    let known = |name: &ClientName| match name {
        ClientName::Subject(subject) => KnownIdentity::Subject(subject.clone()),
        ClientName::Fingerprint(digest) => KnownIdentity::Fingerprint(*digest),
    };
    match allowed {
        AllowedClients::Verified => DemandedIdentity::Any,
        AllowedClients::OneOf(all) => DemandedIdentity::OneOf(all.iter().map(known).collect()),
    }
}

fn dictionary(of: &DictionaryOf) -> Option<Dictionary> {
    match of {
        DictionaryOf::Off => None,
        DictionaryOf::Own => Some(Dictionary::Own),
        DictionaryOf::Pattern(pattern) => Some(Dictionary::Pattern(pattern.clone())),
    }
}

fn attempts(list: &[Try]) -> Attempts {
    let mut attempts = Attempts { paths: Vec::new(), status: 404 };
    for attempt in list {
        match attempt {
            Try::Path(path) => attempts.paths.push(path.clone()),
            Try::Status(status) => attempts.status = *status,
        }
    }
    attempts
}

fn networks(blocks: &[AddressBlock]) -> Vec<Network> {
    blocks.iter().map(|block| (block.address, block.prefix)).collect()
}

fn basic_auth(auth: &BasicAuth) -> staunch_server::BasicAuth {
    staunch_server::BasicAuth {
        realm: auth.realm.clone(),
        users: auth.users.iter().cloned().collect(),
        users_file: auth.users_file.clone(),
    }
}

fn cors(cors: &Cors) -> staunch_server::Cors {
    staunch_server::Cors {
        origins: cors.origins.clone(),
        methods: cors.methods.clone(),
        headers: cors.headers.clone(),
        max_age_s: Some(u32::try_from(cors.max_age.as_secs()).unwrap_or(u32::MAX)),
        credentials: cors.credentials,
    }
}

#[cfg(test)]
mod tests {
    use staunch_config::{File, Sources};

    use super::*;

    /// Whether each of the sites of these settings promises HTTPS.
    fn promises(text: &str) -> Vec<bool> {
        let file = Some(File::new("staunch.toml", text));
        let config = staunch_config::read(&Sources { flags: Vec::new(), environment: Vec::new(), file });
        let config = config.unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
        config.sites.iter().map(|site| hsts(&config, site).is_some()).collect()
    }

    #[test]
    fn a_local_site_promises_nothing() {
        const FILES: &str = "{ certificate = \"/a.pem\", key = \"/a.key\" }";
        const LOCAL: &str = "\"local\"";
        const AUTO: &str = "\"auto\"";
        let table = [
            (None, [Some(FILES), None], [true, false]),
            (None, [Some(FILES), Some(LOCAL)], [true, false]),
            (Some(LOCAL), [Some(FILES), None], [true, false]),
            (Some(FILES), [None, Some(LOCAL)], [true, false]),
            (Some(FILES), [Some(FILES), None], [true, true]),
            (Some(AUTO), [None, Some(LOCAL)], [true, false]),
            (None, [Some(AUTO), Some(LOCAL)], [true, false]),
        ];
        for (of_all, of_sites, expected) in table {
            let tls = |told: Option<&str>| told.map_or(String::new(), |told| format!("tls = {told}\n"));
            let site = |(host, told): (&str, Option<&str>)| {
                format!("[[site]]\nhosts = [\"{host}\"]\nroot = \"/tmp\"\n{}", tls(told))
            };
            let sites: String = ["a.test", "b.test"].into_iter().zip(of_sites).map(site).collect();
            let text = format!("tls_listen = [\"127.0.0.1:0\"]\nhsts = \"1d\"\n{}{sites}", tls(of_all));
            assert_eq!(promises(&text), expected, "{text}");
        }
    }
}
