//! The scenarios by name: what each needs built, and which are run when none is named.
//!
//! It owns the names. It must never measure.
use super::setting::Setting;
use super::{
    attack, bigfile, change, dostp, gate, gate_cost, generator, idle, instructions, life, live, memory,
    pressure, secured, seeing, start, throughput, waiting,
};
use crate::report::ScenarioOutcome;

pub(super) struct Scenario {
    /// Name on the command line.
    pub(super) name: &'static str,
    /// What must be built before.
    pub(super) needs: Needs,
    /// Whether it takes so long, or so much memory, that it runs only when it is named.
    pub(super) named_only: bool,
    /// Measures.
    pub(super) run: fn(&Setting) -> ScenarioOutcome,
}

/// What must be built before a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing: the scenario builds what it needs.
    Nothing,
    /// The chosen servers.
    Servers,
    /// The load generator and what it is measured against.
    Generator,
    /// Our program alone.
    Program,
}

/// Words for all scenarios over TLS, of the load generator, or of the gate, but those that have to be named
/// alone.
const GROUPS: [&str; 3] = ["tls", "load", "gate"];
/// Word for all scenarios of a proxy's cost, each of which runs only when it is named, alone or so.
const PROXY_COST: &str = "proxy-cost";

/// All scenarios, in the order in which they run.
const SCENARIOS: &[Scenario] = &[
    server("keepalive", |setting| throughput::run(&throughput::KEEPALIVE, setting)),
    server("browser", |setting| throughput::run(&throughput::BROWSER, setting)),
    server("pipelined", |setting| throughput::run(&throughput::PIPELINED, setting)),
    server("connect", |setting| throughput::run(&throughput::CONNECT, setting)),
    server("access-log", seeing::run),
    server("bigfile", bigfile::run),
    server("idle", idle::run),
    server("memory", memory::run),
    Scenario { needs: Needs::Program, named_only: true, ..server("waiting", waiting::run) },
    server("tls-memory", secured::memory),
    server("tls-handshake", secured::handshake),
    server("tls-kept", secured::kept),
    server("tls-bigfile", secured::bigfile),
    server("change", change::run),
    server("start", start::run),
    server("pressure", pressure::run),
    server("slow", attack::run),
    Scenario { named_only: true, ..server("live", live::fan_out) },
    Scenario { named_only: true, ..server("live-memory", live::memory) },
    Scenario {
        needs: Needs::Program,
        named_only: true,
        ..server("live-memory-million", live::memory_million)
    },
    Scenario { named_only: true, ..server("live-crowd", live::crowd) },
    Scenario { named_only: true, ..server("live-quotes", live::quotes) },
    Scenario { named_only: true, ..server("live-differences", live::differences) },
    Scenario { named_only: true, ..server("live-feed", live::feed) },
    Scenario { named_only: true, ..server("live-beside", live::beside) },
    Scenario { named_only: true, ..server("live-stalled", live::stalled) },
    Scenario { needs: Needs::Program, named_only: true, ..server("live-patterns", live::patterns) },
    server("drain", life::drain),
    server("kill9", life::kill9),
    Scenario { named_only: true, ..server("upgrade", life::upgrade) },
    Scenario { named_only: true, ..server("reload", life::reload) },
    Scenario { needs: Needs::Program, named_only: true, ..server("dostp-nats", dostp::beside_nats) },
    Scenario { needs: Needs::Program, named_only: true, ..server("dostp-one-way", dostp::one_way) },
    Scenario { named_only: true, ..load("dostp-loaded", dostp::loaded) },
    Scenario { needs: Needs::Program, named_only: true, ..server("dostp-trips", dostp::round_trips) },
    Scenario { needs: Needs::Nothing, ..server("instructions", instructions::run) },
    Scenario { needs: Needs::Nothing, ..server("gate-cost", gate_cost::run) },
    load("gate-honest", gate::honest),
    load("gate-flood", gate::flooded),
    load("gate-reaction", gate::reaction),
    load("gate-model", gate::model),
    Scenario { named_only: true, ..load("gate-steady", gate::steady) },
    Scenario { named_only: true, ..load("gate-strangers", gate::strangers) },
    Scenario { needs: Needs::Program, named_only: true, ..load("gate-gzip", gate::gzip) },
    load("load-closed", generator::closed),
    load("load-count", generator::count),
    load("load-open", generator::open),
    load("load-overload", generator::overload),
    Scenario { named_only: true, ..load("proxy-overload", generator::proxied) },
    Scenario { named_only: true, ..load("proxy-vegeta", generator::proxied_beside) },
    Scenario { named_only: true, ..load("proxy-classes", generator::proxied_classes) },
    Scenario { named_only: true, ..load("proxy-cost-requests", generator::requests) },
    Scenario { named_only: true, ..load("proxy-cost-large", generator::large) },
    Scenario { named_only: true, ..load("proxy-cost-tunnels", generator::tunnels) },
    Scenario { named_only: true, ..load("proxy-cost-slow", generator::slow) },
    Scenario { needs: Needs::Nothing, named_only: true, ..load("proxy-cost-places", generator::places) },
    load("load-hold", generator::hold),
    Scenario { named_only: true, ..load("load-hold-million", generator::hold_million) },
    load("load-flood", generator::flood),
    Scenario { needs: Needs::Nothing, ..load("load-hurst", generator::hurst) },
    Scenario { needs: Needs::Program, ..load("lab-client", generator::lab_client) },
    Scenario { needs: Needs::Program, ..load("lab-counted", generator::lab_counted) },
];

