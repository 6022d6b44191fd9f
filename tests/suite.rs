//! All conversations of a folder, run on a body with every way of splitting.
//!
//! It owns which runs share a server: those of the same tree and the same options, unless a run changes its
//! tree. It must never hide a failure: every one is reported with its file, line, body and split.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::body::{Application, Body, SIMULATED_APPLICATION, SessionBody, SimulatorBody, SocketApplication};
use crate::conversation::{Conversation, parse};
use crate::module::Loaded;
use crate::player::{Failure, play};
use crate::process::{self, Server};
use crate::split::Split;
use crate::tree::Tree;

/// How many groups of conversations run at the same time.
const GROUPS_AT_ONCE: usize = 4;

/// What conversations are run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The bare session.
    Session,
    /// The engine and the site on a simulated network.
    Simulator,
    /// A server process with `--io` of this value.
    Server {
        /// `epoll` or `uring`.
        io: &'static str,
    },
    /// khttpd, loaded into the kernel of this machine in this mode.
    Module {
        /// `kthread`, `wq` or `ready`.
        mode: &'static str,
    },
}

impl Stage {
    /// What the `only` line of a conversation may call it. `site` is whatever has the whole site behind it.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Session => &["session"],
            Self::Simulator => &["simulator", "site"],
            Self::Server { .. } => &["server", "site"],
            Self::Module { .. } => &["kernel", "site"],
        }
    }

    fn title(self) -> String {
        match self {
            Self::Session => "the bare session".to_owned(),
            Self::Simulator => "the simulator".to_owned(),
            Self::Server { io } => format!("the server on {io}"),
            Self::Module { mode } => format!("khttpd in mode {mode}"),
        }
    }

    /// How many groups of conversations run at the same time: a kernel has one khttpd.
    fn groups_at_once(self) -> usize {
        match self {
            Self::Module { .. } => 1,
            _ => GROUPS_AT_ONCE,
        }
    }

    /// Whether a conversation is meant for this stage.
    fn takes(self, conversation: &Conversation) -> bool {
        let held = match self {
            Self::Session => !conversation.has_application(),
            Self::Module { .. } => !conversation.has_application() && Loaded::lacks(conversation).is_none(),
            Self::Simulator | Self::Server { .. } => true,
        };
        held && conversation.is_for(self.names())
    }
}

/// How many runs there were, and the failures as text.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Conversations played.
    pub conversations: usize,
    /// Runs of conversations.
    pub runs: usize,
    /// What failed.
    pub failures: Vec<String>,
}

/// The folder of the conversations.
pub fn wire_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("wire")
}

/// Reads all `.wire` files of a folder, in the order of their names.
///
/// # Panics
/// When one cannot be read or parsed: the message names file and line.
pub fn load(folder: &Path) -> Vec<Conversation> {
    let listing = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listing.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wire"));
    paths.sort();
    paths.iter().map(|path| load_one(path)).collect()
}

/// All `.wire` files of a folder in one text, for a machine without that folder.
///
/// # Panics
/// When one cannot be read.
pub fn bundle(folder: &Path) -> String {
    let names = load(folder).into_iter().map(|conversation| conversation.name);
    let one = |name: String| {
        let path = folder.join(format!("{name}.wire"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        format!("{BUNDLED}{name}\n{text}")
    };
    names.map(one).collect()
}

/// The conversations of such a text.
///
/// # Errors
/// Which of them cannot be parsed, and where.
pub fn load_bundle(text: &str) -> Result<Vec<Conversation>, String> {
    let parts = text.split(BUNDLED).skip(1);
    let one = |part: &str| {
        let (name, text) = part.split_once('\n').unwrap_or((part, ""));
        parse(name, text).map_err(|error| format!("{name}.wire:{}: {}", error.line, error.message))
    };
    parts.map(one).collect()
}

/// What stands before the name of a conversation in a bundle. No line of a conversation begins so.
const BUNDLED: &str = "==== conversation ";

fn load_one(path: &Path) -> Conversation {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    parse(&name, &text).unwrap_or_else(|error| panic!("{}:{}: {}", path.display(), error.line, error.message))
}

/// Runs all conversations meant for a stage, each with every split of this seed.
pub fn run(conversations: &[Conversation], stage: Stage, seed: u64) -> Outcome {
    let groups = group(conversations, stage);
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new(Outcome::default());
    std::thread::scope(|scope| {
        for _ in 0..stage.groups_at_once() {
            scope.spawn(|| {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let part = run_group(group, stage, seed);
                    let mut whole = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                    whole.conversations += part.conversations;
                    whole.runs += part.runs;
                    whole.failures.extend(part.failures);
                }
            });
        }
    });
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Conversations that can share one server; at most so many that the threads are kept busy.
fn group(conversations: &[Conversation], stage: Stage) -> Vec<Vec<&Conversation>> {
    const GROUP_MAX: usize = 24;
    let mut groups: Vec<Vec<&Conversation>> = Vec::new();
    let mut open: HashMap<_, usize> = HashMap::new();
    for conversation in conversations.iter().filter(|conversation| stage.takes(conversation)) {
        let key = (
            &conversation.tree,
            &conversation.options,
            &conversation.settings,
            conversation.changes_tree(),
            conversation.has_application(),
        );
        match open.get(&key).copied() {
            Some(index) if !conversation.changes_tree() && groups[index].len() < GROUP_MAX => {
                groups[index].push(conversation);
            }
            _ => {
                open.insert(key, groups.len());
                groups.push(vec![conversation]);
            }
        }
    }
    groups
}

fn run_group(group: &[&Conversation], stage: Stage, seed: u64) -> Outcome {
    let mut outcome = Outcome { conversations: group.len(), ..Outcome::default() };
    let mut served = None;
    for conversation in group {
        for split in
            [Split::Whole, Split::Bytes, Split::Random(seed), Split::Random(seed.wrapping_mul(31) + 1)]
        {
            outcome.runs += 1;
            if let Err(failure) = run_once(conversation, stage, split, &mut served) {
                outcome.failures.push(tell(conversation, stage, split, &failure));
                // What a failed run left behind must not spoil the next one.
                end(&mut served, &mut outcome);
                break;
            }
        }
    }
    end(&mut served, &mut outcome);
    outcome
}

/// Ends a server. If it panicked that is a failure of its own.
fn end(served: &mut Option<ServedTree>, outcome: &mut Outcome) {
    let served = served.take();
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(served))).is_err() {
        outcome.failures.push("the server panicked, see above".to_owned());
    }
}

