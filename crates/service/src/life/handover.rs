//! What passes from one process to the next: listening sockets by address, a pipe on which the next one says
//! that it serves, and one that ends when the former one has left the sockets; further descriptors by name.
//! And what systemd leaves to a service that it starts.
//!
//! Both are agreed on by variables of the environment: STAUNCH_HANDOVER here, LISTEN_FDS there
//! (sd_listen_fds(3)). It must never believe that something was left without looking.

use std::env;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::sockopt;
use serde_json::{Map, Value, json};
use staunch_engine::Inherited;
use staunch_netio::unix_listener::FileNumber;
use staunch_netio::{ListenPlace, handover, socket};

use crate::descriptors::Descriptors;

/// The variable that tells the next process what it was left.
pub(super) const VARIABLE: &str = "STAUNCH_HANDOVER";
/// Variables of systemd that are meant for the process it has started, and not for the next one.
pub(super) const FOREIGN: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];
/// The ends of pipes for the next process: to say that it serves, and to hear that this one has left.
const PIPES: [&str; 2] = ["ready", "left"];
/// The first descriptor that systemd leaves.
const FIRST: i32 = 3;

/// Sockets of one address that were left to this process.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) wanted: ListenPlace,
    /// The name systemd gave it, and its number.
    pub(super) names: Vec<String>,
    /// Whether an IPv6 socket for every address takes what comes to IPv4, too (systemd's
    /// `ListenStream=PORT`).
    pub(super) takes_ipv4: bool,
    inherited: Option<Inherited>,
}

impl Handed {
    pub(super) fn take(&mut self) -> Option<Inherited> {
        self.inherited.take()
    }
}

/// The process before this one waits for the word that this one serves.
#[derive(Debug)]
pub(super) struct Ready {
    word: File,
    left: OwnedFd,
}

/// Everything that was left.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) handed: Vec<Handed>,
    pub(super) ready: Option<Ready>,
    pub(super) further: Descriptors,
}

/// What is said on the pipe.
pub(super) const SHARES_QUEUES: u8 = b's';
/// Serving begins, at sockets of this process's own.
pub(super) const HAS_OWN_QUEUES: u8 = b'o';
/// Serving does not begin; why follows.
pub(super) const FAILED: u8 = b'f';

/// Says on the pipe why this process does not serve.
#[derive(Debug)]
pub(crate) struct LastWords(File);

impl LastWords {
    /// Says it. A process that has died meanwhile needs not know.
    pub(crate) fn say(mut self, why: &str) {
        let _ = self.0.write_all(&[&[FAILED], why.as_bytes()].concat());
    }
}

impl Ready {
    /// By what this process can say why it does not serve, if it does not.
    pub(super) fn last_words(&self) -> Option<LastWords> {
        self.word.try_clone().map(LastWords).ok()
    }

    /// Says it. A process that has died meanwhile needs not know. Gives what becomes readable when the former
    /// process no longer accepts.
    pub(super) fn tell(mut self, shares_queues: bool) -> OwnedFd {
        let _ = self.word.write_all(&[if shares_queues { SHARES_QUEUES } else { HAS_OWN_QUEUES }]);
        self.left
    }
}

/// Takes what was left.
///
/// # Errors
/// Something else was left than was announced.
pub(super) fn receive() -> Result<Received, String> {
    if let Some(text) = env::var_os(VARIABLE) {
        let text = text.to_string_lossy();
        return from_process(&text).map_err(|what| format!("{VARIABLE}: {what}: {text}"));
    }
    let meant = env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    let count = env::var("LISTEN_FDS").ok().filter(|_| meant).and_then(|count| count.parse().ok());
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    Ok(Received {
        handed: from_systemd(count.unwrap_or(0), &names)?,
        ready: None,
        further: Descriptors::default(),
    })
}