const fn server(name: &'static str, run: fn(&Setting) -> ScenarioOutcome) -> Scenario {
    Scenario { name, needs: Needs::Servers, named_only: false, run }
}

const fn load(name: &'static str, run: fn(&Setting) -> ScenarioOutcome) -> Scenario {
    Scenario { name, needs: Needs::Generator, named_only: false, run }
}

/// The scenarios of these names; of no name, all that need not be named.
///
/// # Errors
/// A name that no scenario has; says which there are.
pub(super) fn choose(names: &[String]) -> Result<Vec<&'static Scenario>, String> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().filter(|scenario| !scenario.named_only).collect());
    }
    if let Some(name) = names.iter().find(|name| !SCENARIOS.iter().any(|scenario| scenario.is_meant(name))) {
        let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        return Err(format!(
            "there is no scenario '{name}'; there are {}, {}, {PROXY_COST}",
            known.join(", "),
            GROUPS.join(", ")
        ));
    }
    Ok(SCENARIOS.iter().filter(|scenario| names.iter().any(|name| scenario.is_meant(name))).collect())
}

impl Scenario {
    fn is_meant(&self, name: &str) -> bool {
        let in_group = |group: &str| self.name.starts_with(group) && !self.named_only;
        let costs = name == PROXY_COST && self.name.starts_with(PROXY_COST);
        self.name == name || costs || (GROUPS.contains(&name) && in_group(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        choose(&names).map(|scenarios| scenarios.iter().map(|scenario| scenario.name).collect())
    }

    #[test]
    fn scenarios_are_chosen_by_name_and_run_in_their_order() {
        assert_eq!(chosen(&["load-open", "connect"]), Ok(vec!["connect", "load-open"]));
        assert_eq!(chosen(&["load-hold-million"]), Ok(vec!["load-hold-million"]));
        let error = chosen(&["connect", "conect"]).expect_err("no such scenario");
        assert!(error.contains("'conect'") && error.contains("load-flood"), "{error}");
    }

    #[test]
    fn the_longest_run_only_when_they_are_named() {
        let all = chosen(&[]).expect("all");
        assert_eq!(all.len() + 29, SCENARIOS.len());
        let group = chosen(&["load"]).expect("the group");
        assert_eq!(group.len(), 7);
        assert!(group.iter().all(|name| name.starts_with("load-") && *name != "load-hold-million"));
        let group = ["gate-cost", "gate-honest", "gate-flood", "gate-reaction", "gate-model"];
        assert_eq!(chosen(&["gate"]), Ok(group.to_vec()));
        assert_eq!(chosen(&["proxy-cost"]).map(|group| group.len()), Ok(5));
    }
}
