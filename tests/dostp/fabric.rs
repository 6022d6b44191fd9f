//! `staunch serve --fabric`: servers in network namespaces that tell each other load and live data.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use staunch_tests::house::waiting::until;
use staunch_tests::process::{Server, finish};
use staunch_tests::tree::Tree;

use crate::lan::Lan;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server of a node.
pub(crate) struct Site<'a> {
    lan: &'a Lan,
    node: usize,
    server: Server,
    admin: Option<SocketAddr>,
    _tree: Tree,
}

impl<'a> Site<'a> {
    /// A server with an admin address.
    pub(crate) fn start(lan: &'a Lan, node: usize, arguments: &[&str]) -> Self {
        let admin = ["--admin", "127.0.0.1:0"];
        let mut site = Self::start_bare(lan, node, lan.staunch(node), &[&admin, arguments].concat());
        site.admin = Some(site.server.admin_address());
        site
    }

    /// A server by this command, which has the program alone.
    pub(crate) fn start_bare(lan: &'a Lan, node: usize, command: Command, arguments: &[&str]) -> Self {
        Self::try_start_bare(lan, node, command, arguments).unwrap_or_else(|said| panic!("{said}"))
    }

    pub(crate) fn try_start_bare(
        lan: &'a Lan,
        node: usize,
        mut command: Command,
        arguments: &[&str],
    ) -> Result<Self, String> {
        let tree = Tree::with(&[]).expect("a tree");
        command.arg("serve").arg(tree.root()).args(["--listen", &format!("10.88.0.{node}:0")]);
        command.args(["--workers", "1", "--live", "on", "--publish-token", TOKEN, "--fabric", "dv"]);
        let server = Server::spawn(command.args(arguments)).map_err(|said| said.to_string())?;
        Ok(Self { lan, node, server, admin: None, _tree: tree })
    }

    /// Sends a request from within the node's namespace and gives the status and the body.
    fn ask(&self, address: SocketAddr, head: &str, body: &str) -> Option<(u16, String)> {
        let head = format!("{head} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
        let length = body.len();
        let request = format!(
            "{head}Connection: close\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.send(address, request)
    }

    fn send(&self, address: SocketAddr, request: String) -> Option<(u16, String)> {
        self.lan.within(self.node, move || {
            let mut stream = TcpStream::connect(address).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            stream.write_all(request.as_bytes()).ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            let status = answer.split(' ').nth(1)?.parse().ok()?;
            Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
        })
    }

    pub(crate) fn put(&self, topic: &str, value: &str) {
        assert!(self.try_put(topic, value), "{topic}");
    }

    pub(crate) fn try_put(&self, topic: &str, value: &str) -> bool {
        let answer = self.ask(self.server.address(), &format!("PUT /topics/{topic}"), value);
        answer.is_some_and(|(status, _)| status == 200)
    }

    pub(crate) fn publish_json(&self, body: &str) -> Option<u16> {
        let head = "POST /publish HTTP/1.1\r\nHost: localhost\r\n".to_owned();
        let head = head + &format!("Authorization: Bearer {TOKEN}\r\nConnection: close\r\n");
        let length = body.len();
        let request =
            format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        self.send(self.server.address(), request).map(|(status, _)| status)
    }

    pub(crate) fn delete(&self, topic: &str) {
        let answer = self.ask(self.server.address(), &format!("DELETE /topics/{topic}"), "");
        assert!(answer.is_some_and(|(status, _)| status < 300), "{topic}");
    }

    pub(crate) fn value(&self, topic: &str) -> Option<String> {
        let answer = self.ask(self.server.address(), &format!("GET /live/{topic}"), "");
        answer.and_then(|(status, value)| (status == 200).then_some(value))
    }

    /// Waits until a topic has this value here.
    #[track_caller]
    pub(crate) fn await_value(&self, topic: &str, value: &str) {
        until(&format!("{topic} = {value} at node {}", self.node), || {
            self.value(topic).as_deref() == Some(value)
        });
    }

    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.admin.and_then(|admin| self.ask(admin, &format!("GET {path}"), ""));
        answer.map_or_else(String::new, |(_, body)| body)
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.page("/status.json")).unwrap_or_default()
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.status()["fabric"]["counts"][name].as_u64().unwrap_or_default()
    }