/// As [`describe`] has written it.
fn from_process(text: &str) -> Result<Received, String> {
    let told: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let number = |value: &Value| value.as_i64().and_then(|number| i32::try_from(number).ok());
    let backend = told["backend"].as_str().map(str::to_owned);
    let mut handed = Vec::new();
    for told in told["sockets"].as_array().ok_or("no sockets")? {
        let wanted = told["wanted"].as_str().and_then(|text| text.parse().ok()).ok_or("no address")?;
        let numbers = told["descriptors"].as_array().ok_or("no descriptors")?;
        let claim = |value| claim(number(value).ok_or("no number")?);
        let sockets = numbers.iter().map(claim).collect::<Result<Vec<_>, String>>()?;
        let names = told["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let outlasting = told["outlasting"].as_bool().unwrap_or(false);
        let wanted: ListenPlace = wanted;
        let takes_ipv4 = sockets.first().is_some_and(|socket| takes_ipv4(socket, &wanted));
        let file = file_number(&told["file"]);
        let inherited =
            Some(Inherited { wanted: wanted.clone(), sockets, backend: backend.clone(), file, outlasting });
        handed.push(Handed { wanted, names: names.map(str::to_owned).collect(), takes_ipv4, inherited });
    }
    let pipe = |name: &str| {
        let pipe = number(&told[name]).ok_or("no pipe")?;
        handover::claim(pipe).map_err(|error| format!("descriptor {pipe}: {error}"))
    };
    let [ready, left] = PIPES;
    let (word, left) = (File::from(pipe(ready)?), pipe(left)?);
    let names = told.as_object().into_iter().flatten().filter(|(_, value)| value.is_number());
    let names = names.map(|(name, _)| name).filter(|name| !PIPES.contains(&name.as_str()));
    let mut further = Descriptors::default();
    for name in names {
        further.put(name, Some(pipe(name)?));
    }
    Ok(Received { handed, ready: Some(Ready { word, left }), further })
}

/// Device and number of a socket file, which an earlier version does not tell.
fn file_number(told: &Value) -> Option<FileNumber> {
    Some(FileNumber { device: told[0].as_u64()?, inode: told[1].as_u64()? })
}

fn from_systemd(count: i32, names: &str) -> Result<Vec<Handed>, String> {
    let mut names = names.split(':');
    let mut take = |number: i32| {
        let name = names.next().map(str::to_owned);
        if handover::is_datagram(number) {
            // Of another service of the same unit, or of a protocol that is not spoken here: it is closed.
            return handover::claim(number)
                .map(|_| None)
                .map_err(|error| format!("descriptor {number}: {error}"));
        }
        let socket = claim(number)?;
        let wanted = socket::local_place(&socket).map_err(|error| {
            format!("descriptor {number} is no socket of the Internet, nor of a file: {error}")
        })?;
        Ok(Some(Handed {
            wanted: wanted.clone(),
            names: name.into_iter().chain([number.to_string()]).collect(),
            takes_ipv4: takes_ipv4(&socket, &wanted),
            inherited: Some(Inherited {
                wanted,
                sockets: vec![socket],
                backend: None,
                file: None,
                outlasting: true,
            }),
        }))
    };
    (FIRST..FIRST.saturating_add(count)).filter_map(|number| take(number).transpose()).collect()
}

fn takes_ipv4(socket: &OwnedFd, wanted: &ListenPlace) -> bool {
    let is_every = |address: SocketAddr| address.is_ipv6() && address.ip().is_unspecified();
    wanted.address().is_some_and(is_every) && sockopt::ipv6_v6only(socket) == Ok(false)
}

fn claim(number: i32) -> Result<OwnedFd, String> {
    handover::claim_listener(number)
        .map_err(|error| format!("descriptor {number} is no socket that listens: {error}"))
}

/// What the next process is told: these sockets, with the names under which some addresses are known, and its
/// ends of the pipes: to say that it serves, and to hear that this process has left; and further descriptors.
pub(super) fn describe(
    sockets: &[Inherited],
    known: &[Handed],
    backend: &str,
    number_of: impl Fn(&OwnedFd) -> i32,
    pipes: [&OwnedFd; 2],
    further: &Descriptors,
) -> String {
    let describe = |inherited: &Inherited| {
        let descriptors: Vec<i32> = inherited.sockets.iter().map(&number_of).collect();
        let names = known.iter().find(|known| known.wanted == inherited.wanted).map(|known| &known.names);
        json!({
            "wanted": inherited.wanted.to_string(),
            "names": names,
            "descriptors": descriptors,
            "file": inherited.file.map(|FileNumber { device, inode }| [device, inode]),
            "outlasting": inherited.outlasting,
        })
    };
    let sockets: Vec<Value> = sockets.iter().map(describe).collect();
    let named = PIPES.into_iter().zip(pipes).chain(further.iter());
    let mut told: Map<String, Value> =
        named.map(|(name, descriptor)| (name.to_owned(), number_of(descriptor).into())).collect();
    told.insert("backend".to_owned(), backend.into());
    told.insert("sockets".to_owned(), sockets.into());
    Value::Object(told).to_string()
}

/// The text of [`describe`] with the numbers that descriptors have in another process; `None` if one
/// has none there, or it is no such text.
pub(super) fn renumber(told: &str, number_of: impl Fn(i32) -> Option<i32>) -> Option<String> {
    let mut told: Value = serde_json::from_str(told).ok()?;
    let renumber = |value: &mut Value| {
        let number = number_of(i32::try_from(value.as_i64()?).ok()?)?;
        *value = number.into();
        Some(())
    };
    for socket in told.get_mut("sockets")?.as_array_mut()? {
        socket.get_mut("descriptors")?.as_array_mut()?.iter_mut().try_for_each(renumber)?;
    }
    let mut named = told.as_object_mut()?.values_mut().filter(|value| value.is_number());
    named.try_for_each(renumber)?;
    Some(told.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::{AsRawFd, IntoRawFd};

    fn listener() -> (ListenPlace, OwnedFd) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        (listener.local_addr().unwrap().into(), handover::inheritable(&listener).unwrap())
    }

    #[test]
    fn what_is_described_is_received() {
        let (wanted, socket) = listener();
        let known = [Handed {
            wanted: wanted.clone(),
            names: vec!["http".into()],
            takes_ipv4: false,
            inherited: None,
        }];
        let file = Some(FileNumber { device: 1 << 40, inode: u64::MAX });
        let left = vec![socket];
        let sockets =
            [Inherited { wanted: wanted.clone(), sockets: left, backend: None, file, outlasting: true }];
        let pipes = [(); 2].map(|()| OwnedFd::from(File::create("/dev/null").unwrap()));
        let mut further = Descriptors::default();
        for name in ["tickets", "live", "new"] {
            further.put(name, Some(File::create("/dev/null").unwrap().into()));
        }
        let ends = [&pipes[0], &pipes[1]];
        let text = describe(&sockets, &known, "epoll", AsRawFd::as_raw_fd, ends, &further);
        let number = sockets.into_iter().next().unwrap().sockets.remove(0).into_raw_fd();
        let numbers = pipes.map(IntoRawFd::into_raw_fd);
        assert!(number > 2 && numbers.iter().all(|number| *number > 2));
        let numbers_of = |further: &Descriptors| {
            further.iter().map(|(name, one)| (name.to_owned(), one.as_raw_fd())).collect::<Vec<_>>()
        };
        let further_numbers = numbers_of(&further);
        // They are claimed by their numbers.
        for (name, _) in &further_numbers {
            let _ = further.take(name).map(IntoRawFd::into_raw_fd);
        }
        let Received { mut handed, ready, further } = from_process(&text).unwrap();
        assert_eq!(numbers_of(&further), further_numbers);
        assert_eq!(handed[0].names, ["http"]);
        let inherited = handed[0].take().unwrap();
        assert_eq!((inherited.wanted, inherited.sockets.len()), (wanted, 1));
        assert_eq!((inherited.backend.as_deref(), inherited.outlasting), (Some("epoll"), true));
        assert_eq!(inherited.file, file);
        drop(ready.unwrap().tell(true));
    }

    #[test]
    fn descriptors_have_other_numbers_in_another_process() {
        let told = r#"{"sockets":[{"wanted":"x","descriptors":[3,4]}],"ready":5,"left":6,"agent":null}"#;
        let other = renumber(told, |number| Some(number + 10)).expect("a text");
        let other: Value = serde_json::from_str(&other).expect("JSON");
        assert_eq!(other["sockets"][0]["descriptors"], json!([13, 14]));
        assert_eq!(
            (&other["ready"], &other["left"], &other["agent"]),
            (&json!(15), &json!(16), &Value::Null)
        );
        assert_eq!(renumber(told, |number| (number != 4).then_some(number)), None);
        assert_eq!(renumber("nonsense", Some), None);
    }

    #[test]
    fn what_was_not_left_is_named() {
        let cases = [
            ("{", "EOF while parsing"),
            ("{}", "no sockets"),
            (r#"{"sockets": [], "ready": 900000}"#, "descriptor 900000: Bad file descriptor"),
            (r#"{"sockets": [{"wanted": "x"}]}"#, "no address"),
            (
                r#"{"sockets": [{"wanted": "1.2.3.4:5", "descriptors": [900001]}]}"#,
                "descriptor 900001 is no socket that listens: Bad file",
            ),
        ];
        for (text, expected) in cases {
            let error = from_process(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(from_systemd(0, "").unwrap().is_empty());
    }
}
