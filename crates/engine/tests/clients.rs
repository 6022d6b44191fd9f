//! Clients that others wrote, against the example `echo`: curl, Python, Node and Go.
//!
//! A client that is not installed is skipped with its name; with CI=true that fails.

#[path = "exchanges/neighbours.rs"]
mod neighbours;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use neighbours::{echoing_upstream, nobody};

/// Every client prints these lines: what came back of `/echo`, `/drip`, `/collect` and `/upstream`.
const EXPECTED: &str = "echo 300000 true\ndrip drop 1,drop 2,drop 3\ncollect 5 hello\nlimit 413\n\
                        upstream 300000 true\nrefused 502\n";

const PYTHON: &str = r#"
import http.client, sys
host = sys.argv[1]
connection = http.client.HTTPConnection(host, timeout=40)
body = bytes(index * 7 % 251 for index in range(300000))
connection.request("POST", "/echo", body=iter([body[:1], body[1:70000], body[70000:]]), encode_chunked=True,
                   headers={"Transfer-Encoding": "chunked"})
got = connection.getresponse().read()
print("echo", len(got), str(got == body).lower())
connection.request("GET", "/drip?every=10ms&count=3")
print("drip", ",".join(connection.getresponse().read().decode().split("\n")[:-1]))
connection.request("POST", "/collect", body=b"hello")
print("collect", connection.getresponse().read().decode())
connection.request("POST", "/collect?limit=2", body=b"hello")
response = connection.getresponse()
response.read()
print("limit", response.status)
connection.request("POST", "/upstream", body=iter([body[:1], body[1:]]), encode_chunked=True,
                   headers={"Transfer-Encoding": "chunked"})
got = connection.getresponse().read()
print("upstream", len(got), str(got == body).lower())
connection.request("POST", "/upstream?to=1", body=b"hello")
print("refused", connection.getresponse().status)
"#;

const NODE: &str = r#"
const http = require("http");
const [host, port] = process.argv.at(-1).split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const ask = (method, path, pieces) => new Promise((resolve, reject) => {
  const request = http.request({ host, port, method, path, agent }, (response) => {
    const parts = [];
    response.on("data", (part) => parts.push(part));
    response.on("end", () => resolve([response.statusCode, Buffer.concat(parts)]));
  });
  request.on("error", reject);
  for (const piece of pieces) request.write(piece);
  request.end();
});
(async () => {
  const body = Buffer.from(Array.from({ length: 300000 }, (_, index) => (index * 7) % 251));
  const [, got] = await ask("POST", "/echo", [body.subarray(0, 1), body.subarray(1)]);
  console.log("echo", got.length, got.equals(body));
  const [, drip] = await ask("GET", "/drip?every=10ms&count=3", []);
  console.log("drip", drip.toString().trim().split("\n").join(","));
  const [, collected] = await ask("POST", "/collect", ["hello"]);
  console.log("collect", collected.toString());
  const [status] = await ask("POST", "/collect?limit=2", ["hello"]);
  console.log("limit", status);
  const [, back] = await ask("POST", "/upstream", [body.subarray(0, 1), body.subarray(1)]);
  console.log("upstream", back.length, back.equals(body));
  const [refused] = await ask("POST", "/upstream?to=1", ["hello"]);
  console.log("refused", refused);
  agent.destroy();
})();
"#;

const GO: &str = r#"
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func ask(method, path string, body io.Reader) (int, []byte) {
	request, _ := http.NewRequest(method, "http://"+os.Args[1]+path, body)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	return response.StatusCode, got
}

func main() {
	body := make([]byte, 300000)
	for index := range body {
		body[index] = byte(index * 7 % 251)
	}
	_, got := ask("POST", "/echo", io.MultiReader(bytes.NewReader(body[:1]), bytes.NewReader(body[1:])))
	fmt.Println("echo", len(got), bytes.Equal(got, body))
	_, drip := ask("GET", "/drip?every=10ms&count=3", nil)
	fmt.Println("drip", strings.Join(strings.Split(strings.TrimSpace(string(drip)), "\n"), ","))
	_, collected := ask("POST", "/collect", strings.NewReader("hello"))
	fmt.Println("collect", string(collected))
	status, _ := ask("POST", "/collect?limit=2", strings.NewReader("hello"))
	fmt.Println("limit", status)
	_, back := ask("POST", "/upstream", io.MultiReader(bytes.NewReader(body[:1]), bytes.NewReader(body[1:])))
	fmt.Println("upstream", len(back), bytes.Equal(back, body))
	refused, _ := ask("POST", "/upstream?to=1", strings.NewReader("hello"))
	fmt.Println("refused", refused)
}
"#;

/// 300 000 bytes go by a file; `-T -` would make curl choose other framings.
const CURL: &str = r#"
folder=$(mktemp -d); trap 'rm -r "$folder"' EXIT
head -c 300000 /dev/urandom > "$folder/sent"
curl -s -m 40 -X POST -H "Transfer-Encoding: chunked" -H "Expect: 100-continue" \
  --data-binary @"$folder/sent" \
  "http://$1/echo" > "$folder/got"
cmp -s "$folder/sent" "$folder/got" && same=true || same=false
echo "echo $(stat -c %s "$folder/got") $same"
echo "drip $(curl -s -m 40 -N "http://$1/drip?every=10ms&count=3" | paste -sd,)"
echo "collect $(curl -s -m 40 -d hello "http://$1/collect")"
echo "limit $(curl -s -m 40 -o /dev/null -w '%{http_code}' -d hello "http://$1/collect?limit=2")"
curl -s -m 40 -X POST -H "Transfer-Encoding: chunked" -H "Expect: 100-continue" \
  --data-binary @"$folder/sent" \
  "http://$1/upstream" > "$folder/back"
cmp -s "$folder/sent" "$folder/back" && same=true || same=false
echo "upstream $(stat -c %s "$folder/back") $same"
echo "refused $(curl -s -m 40 -o /dev/null -w '%{http_code}' -d hello "http://$1/upstream?to=1")"
"#;

struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// The example, which cargo builds with the tests.
    fn start() -> Self {
        let mut path: PathBuf = std::env::current_exe().expect("a path");
        path.pop();
        path.pop();
        let program = path.join("examples/echo");
        let mut command = Command::new(&program);
        command.args(["127.0.0.1:0", "auto"]).args([echoing_upstream(), nobody()].map(|at| at.to_string()));
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
            panic!("{}: {error}; `cargo test -p staunch-engine` builds it", program.display())
        });
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(": ").next());
        let address = address.expect("an address").trim_end_matches(':').to_owned();
        Self { process, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_there(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is missing");
        println!("skipped: {program} is not installed");
    }
    found
}

/// Runs a client with the server's address as its last argument.
fn converse(program: &str, arguments: &[&str]) {
    if !is_there(program) {
        return;
    }
    let server = Server::start();
    let output = Command::new(program).args(arguments).arg(&server.address).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, EXPECTED, "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn curl() {
    if is_there("curl") {
        converse("sh", &["-c", CURL, "sh"]);
    }
}

#[test]
fn python() {
    converse("python3", &["-c", PYTHON]);
}

#[test]
fn node() {
    converse("node", &["-e", NODE, "--"]);
}

#[test]
fn go() {
    let folder = std::env::temp_dir().join(format!("staunch-echo-go-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = folder.join("main.go");
    std::fs::write(&source, GO).expect("a file");
    converse("go", &["run", source.to_str().expect("a path of text")]);
    std::fs::remove_dir_all(&folder).expect("our folder");
}