    pub(crate) fn kill(self) {
        self.signal(Signal::KILL);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.server.process_id().cast_signed()).expect("a process");
        kill_process(process, signal).expect("our own process");
    }
}

#[test]
fn what_is_published_at_one_server_is_read_at_all() {
    let Some(lan) = Lan::new(3) else { return };
    let first = Site::start(&lan, 1, &[]);
    first.put("early", "few and small");
    let second = Site::start(&lan, 2, &[]);
    second.await_value("early", "few and small");
    first.put("a", "1");
    second.await_value("a", "1");
    second.put("a", "2");
    first.await_value("a", "2");
    first.put("b", "short-lived");
    second.await_value("b", "short-lived");
    second.delete("b");
    until("the end of b at node 1", || first.value("b").is_none());
    // A publisher that is killed leaves its values, also to one who comes afterwards.
    first.put("c", "of the dead");
    second.await_value("c", "of the dead");
    first.kill();
    let third = Site::start(&lan, 3, &[]);
    for (topic, value) in [("early", "few and small"), ("a", "2"), ("c", "of the dead")] {
        third.await_value(topic, value);
    }
    assert_eq!((third.value("b"), second.value("b")), (None, None));
    // And it gets them back.
    let first = Site::start(&lan, 1, &[]);
    first.await_value("c", "of the dead");
    first.put("c", "of the living");
    third.await_value("c", "of the living");
}

#[test]
fn what_was_missed_is_asked_for_ends_included() {
    let Some(lan) = Lan::new(2) else { return };
    let (first, second) = (Site::start(&lan, 1, &[]), Site::start(&lan, 2, &[]));
    for topic in ["ended", "changed"] {
        first.put(topic, "1");
        second.await_value(topic, "1");
    }
    lan.set_joined(2, false);
    first.delete("ended");
    first.put("changed", "2");
    first.put("new", "3");
    second.put("there", "4");
    lan.set_joined(2, true);
    second.await_value("changed", "2");
    second.await_value("new", "3");
    first.await_value("there", "4");
    until("the end at node 2", || second.value("ended").is_none());
}

#[test]
fn real_time_topics_that_come_too_late_or_not_at_all_are_caught_up() {
    let Some(lan) = Lan::new(2) else { return };
    let realtime = ["--fabric-realtime", "quotes.*", "--fabric-deadline", "1ms"];
    let (first, second) = (Site::start(&lan, 1, &realtime), Site::start(&lan, 2, &[]));
    first.put("quotes.a", "1");
    second.await_value("quotes.a", "1");
    until("a message with a deadline", || second.count("messages_realtime_heard") > 0);
    // Node 2 stands still while node 1 answers many publishers: the first of these messages is late.
    second.signal(Signal::STOP);
    (2..=50).for_each(|value| first.put("quotes.a", &value.to_string()));
    second.signal(Signal::CONT);
    until("one that is late", || second.count("messages_late") > 0);
    second.await_value("quotes.a", "50");
    // A message that is lost altogether is asked for as well.
    lan.set_joined(2, false);
    first.put("quotes.b", "lost");
    lan.set_joined(2, true);
    second.await_value("quotes.b", "lost");
    assert_eq!(first.count("messages_realtime_heard"), 0, "node 2 has no such topics");
}

#[test]
fn an_update_of_many_topics_is_told_of_all_of_them() {
    let Some(lan) = Lan::new(2) else { return };
    let (first, second) = (Site::start(&lan, 1, &[]), Site::start(&lan, 2, &[]));
    second.put("before", "1");
    first.await_value("before", "1");
    let topics: Vec<String> = (0..100).map(|number| format!("many-{number}")).collect();
    let body = serde_json::json!({ "topic": topics, "data": "x" }).to_string();
    assert_eq!(first.publish_json(&body), Some(200));
    for topic in ["many-0", "many-63", "many-64", "many-99"] {
        second.await_value(topic, "x");
    }
}

