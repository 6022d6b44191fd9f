//! What a path asks a truth server to do.
//!
//! It owns the table of behaviours and their parameters; it must never do anything itself.

use std::time::Duration;

use super::plan;

/// Bytes of a body when the path does not say.
const BODY_BYTES: usize = 100;
/// A larger body is refused: bodies are made whole.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A behaviour of the truth server. `bytes` are bytes of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// `/ok?bytes=N`: a right answer.
    Ok { bytes: usize },
    /// `/status/503`: an answer with this status.
    Status(u16),
    /// `/delay/20ms`: a right answer after this time, in which no worker is needed.
    Delay(Duration),
    /// `/stall`: never an answer.
    Stall,
    /// `/reset`: a reset instead of an answer.
    Reset,
    /// `/reset-in-body?bytes=N`: half a body, then a reset.
    ResetInBody { bytes: usize },
    /// `/short?bytes=N`: half a body, then an orderly close.
    Short { bytes: usize },
    /// `/wrong-body?bytes=N`: as `/ok`, but for one byte in the middle.
    WrongBody { bytes: usize },
    /// `/close?bytes=N`: a right answer that says `Connection: close`, and closes.
    Close { bytes: usize },
    /// `/chunked?bytes=N&chunk=M`: a right answer in chunks of `chunk` bytes.
    Chunked { bytes: usize, chunk: usize },
    /// `/no-length?bytes=N`: a right answer that ends where the connection ends.
    NoLength { bytes: usize },
    /// `/slow-body?bytes=N&over=1s`: a right answer in ten pieces, spread over this time.
    SlowBody { bytes: usize, over: Duration },
    /// `/echo`: the bytes of the request as the body of a right answer.
    Echo,
    /// `/garbage`: bytes that are not HTTP, then an orderly close.
    Garbage,
    /// `/hang-after-head?bytes=N`: a head that promises a body, then nothing.
    HangAfterHead { bytes: usize },
    /// `/1xx`: a status 100, then a right answer.
    Interim,
    /// `/truth`: the counts.
    Truth,
}

impl Behaviour {
    /// Reads path and query.
    ///
    /// # Errors
    /// The status it deserves and a sentence that names the fault.
    pub(crate) fn of(target: &str) -> Result<Self, (u16, String)> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (kind, rest) = split(path);
        let query = Query { text: query };
        let behaviour = match (kind, rest) {
            ("status", Some(status)) => Self::Status(status_of(status)?),
            ("delay", Some(length)) => Self::Delay(duration(length)?),
            (_, Some(_)) => return Err((404, format!("nothing is at {path:?}"))),
            ("ok", None) => Self::Ok { bytes: query.bytes()? },
            ("stall", None) => Self::Stall,
            ("reset", None) => Self::Reset,
            ("reset-in-body", None) => Self::ResetInBody { bytes: query.bytes()? },
            ("short", None) => Self::Short { bytes: query.bytes()? },
            ("wrong-body", None) => Self::WrongBody { bytes: query.bytes()?.max(1) },
            ("close", None) => Self::Close { bytes: query.bytes()? },
            ("chunked", None) => {
                Self::Chunked { bytes: query.bytes()?, chunk: query.number("chunk", 1000)?.max(1) }
            }
            ("no-length", None) => Self::NoLength { bytes: query.bytes()? },
            ("slow-body", None) => {
                let over = query.value("over").map_or(Ok(Duration::from_secs(1)), duration)?;
                Self::SlowBody { bytes: query.bytes()?, over }
            }
            ("echo", None) => Self::Echo,
            ("garbage", None) => Self::Garbage,
            ("hang-after-head", None) => Self::HangAfterHead { bytes: query.bytes()?.max(1) },
            ("1xx", None) => Self::Interim,
            ("truth", None) => Self::Truth,
            _ => return Err((404, format!("nothing is at {path:?}"))),
        };
        Ok(behaviour)
    }

    /// Its name in the counts: the first segment of its path.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Ok { .. } => "ok",
            Self::Status(_) => "status",
            Self::Delay(_) => "delay",
            Self::Stall => "stall",
            Self::Reset => "reset",
            Self::ResetInBody { .. } => "reset-in-body",
            Self::Short { .. } => "short",
            Self::WrongBody { .. } => "wrong-body",
            Self::Close { .. } => "close",
            Self::Chunked { .. } => "chunked",
            Self::NoLength { .. } => "no-length",
            Self::SlowBody { .. } => "slow-body",
            Self::Echo => "echo",
            Self::Garbage => "garbage",
            Self::HangAfterHead { .. } => "hang-after-head",
            Self::Interim => "1xx",
            Self::Truth => "truth",
        }
    }
}

