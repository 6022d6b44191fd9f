//! Real applications behind the proxy: nginx, node and Python, each as it is installed.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use staunch_tests::process::is_installed;

use crate::world::{ENGINES, Told as _, World};

/// A program that says its port on the first line of its output. It ends with this.
struct Application(Child);

impl Application {
    fn start(program: &str, arguments: &[&str]) -> (Self, String) {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line with the port");
        (Self(child), format!("127.0.0.1:{}", line.trim()))
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const NODE: &str = "
const http = require('http');
const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', data => body += data);
  request.on('end', () => {
    response.setHeader('Content-Type', 'text/plain');
    response.write(request.method + ' ' + request.url + '\\n');
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));";

const PYTHON: &str = "
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        body = f'{self.command} {self.path}\\n'.encode() + body
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()";

#[test]
fn applications_of_other_makers_are_asked_as_they_expect() {
    for (program, arguments) in [("node", ["-e", NODE]), ("python3", ["-c", PYTHON])] {
        if !is_installed(program) {
            continue;
        }
        let (_application, address) = Application::start(program, &arguments);
        for io in ENGINES {
            let world = World::proxy(io, std::slice::from_ref(&address), &[]);
            assert_eq!(world.get("/a%20b?c=d").text(), "GET /a%20b?c=d\n", "{program} {io}");
            let post =
                "POST /p HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello";
            let mut client = crate::world::Client::of(&world);
            client.send(post.as_bytes());
            let first = client.read(false);
            let answer = if first.status == 100 { client.read(false) } else { first };
            assert_eq!(answer.text(), "POST /p\nhello", "{program} {io}");
        }
    }
}
