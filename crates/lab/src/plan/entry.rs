//! An entry `[[row]]` of a plan: lists of what is to be combined.
//!
//! It must never combine what cannot be: a fault has its place in the file.

use super::document::{Fault, Keys, Table, unknown};
use crate::model::{Model, PoolUse};
use crate::models::MODELS;
use crate::results::{AskedBy, Protocol, Row};
use crate::wire::ANSWER_BYTES_MAX;

/// Children of a client: processes that each hold a connection; more fill a machine's table of processes.
const CHILDREN_MAX: u64 = 10_000;
/// Loops of a child: beyond this a row takes hours.
const LOOPS_MAX: u64 = 100_000_000;
/// Places of a pool, as `staunch lab serve` allows.
const POOL_MAX: u64 = 5_000;

const PROTOCOLS: [(&str, Protocol); 3] =
    [("paper", Protocol::Paper), ("http", Protocol::Http), ("keep-alive", Protocol::KeepAlive)];

const CLIENTS: [(&str, AskedBy); 3] =
    [("processes", AskedBy::Processes), ("threads", AskedBy::Threads), ("epoll", AskedBy::Epoll)];

/// Every model that speaks the protocol.
const ALL: &str = "all";

/// What an entry combines.
pub(super) struct RowEntry {
    models: Vec<&'static Model>,
    protocols: Vec<Protocol>,
    children: Vec<u64>,
    loops: Vec<u64>,
    bytes: Vec<u64>,
    pools: Vec<u64>,
    clients: Vec<AskedBy>,
}

impl RowEntry {
    /// Reads it; `None` if something is wrong, which is noted then.
    pub(super) fn read(place: usize, table: &Table<'_>, faults: &mut Vec<Fault>) -> Option<Self> {
        let faults_before = faults.len();
        let mut keys = Keys::new(table, faults);
        let models = keys.words("model", "prefork");
        let protocols = keys.words("protocol", "paper");
        let children = keys.numbers("children", 1..=CHILDREN_MAX);
        let loops = keys.numbers("loops", 1..=LOOPS_MAX);
        let bytes = keys.numbers("bytes", 0..=ANSWER_BYTES_MAX as u64);
        let pools = keys.numbers("pool", 1..=POOL_MAX);
        let clients = keys.words("client", "epoll");
        keys.refuse_others();
        let is_whole = faults.len() == faults_before;
        let missing = |found: bool, example: &str| {
            let text = || format!("missing: write for example `{example}`");
            (is_whole && !found).then(|| Fault { place, text: text() })
        };
        faults.extend(missing(models.is_some(), "model = \"prefork\""));
        faults.extend(missing(children.is_some(), "children = 10"));
        faults.extend(missing(loops.is_some(), "loops = 500"));
        faults.extend(missing(bytes.is_some(), "bytes = 4000"));
        let protocols = named("protocol", &PROTOCOLS, protocols.unwrap_or(vec![(place, "paper")]), faults);
        let clients = named("client", &CLIENTS, clients.unwrap_or(vec![(place, "processes")]), faults);
        let models = models_of(models.unwrap_or_default(), &protocols, faults);
        if faults.len() == faults_before {
            faults.extend(pool_fault(place, &models, pools.as_deref()));
        }
        let plain = |numbers: Option<Vec<(usize, u64)>>| -> Vec<u64> {
            numbers.unwrap_or_default().into_iter().map(|(_, number)| number).collect()
        };
        let pools = plain(pools);
        let entry = Self {
            models,
            protocols,
            children: plain(children),
            loops: plain(loops),
            bytes: plain(bytes),
            pools,
            clients,
        };
        (faults.len() == faults_before).then_some(entry)
    }

    /// Every combination, the model changing last: what is compared is measured side by side.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for &protocol in &self.protocols {
            for &children in &self.children {
                for &loops in &self.loops {
                    for &bytes in &self.bytes {
                        let (children, bytes) = (children as usize, bytes as usize);
                        for &client in &self.clients {
                            for model in &self.models {
                                let name = model.name.to_owned();
                                let row =
                                    Row { model: name, protocol, children, loops, bytes, pool: 0, client };
                                rows.extend(self.with_pools(model, &row));
                            }
                        }
                    }
                }
            }
        }
        rows
    }

    fn with_pools(&self, model: &Model, row: &Row) -> Vec<Row> {
        if model.pool == PoolUse::None {
            return vec![row.clone()];
        }
        self.pools.iter().map(|&pool| Row { pool: pool as usize, ..row.clone() }).collect()
    }
}

/// What these words mean.
fn named<T: Copy>(
    kind: &str,
    known: &[(&'static str, T)],
    words: Vec<(usize, &str)>,
    faults: &mut Vec<Fault>,
) -> Vec<T> {
    let mut meant = Vec::new();
    for (place, word) in words {
        match known.iter().find(|(name, _)| *name == word) {
            Some((_, one)) => meant.push(*one),
            None => {
                let text = unknown(kind, word, known.iter().map(|(name, _)| *name));
                faults.push(Fault { place, text });
            }
        }
    }
    meant
}

fn models_of(
    words: Vec<(usize, &str)>,
    protocols: &[Protocol],
    faults: &mut Vec<Fault>,
) -> Vec<&'static Model> {
    let is_spoken = |model: &Model| model.speaks_paper || !protocols.contains(&Protocol::Paper);
    let mut models = Vec::new();
    for (place, word) in words {
        let mut blame = |text| faults.push(Fault { place, text });
        match Model::find(MODELS, word) {
            Some(model) if is_spoken(model) => models.push(model),
            Some(_) => blame(format!(
                "{word} does not speak the paper's protocol: write `protocol = \"http\"` or \"keep-alive\""
            )),
            None if word == ALL => models.extend(MODELS.iter().filter(|model| is_spoken(model))),
            None => blame(unknown("model", word, MODELS.iter().map(|model| model.name).chain([ALL]))),
        }
    }
    models
}

/// A pool must be told to those who have one, and only to them.
fn pool_fault(place: usize, models: &[&Model], pools: Option<&[(usize, u64)]>) -> Option<Fault> {
    let pooled = models.iter().find(|model| model.pool != PoolUse::None);
    match (pooled, pools) {
        (Some(model), None) => {
            let text = format!("missing: {} has a pool, so write for example `pool = 10`", model.name);
            Some(Fault { place, text })
        }
        (None, Some([(place, _), ..])) => {
            Some(Fault { place: *place, text: "pool: no model of this row has one".to_owned() })
        }
        _ => None,
    }
}