/// A tree with its body, and the process behind it.
struct ServedTree {
    body: Body,
    application: Option<Application>,
    tree: Tree,
    _server: Served,
}

/// What is behind a body, and ends with it.
enum Served {
    Here,
    Process { _server: Server },
    Kernel { _module: Loaded },
}

fn run_once(
    conversation: &Conversation,
    stage: Stage,
    split: Split,
    served: &mut Option<ServedTree>,
) -> Result<(), Failure> {
    if conversation.changes_tree() {
        *served = None;
    }
    let ready = match served {
        Some(ready) => ready,
        None => served.insert(set_up(conversation, stage, split.seed()).map_err(|came| Failure {
            line: 0,
            expected: "a body to speak with".to_owned(),
            came,
        })?),
    };
    play(conversation, &ready.tree, &mut ready.body, ready.application.as_mut(), split)
}

fn set_up(conversation: &Conversation, stage: Stage, seed: u64) -> Result<ServedTree, String> {
    let tree = Tree::with(&conversation.tree).map_err(|error| format!("the tree: {error}"))?;
    let (body, application, server) = match stage {
        Stage::Session => {
            let body = SessionBody::new(tree.root(), &conversation.options);
            (Body::Session(Box::new(body)), None, Served::Here)
        }
        Stage::Simulator => {
            let address = conversation.has_application().then_some(SIMULATED_APPLICATION);
            let settings = conversation.settings_for(tree.root(), address);
            let body = SimulatorBody::new(tree.root(), &conversation.options, settings, seed)?;
            let application = address.map(|_| Application::Simulator(body.application()));
            (Body::Simulator(body), application, Served::Here)
        }
        Stage::Server { io } => {
            let wanted = conversation.has_application();
            let application = wanted.then(SocketApplication::listen).transpose()?;
            let settings =
                conversation.settings_for(tree.root(), application.as_ref().map(SocketApplication::address));
            let server = start(conversation, &tree, io, settings)?;
            let body = Body::Server(server.address());
            (body, application.map(Application::Socket), Served::Process { _server: server })
        }
        Stage::Module { mode } => {
            let module = Loaded::with(tree.root(), mode, &conversation.options)?;
            (Body::Server(module.address()), None, Served::Kernel { _module: module })
        }
    };
    Ok(ServedTree { body, application, tree, _server: server })
}

/// A server process for a conversation.
fn start(
    conversation: &Conversation,
    tree: &Tree,
    io: &str,
    settings: Option<String>,
) -> Result<Server, String> {
    let mut arguments = vec!["--io", io];
    arguments.extend(conversation.options.iter().map(String::as_str));
    let Some(settings) = settings else { return Server::start(tree.root(), &arguments) };
    let file = tree.root().with_file_name("staunch.toml");
    std::fs::write(&file, settings).map_err(|error| error.to_string())?;
    Server::spawn(process::serve_by(&file).args(arguments))
}

fn tell(conversation: &Conversation, stage: Stage, split: Split, failure: &Failure) -> String {
    format!(
        "tests/wire/{}.wire:{}: on {}, split {split}\n  expected: {}\n  came: {}",
        conversation.name,
        failure.line,
        stage.title(),
        failure.expected,
        failure.came
    )
}
