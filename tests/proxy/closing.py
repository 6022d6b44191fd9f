"""An application by TLS that ends its connections by TLS alone: `closing.py CERTIFICATE KEY`. Tells its port on a line.

Whoever asks for `/counts` is told how often each path was asked for.
"""
import json
import socket
import ssl
import sys
import threading

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:3])
counts = {}
GARBAGE = b"\x17\x03\x03\x00\x20" + bytes(32)


class Link:
    """A connection whose records go out together, when it is told to."""

    def __init__(self, stream):
        self.stream, self.come, self.go = stream, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.come, self.go, server_side=True)

    def until_done(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.flush()
                piece = self.stream.recv(65536)
                if not piece:
                    raise EOFError from None
                self.come.write(piece)

    def flush(self, behind=b""):
        self.stream.sendall(self.go.read() + behind)

    def flush_begun(self, answer):
        answered = self.go.read()
        self.tls.write(answer)
        record = self.go.read()
        self.stream.sendall(answered + record[:20])
        # With the next request the rest comes.
        if self.stream.recv(65536):
            self.stream.sendall(record[20:])

    def say_end(self):
        try:
            self.tls.unwrap()
        except ssl.SSLError:
            pass

    def wait_for_end(self):
        while self.stream.recv(65536):
            pass


def serve(link):
    link.until_done(link.tls.do_handshake)
    while True:
        head = b""
        while b"\r\n\r\n" not in head:
            head += link.until_done(lambda: link.tls.read(65536))
        path = head.split(b" ")[1].decode()
        counts[path] = counts.get(path, 0) + 1
        body = json.dumps(counts).encode() if path == "/counts" else b"ok"
        length = b"" if path == "/without-length" else b"Content-Length: %d\r\n" % len(body)
        link.tls.write(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n" + body)
        if path in ("/without-length", "/with-length"):
            # The end is said in the same segment, and the connection stays.
            link.say_end()
            link.flush()
            return link.wait_for_end()
        if path == "/begun":
            # Behind the answer another begins, whose record the next segment would end.
            link.flush_begun(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            return link.wait_for_end()
        link.flush(GARBAGE if path == "/garbage" else b"")
        if path == "/garbage":
            return link.wait_for_end()


def serve_quietly(stream):
    try:
        with stream:
            serve(Link(stream))
    except (EOFError, OSError):
        pass


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve_quietly, args=(listener.accept()[0],), daemon=True).start()