#[test]
fn an_interface_that_was_down_is_told_of_and_goes_on() {
    let Some(lan) = Lan::new(2) else { return };
    let (first, second) = (Site::start(&lan, 1, &[]), Site::start(&lan, 2, &[]));
    first.put("a", "1");
    second.await_value("a", "1");
    let trouble = || first.status()["fabric"]["trouble"].as_str().map(str::to_owned);
    lan.ip(1, "link set dv down");
    until("trouble at node 1", || trouble().is_some_and(|text| text.contains("down")));
    assert!(first.page("/metrics").contains("staunch_fabric_trouble 1\n"));
    second.put("a", "2");
    lan.ip(1, "link set dv up");
    until("no trouble at node 1", || trouble().is_some_and(|text| text.is_empty()));
    first.await_value("a", "2");
    // An interface that was removed does not come back by its name.
    lan.ip(1, "link del dv");
    lan.ip(1, "link add dv type veth peer name other");
    lan.ip(1, "link set dv up");
    until("that it is gone", || trouble().is_some_and(|text| text.contains("only a restart")));
}

#[test]
fn confined_servers_tell_each_other_all_the_same() {
    let Some(lan) = Lan::new(2) else { return };
    let folder = lan.folder_for_others();
    let program = lan.program_for_others(&folder);
    let pid_file = folder.join("pid");
    let own = ["--user", "nobody", "--pid-file", pid_file.to_str().expect("a path of ours")];
    let confined = ["--sandbox", "on"];
    let first = Site::try_start_bare(&lan, 1, lan.program(1, &program), &[&own[..], &confined].concat());
    let first = match first {
        Err(said) if said.contains("sandbox") => {
            println!("skipped: {said}");
            return;
        }
        first => first.unwrap_or_else(|said| panic!("{said}")),
    };
    let second = Site::start(&lan, 2, &confined);
    first.put("a", "1");
    second.await_value("a", "1");
    // The listener by which `peers` asks is opened by a confined thread.
    until("node 1 in the table of node 2", || {
        let peers = lan.dostp(2, &["peers"]);
        String::from_utf8_lossy(&peers.stdout).contains("10.88.0.1 ")
    });
    lan.ip(2, "link set dv down");
    until("trouble at node 2", || second.status()["fabric"]["trouble"] != "");
    lan.ip(2, "link set dv up");
    until("no trouble at node 2", || second.status()["fabric"]["trouble"] == "");
    upgrade(&pid_file);
    second.put("b", "2");
    first.await_value("b", "2");
    until("it is published", || first.try_put("c", "3"));
    second.await_value("c", "3");
    end(&pid_file);
}

