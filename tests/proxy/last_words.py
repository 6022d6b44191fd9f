"""An application by TLS that tells how its connections end: `last_words.py CERTIFICATE KEY`. Tells its port on a line,
and then a line for each connection: the alert that ended its handshake, `notified`, or `cut`. Of a request for `/silent`
it tells that it came.
"""
import socket
import ssl
import sys
import threading

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:3])
ANSWERS = {
    "/keep": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "/close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    "/bad": b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
    # Nothing is answered, until the one who asks has gone.
    "/silent": b"",
}


def end_of(stream):
    """How a connection ends whose requests are answered."""
    try:
        link = context.wrap_socket(stream, server_side=True, suppress_ragged_eofs=False)
    except ssl.SSLError as error:
        return error.reason
    except OSError:
        return "cut"
    try:
        while True:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = link.recv(65536)
                if not piece:
                    return "notified"
                head += piece
            path = head.split(b" ")[1].decode()
            if path == "/silent":
                print("asked", flush=True)
            link.sendall(ANSWERS[path])
    except OSError:
        return "cut"


def serve(stream):
    print(end_of(stream), flush=True)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