/// First segment and what is behind it.
fn split(path: &str) -> (&str, Option<&str>) {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_once('/').map_or((path, None), |(kind, rest)| (kind, Some(rest)))
}

fn status_of(text: &str) -> Result<u16, (u16, String)> {
    let status = text.parse().ok().filter(|status| (200..600).contains(status));
    status.ok_or_else(|| (400, format!("no final status from 200 to 599: {text:?}")))
}

fn duration(text: &str) -> Result<Duration, (u16, String)> {
    plan::duration(text).map_err(|why| (400, why))
}

struct Query<'a> {
    text: &'a str,
}

impl<'a> Query<'a> {
    fn value(&self, name: &str) -> Option<&'a str> {
        self.text
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|pair| pair.0 == name)
            .map(|pair| pair.1)
    }

    fn number(&self, name: &str, default: usize) -> Result<usize, (u16, String)> {
        let number = self.value(name).map_or(Ok(default), str::parse).ok();
        let number = number.filter(|number| *number <= BODY_BYTES_MAX);
        number.ok_or_else(|| (400, format!("{name} is no number up to {BODY_BYTES_MAX}: {:?}", self.text)))
    }

    fn bytes(&self) -> Result<usize, (u16, String)> {
        self.number("bytes", BODY_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_behaviours() {
        let cases = [
            ("/ok", Behaviour::Ok { bytes: 100 }),
            ("/ok?bytes=0", Behaviour::Ok { bytes: 0 }),
            ("/ok?other=7&bytes=5000", Behaviour::Ok { bytes: 5000 }),
            ("/status/503", Behaviour::Status(503)),
            ("/delay/20ms", Behaviour::Delay(Duration::from_millis(20))),
            ("/chunked?bytes=9&chunk=2", Behaviour::Chunked { bytes: 9, chunk: 2 }),
            ("/slow-body?bytes=7&over=2s", Behaviour::SlowBody { bytes: 7, over: Duration::from_secs(2) }),
            ("/1xx", Behaviour::Interim),
        ];
        for (target, expected) in cases {
            let behaviour = Behaviour::of(target).unwrap();
            assert_eq!(behaviour, expected, "{target}");
            assert!(target[1..].starts_with(behaviour.kind()), "{target}");
        }
    }

    #[test]
    fn faults_are_named() {
        let cases = [
            ("/", 404, "\"/\""),
            ("/nothing", 404, "nothing"),
            ("/ok/deeper", 404, "deeper"),
            ("/ok?bytes=many", 400, "bytes"),
            ("/ok?bytes=99999999999", 400, "bytes"),
            ("/chunked?chunk=-1", 400, "chunk"),
            ("/status/100", 400, "100"),
            ("/status/ok", 400, "ok"),
            ("/delay/20", 400, "20"),
            ("/slow-body?over=1h", 400, "1h"),
        ];
        for (target, status, named) in cases {
            let (found, why) = Behaviour::of(target).unwrap_err();
            assert_eq!(found, status, "{target}");
            assert!(why.contains(named), "{target}: {why}");
        }
    }
}