#[test]
fn operators_see_load_and_topics_of_the_others() {
    let Some(lan) = Lan::new(2) else { return };
    let (first, second) = (Site::start(&lan, 1, &[]), Site::start(&lan, 2, &[]));
    first.put("a", "1");
    second.await_value("a", "1");
    until("load of node 1", || second.status()["fabric"]["nodes"][0]["load"].is_object());
    until("topics of node 1", || second.status()["fabric"]["nodes"][0]["topics"] == 1);
    assert_eq!(second.status()["fabric"]["nodes"][0]["address"], "10.88.0.1");
    assert_eq!(second.status()["fabric"]["nodes"][0]["load"]["workers"], 1);
    let page = second.page("/fabric");
    assert!(page.contains("10.88.0.1 ") && page.contains("keys none"), "{page}");
    let metrics = second.page("/metrics");
    for line in ["staunch_fabric_nodes{state=\"heard\"} 1\n", "staunch_fabric_topics 1\n"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let peers = lan.dostp(2, &["peers"]);
    let text = String::from_utf8_lossy(&peers.stdout);
    assert!(
        text.contains("10.88.0.1 ") && text.contains(" requests/s ") && text.contains("  1 topic"),
        "{text}"
    );
    // Beside a node the table has both.
    let _node = lan.serve(2, &[]);
    until("node 1 in the table of the node", || {
        let peers = lan.looks(2, &["peers", "--json"]);
        peers[0]["link"].is_string() && peers[0]["load"]["workers"] == 1
    });
}

#[test]
fn with_keys_strangers_publish_nothing() {
    let Some(lan) = Lan::new(3) else { return };
    let (right, wrong) = (lan.key("11"), lan.key("22"));
    for mode in ["mac", "aead"] {
        let keyed =
            |node, key: &str| Site::start(&lan, node, &["--fabric-key-file", key, "--fabric-mode", mode]);
        let (first, second, stranger) = (keyed(1, &right), keyed(2, &right), keyed(3, &wrong));
        stranger.put("a", "forged");
        first.put("b", "true");
        second.await_value("b", "true");
        assert!(first.page("/fabric").contains(&format!("keys {mode}")));
        // When `d` has come, what the stranger told before has come as well, or never will.
        stranger.put("c", "forged");
        first.put("d", "later");
        second.await_value("d", "later");
        assert_eq!((second.value("a"), second.value("c"), stranger.value("b")), (None, None, None));
    }
}

#[test]
fn an_upgrade_of_a_user_without_rights_loses_nothing() {
    let Some(lan) = Lan::new(2) else { return };
    let key = lan.key("11");
    let keyed = ["--fabric-key-file", &key];
    let folder = lan.folder_for_others();
    let program = lan.program_for_others(&folder);
    let pid_file = folder.join("pid");
    let own = ["--user", "nobody", "--pid-file", pid_file.to_str().expect("a path of ours")];
    let first = Site::start_bare(&lan, 1, lan.program(1, &program), &[&own[..], &keyed].concat());
    let second = Site::start(&lan, 2, &keyed);
    first.put("before", "1");
    second.await_value("before", "1");
    for round in 0..2 {
        let value = round.to_string();
        first.put("at-once", &value);
        upgrade(&pid_file);
        second.await_value("at-once", &value);
        second.put("meanwhile", &value);
        first.await_value("meanwhile", &value);
        // Until the former process has left its sockets it may be the one that is asked, and says so.
        until("it is published", || first.try_put("after", &value));
        second.await_value("after", &value);
        first.await_value("before", "1");
    }
    assert_eq!(second.count("updates_refused"), 0);
    end(&pid_file);
}

/// Upgrades the server whose number stands in that file, and waits until the next process has written its
/// own.
pub(crate) fn upgrade(pid_file: &Path) {
    let before = process(pid_file);
    signal(pid_file, Signal::USR2);
    until("another process serves", || process(pid_file).is_some_and(|now| Some(now) != before));
}

/// Ends the server whose number stands in that file, and waits until it has taken the file away.
pub(crate) fn end(pid_file: &Path) {
    signal(pid_file, Signal::TERM);
    until("the server says that it leaves", || process(pid_file).is_none());
}

fn process(pid_file: &Path) -> Option<Pid> {
    Pid::from_raw(std::fs::read_to_string(pid_file).ok()?.trim().parse().ok()?)
}

fn signal(pid_file: &Path, signal: Signal) {
    kill_process(process(pid_file).expect("a number of a process"), signal).expect("our own process");
}

#[test]
fn what_is_missing_is_told_at_the_start() {
    let Some(lan) = Lan::new(1) else { return };
    let tree = Tree::with(&[]).expect("a tree");
    let said = |arguments: &[&str]| {
        let mut command = lan.staunch(1);
        command.arg("serve").arg(tree.root()).args(["--listen", "10.88.0.1:0"]).args(arguments);
        let finished = finish(&mut command);
        (finished.status.code(), finished.stderr)
    };
    let (code, text) = said(&["--fabric", "nothing"]);
    assert!(code == Some(78) && text.contains("fabric: ") && text.contains("nothing"), "{text}");
    let (code, text) = said(&["--fabric", "lo"]);
    assert!(code == Some(78) && text.contains("lo is a loopback interface"), "{text}");
    let (code, text) = said(&["--fabric", "dv", "--fabric-key-file", "/nowhere/dostp.key"]);
    assert!(code == Some(78) && text.contains("fabric_key_file"), "{text}");
    let mut command = lan.staunch_without_rights(1);
    command.arg("serve").arg(tree.root()).args(["--listen", "10.88.0.1:0", "--fabric", "dv"]);
    let finished = finish(&mut command);
    assert_eq!(finished.status.code(), Some(77), "{}", finished.stderr);
    assert!(finished.stderr.contains("CAP_NET_RAW"), "{}", finished.stderr);
}
