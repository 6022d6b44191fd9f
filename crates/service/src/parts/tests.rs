//! Each part fails to open, to start or to be reloaded, and what was opened is closed.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use staunch_config::{File, Sources};
use staunch_engine::{Mailbox, Notice, Post};

use super::*;

/// A folder of its own for each test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("staunch-parts-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(folder.path("site")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Settings of one site in this folder, and these lines, which may have further sites.
    fn config(&self, lines: &str) -> Config {
        let named = if lines.contains("[[site]]") { "[[site]]\ndefault = true\nhosts = ['a']\n" } else { "" };
        let text = format!("{named}root = '{}'\n{lines}\n", self.path("site").display());
        let file = Some(File::new("staunch.toml", text));
        let sources = Sources { flags: Vec::new(), environment: Vec::new(), file };
        staunch_config::read(&sources).unwrap_or_else(|faults| panic!("{faults}"))
    }

    /// Settings with this folder in the place of `@`.
    fn config_here(&self, lines: &str) -> Config {
        self.config(&lines.replace('@', &self.0.display().to_string()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn silent() -> Notice {
    Arc::new(|_: &str| ())
}

fn open(config: &Config) -> Result<Parts, Failure> {
    let opening = BeforeBinding { config, user: None, notice: &silent(), takes_over: false };
    Parts::open(&opening, &mut Descriptors::default())
}

/// Does something with what is known once sockets are bound.
fn around<T>(config: &Config, act: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    let notice = silent();
    act(&Surroundings {
        config,
        notice: &notice,
        takes_over: false,
        plain: &["127.0.0.1:80".parse().unwrap()],
        secured: &[],
        connections_max: 100,
        post: Post::new(vec![Arc::new(Mailbox::new(Box::new(|| ())))]),
        stats: Vec::new(),
    })
}

fn start(parts: &Parts, config: &Config) -> Result<Vec<String>, Failure> {
    around(config, |around| parts.bound(around).and_then(|()| parts.start(around)))
}

/// Reloads, as the server does. The sentences, or why nothing has changed.
fn reload(parts: &Parts, started: &Config, config: &Config) -> Result<Vec<String>, Refusal> {
    let new =
        NewSettings { started, config, plain: &[], secured: &[], has_starter: true, begins_access_log: true };
    parts.prepare(&new).map(|commit| commit())
}

fn text_of(refused: Result<Vec<String>, Refusal>) -> String {
    match refused {
        Err(Refusal::Faulty(text) | Refusal::Beyond(text)) => text,
        Ok(lines) => panic!("it came into use: {lines:?}"),
    }
}

/// A part that notes what is done with it, and fails at one step.
struct Noting {
    name: &'static str,
    fails_at: &'static str,
    noted: Arc<Mutex<Vec<String>>>,
}

impl Noting {
    fn note(&self, step: &'static str) -> Result<(), String> {
        self.noted.lock().unwrap().push(format!("{} {step}", self.name));
        if self.fails_at == step { Err(format!("{} fails", self.name)) } else { Ok(()) }
    }
}

impl Part for Noting {
    fn bound(&self, _around: &Surroundings<'_>) -> Result<(), Failure> {
        Ok(self.note("bound")?)
    }

    fn start(&self, _around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        self.note("start")?;
        Ok(vec![self.name.to_owned()])
    }

    fn prepare<'a>(&'a self, _new: &'a NewSettings<'_>) -> Result<Commit<'a>, Refusal> {
        self.note("prepare").map_err(Refusal::Faulty)?;
        Ok(Box::new(|| {
            let _ = self.note("commit");
            vec![self.name.to_owned()]
        }))
    }

    fn end(&self) {
        let _ = self.note("end");
    }
}

/// A list with two parts that note, the second of which fails.
fn noting(folder: &Folder, fails_at: &'static str) -> (Parts, Config, Arc<Mutex<Vec<String>>>) {
    let config = folder.config("");
    let (mut parts, noted) = (open(&config).unwrap(), Arc::new(Mutex::new(Vec::new())));
    for (name, fails_at) in [("one", ""), ("two", fails_at), ("three", "")] {
        parts.list.push(Arc::new(Noting { name, fails_at, noted: Arc::clone(&noted) }));
    }
    (parts, config, noted)
}

#[test]
fn parts_that_were_opened_end_where_one_fails() {
    let ends = ["one end", "two end", "three end"];
    let bound = ["one bound", "two bound", "three bound"];
    for (fails_at, steps) in
        [("bound", &bound[..2]), ("start", &[&bound[..], &["one start", "two start"]].concat()[..])]
    {
        let folder = Folder::new();
        let (parts, config, noted) = noting(&folder, fails_at);
        let sites = Arc::downgrade(&parts.served.sites);
        let thread = Arc::clone(&parts.served.certificates);
        assert_eq!(start(&parts, &config).unwrap_err().text, "two fails");
        drop(parts);
        assert_eq!(*noted.lock().unwrap(), [steps, &ends].concat());
        assert!(sites.upgrade().is_none(), "sites are closed");
        if fails_at == "start" {
            let thread = thread.thread.lock().unwrap().take().expect("certificates were started");
            thread.join().expect("nobody looks after them any more");
        }
    }
}

#[test]
fn a_reload_that_one_part_refuses_changes_no_part() {
    let folder = Folder::new();
    let (parts, config, noted) = noting(&folder, "prepare");
    assert_eq!(text_of(reload(&parts, &config, &config)), "two fails");
    assert_eq!(*noted.lock().unwrap(), ["one prepare", "two prepare"]);
    noted.lock().unwrap().clear();
    let (parts, config, noted) = noting(&folder, "");
    assert_eq!(reload(&parts, &config, &config).unwrap(), ["one", "two", "three"]);
    let prepared = ["one prepare", "two prepare", "three prepare"];
    assert_eq!(*noted.lock().unwrap(), [prepared, ["one commit", "two commit", "three commit"]].concat());
}

#[test]
fn sites_fail_to_open_and_to_be_reloaded() {
    let folder = Folder::new();
    let config = folder.config("");
    let parts = open(&config).unwrap();
    let other = folder.config_here("[[site]]\nroot = '@/missing'\nhosts = ['b']\n");
    let text = text_of(reload(&parts, &config, &other));
    assert!(text.contains("missing"), "{text}");
    assert_eq!(parts.figures().sites.len(), 1, "the sites are those of before");
    fs::create_dir(folder.path("missing")).unwrap();
    reload(&parts, &config, &other).unwrap();
    assert_eq!(parts.figures().sites.len(), 2);
    fs::remove_dir(folder.path("site")).unwrap();
    let failure = open(&config).err().expect("there is no folder");
    assert!(failure.text.contains("site"), "{failure}");
}

#[test]
fn certificates_fail_to_open_and_to_be_reloaded() {
    let folder = Folder::new();
    let plain = folder.config("");
    let config = folder.config_here("tls_certificate = '@/c.pem'\ntls_key = '@/k.pem'\n");
    let failure = open(&config).err().expect("there is no file");
    assert!(failure.text.contains("c.pem"), "{failure}");
    let parts = open(&plain).unwrap();
    let text = text_of(reload(&parts, &plain, &config));
    assert!(text.contains("c.pem"), "{text}");
    assert!(parts.figures().troubles.is_empty());
}

#[test]
fn the_agent_fails_to_open_and_cannot_be_added() {
    let folder = Folder::new();
    let plain = folder.config("");
    let lines = "tls = 'auto'\nstate_folder = '@'\nname = ['*.example.org']\n";
    let failure = open(&folder.config_here(lines)).err().expect("a wildcard is not proved");
    assert!(failure.text.contains("wildcard"), "{failure}");
    let parts = open(&plain).unwrap();
    let lines = "tls = 'auto'\nstate_folder = '@'\nname = ['example.org']\n";
    let refused = reload(&parts, &plain, &folder.config_here(lines));
    assert!(matches!(&refused, Err(Refusal::Beyond(why)) if why.contains("auto")), "{refused:?}");
}

#[test]
fn live_data_fails_to_open_to_start_and_to_be_reloaded() {
    let folder = Folder::new();
    let within = folder.config_here("live = true\nlive_state = '@/site'\n");
    let failure = start(&open(&within).unwrap(), &within).unwrap_err();
    assert!(failure.text.contains("which is served"), "{failure}");
    let config = folder.config_here("live = true\nlive_state = '@/state'\n");
    let failure = start(&open(&config).unwrap(), &config).unwrap_err();
    assert!(failure.text.contains("state"), "{failure}");
    fs::create_dir(folder.path("state")).unwrap();
    let mut parts = open(&config).unwrap();
    let noted = Arc::default();
    parts.list.push(Arc::new(Noting { name: "last", fails_at: "start", noted }));
    assert_eq!(start(&parts, &config).unwrap_err().text, "last fails");
    let busy = start(&open(&config).unwrap(), &config).unwrap_err();
    assert!(busy.text.contains("has it open"), "{busy}");
    drop(parts);
    let parts = open(&config).unwrap();
    start(&parts, &config).expect("the store was closed");
    fs::create_dir(folder.path("state/inner")).unwrap();
    let other = folder.config_here("[[site]]\nroot = '@'\nhosts = ['b']\n");
    let text = text_of(reload(&parts, &config, &other));
    assert!(text.contains("which is served"), "{text}");
}

/// Settings of a fabric that needs no right, on this interface.
fn fabric_on(interface: &str) -> String {
    format!("fabric = '{interface}'\nfabric_backend = 'udp'\nfabric_peers = ['192.0.2.77']\n")
}

#[test]
fn the_fabric_fails_to_open_and_leaves_its_address() {
    let folder = Folder::new();
    let failure = open(&folder.config(&fabric_on("none0"))).err().expect("there is no such interface");
    assert!(failure.text.starts_with("fabric: none0"), "{failure}");
    // A host may have no interface but the loopback. Nothing is sent: the fabric is never started.
    let interfaces = fs::read_dir("/sys/class/net").unwrap().map(|found| found.unwrap().file_name());
    let configs = interfaces.map(|name| folder.config(&fabric_on(&name.to_string_lossy())));
    let mut opened = configs.filter_map(|config| Some((open(&config).ok()?, config)));
    let Some((mut parts, config)) = opened.next() else { return };
    parts.list.push(Arc::new(Noting { name: "last", fails_at: "bound", noted: Arc::default() }));
    assert_eq!(start(&parts, &config).unwrap_err().text, "last fails");
    let busy = open(&config).err().expect("the first has it");
    assert!(busy.text.contains("already"), "{busy}");
    drop(parts);
    let parts = open(&config).expect("the address is free again");
    reload(&parts, &config, &folder.config("")).expect("what needs a restart stays as it is");
}

#[test]
fn a_gate_fails_where_there_is_no_interface() {
    let folder = Folder::new();
    let config = folder.config("gate = ['none0']\n");
    let parts = open(&config).unwrap();
    let failure = start(&parts, &config).unwrap_err();
    assert!(failure.text.starts_with("gate: "), "{failure}");
    assert!(parts.describe(&config).is_empty() && !parts.metrics().contains("staunch_gate"));
    reload(&parts, &config, &folder.config("")).expect("what needs a restart stays as it is");
}

#[test]
fn parts_are_left_by_names_that_stay() {
    let folder = Folder::new();
    let config = folder.config("live = true\n");
    let parts = open(&config).unwrap();
    start(&parts, &config).unwrap();
    let mut left = parts.lend().unwrap();
    parts.descriptors(&mut left);
    let names: Vec<&str> = left.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["live", "tickets"]);
    parts.take_back();
}
