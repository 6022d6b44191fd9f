//! h2load beside the server's CPU, and what it reports.
//!
//! It owns its command line and the reading of its output. It must never hide a failed request.

use std::net::SocketAddr;
use std::process::Command;

use crate::load;

/// How h2load is to load a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamLoad {
    /// Connections kept open.
    pub(super) connections: u32,
    /// Requests at a time on each.
    pub(super) streams: u32,
    /// HTTP/1.1, not HTTP/2.
    pub(super) is_http1: bool,
}

/// Of the unmeasured load before each measurement.
const WARM_UP: [&str; 2] = ["-D", "1"];

impl StreamLoad {
    /// The command as a reader may repeat it.
    pub(super) fn command(&self, url: &str, address: SocketAddr, length: &[&str]) -> Vec<String> {
        let cpus = format!("1-{}", load::processors().end());
        let (connections, streams) = (self.connections.to_string(), self.streams.to_string());
        let address = address.to_string();
        let mut words = vec!["taskset", "-c", &cpus, "h2load", "-t", "1", "-c", &connections, "-m", &streams];
        words.extend(["--tls13-ciphers=TLS_AES_128_GCM_SHA256", "--groups=X25519", "--connect-to", &address]);
        if self.is_http1 {
            words.push("--h1");
        }
        words.extend(length);
        words.push(url);
        words.into_iter().map(str::to_owned).collect()
    }

    /// Requests a second, of a short run.
    ///
    /// # Errors
    /// As [`StreamLoad::run`].
    pub(super) fn rate(&self, url: &str, address: SocketAddr) -> Result<f64, String> {
        let text = said(&self.command(url, address, &WARM_UP))?;
        let line = text.lines().find(|line| line.starts_with("finished in "));
        let rate = line.and_then(|line| line.split(", ").nth(1)?.strip_suffix(" req/s")?.parse().ok());
        rate.ok_or_else(|| format!("h2load said no rate: {text}"))
    }

    /// Makes so many requests.
    ///
    /// # Errors
    /// h2load cannot be run, or any request was not answered with a status of 200 to 299.
    pub(super) fn run(&self, url: &str, address: SocketAddr, requests: u64) -> Result<(), String> {
        check(&said(&self.command(url, address, &["-n", &requests.to_string()]))?, requests)
    }
}

/// What a command says.
fn said(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("h2load ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

/// That all requests were answered rightly.
fn check(text: &str, requests: u64) -> Result<(), String> {
    let has = |words: String| text.contains(&words);
    let all = format!("{requests} succeeded, 0 failed, 0 errored, 0 timeout");
    if has(all) && has(format!("status codes: {requests} 2xx, 0 3xx, 0 4xx, 0 5xx")) {
        return Ok(());
    }
    let lines =
        text.lines().filter(|line| line.starts_with("requests:") || line.starts_with("status codes:"));
    Err(format!("h2load: {}", lines.collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_failed_request_is_hidden() {
        let text = |ok: u32, failed: u32, wrong: u32| {
            format!(
                "requests: 9 total, 9 started, 9 done, {ok} succeeded, {failed} failed, 0 errored, 0 \
                 timeout\nstatus codes: {} 2xx, 0 3xx, {wrong} 4xx, 0 5xx\n",
                ok - wrong
            )
        };
        assert_eq!(check(&text(9, 0, 0), 9), Ok(()));
        assert!(check(&text(8, 1, 0), 9).is_err() && check(&text(9, 0, 1), 9).is_err());
        assert!(check(&text(9, 0, 0), 10).is_err() && check("", 9).is_err());
    }
}
