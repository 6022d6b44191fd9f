"""Conversations over TLS by Python's ssl: `talk.py PORT CA WHAT`. Ends with 0 if all is as it should be.

An end without close_notify is an error here (suppress_ragged_eofs), and the certificate is checked.
"""

import select
import socket
import ssl
import sys

PORT, CA, WHAT = int(sys.argv[1]), sys.argv[2], sys.argv[3]
PATIENCE_S = 30


def context(version=None, protocol="http/1.1"):
    made = ssl.create_default_context(cafile=CA)
    made.set_alpn_protocols([protocol])
    if version is not None:
        made.minimum_version = made.maximum_version = version
    return made


def connect(made, session=None, name="localhost"):
    plain = socket.create_connection(("127.0.0.1", PORT), PATIENCE_S)
    return made.wrap_socket(plain, server_hostname=name, suppress_ragged_eofs=False, session=session)


def read_answer(reader):
    status = int(reader.readline().split()[1])
    length = 0
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)
    body = reader.read(length)
    assert len(body) == length, (len(body), length)
    return status, body


def byte_at(place):
    return (place % 251) ^ ((place >> 12) & 255)


def request(path, fields=""):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode()


def kept():
    """A hundred requests on a connection, one after the other, and an end in order."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        secured = connect(context(version))
        assert secured.selected_alpn_protocol() == "http/1.1", secured.selected_alpn_protocol()
        reader = secured.makefile("rb")
        for _ in range(100):
            secured.sendall(request("/5000"))
            status, body = read_answer(reader)
            assert status == 200 and body == bytes(map(byte_at, range(5000))), (status, len(body))
        secured.sendall(request("/5000", "Connection: close\r\n"))
        read_answer(reader)
        # Raises if the end is not said.
        assert reader.read() == b""


def crossing():
    """A request that crosses with the announced end resets nothing (RFC 9112, section 9.6)."""
    secured = connect(context())
    reader = secured.makefile("rb")
    for fields in ("", "Connection: close\r\n"):
        secured.sendall(request("/5000", fields))
        read_answer(reader)
    assert reader.read(1) == b"", "the end is said"
    secured.sendall(request("/5000"))
    # From here on below TLS: how the connection itself ends.
    secured.shutdown(socket.SHUT_WR)
    assert secured.recv(65536) == b""


def pipelined():
    """Fifty requests at once, in records of odd lengths."""
    secured = connect(context())
    reader = secured.makefile("rb")
    wanted = request("/5000") * 49 + request("/100000", "Connection: close\r\n")
    for start in range(0, len(wanted), 777):
        secured.sendall(wanted[start : start + 777])
    for place in range(50):
        status, body = read_answer(reader)
        assert status == 200 and len(body) == (5000 if place < 49 else 100000)
        assert body == bytes(map(byte_at, range(len(body))))
    assert reader.read() == b""


def slow():
    """A large answer, read slowly at first."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(PATIENCE_S)
    plain.connect(("127.0.0.1", PORT))
    secured = context().wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
    reader = secured.makefile("rb", buffering=0)
    secured.sendall(request(sys.argv[4], "Connection: close\r\n"))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += reader.read(1)
    place = 0
    while piece := reader.read(1 << 14):
        for offset in (0, len(piece) - 1):
            assert piece[offset] == byte_at(place + offset), place + offset
        place += len(piece)
    assert place == int(sys.argv[5]), place


def upload():
    """A body in large records, which the server throws away."""
    secured = connect(context())
    reader = secured.makefile("rb")
    body = b"x" * 300_000
    secured.sendall(f"POST /5000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    secured.sendall(body)
    secured.sendall(request("/5000"))
    assert read_answer(reader)[0] == 405
    assert read_answer(reader)[0] == 200


def resumed():
    """A second connection with a ticket of the first, in both versions."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        made = context(version)
        first = connect(made)
        first.sendall(request("/5000"))
        # Tickets of TLS 1.3 come behind the handshake, and are read with the answer.
        read_answer(first.makefile("rb"))
        assert not first.session_reused
        second = connect(made, first.session)
        assert second.session_reused, version
        second.sendall(request("/5000"))
        read_answer(second.makefile("rb"))


def cut():
    """The client leaves without a word, and with one, in the middle of things."""
    for leave in (lambda secured: secured.close(), lambda secured: secured.unwrap()):
        secured = connect(context())
        secured.sendall(request("/5000"))
        read_answer(secured.makefile("rb"))
        leave(secured)
    secured = connect(context())
    secured.sendall(request("/5000")[:20])
    secured.close()


def crowd():
    """Many connections that rest, each of which goes on afterwards."""
    made = context()
    visitors = [connect(made) for _ in range(int(sys.argv[4]))]
    for visitor in visitors:
        visitor.sendall(request("/5000"))
        read_answer(visitor.makefile("rb"))
    print("resting", flush=True)
    sys.stdin.readline()
    for visitor in visitors:
        visitor.sendall(request("/100000"))
        status, body = read_answer(visitor.makefile("rb"))
        assert status == 200 and len(body) == 100000
        assert visitor.unwrap() is not None


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def next_frame(reader):
    """Kind, flags and payload of the next frame; None at an end in order."""
    head = reader.read(9)
    if not head:
        return None
    return head[3], head[4], reader.read(int.from_bytes(head[:3], "big"))


def first():
    """The server speaks first: tickets come, and settings of HTTP/2, though nothing was asked."""
    secured = connect(context(ssl.TLSVersion.TLSv1_3))
    secured.setblocking(False)
    while not secured.session.has_ticket:
        assert select.select([secured], [], [], PATIENCE_S)[0], "nothing comes"
        try:
            raise AssertionError(secured.recv(1))
        except ssl.SSLWantReadError:
            pass
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        reader = connect(context(version, "h2")).makefile("rb")
        kind, flags, _ = next_frame(reader)
        assert (kind, flags) == (4, 0), "SETTINGS come first"
        kind, _, more = next_frame(reader)
        assert kind == 8 and int.from_bytes(more, "big") > 65_535, "then the window of all bodies"


def last_word():
    """A mistake while an answer is under way: GOAWAY comes behind it, and then the end."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(PATIENCE_S)
    plain.connect(("127.0.0.1", PORT))
    made = context(protocol="h2")
    secured = made.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
    fields = [":method", "GET", ":scheme", "https", ":authority", "localhost", ":path", "/large"]
    texts = [bytes([len(text)]) + text.encode() for text in fields]
    block = b"".join(b"\0" + name + value for name, value in zip(texts[::2], texts[1::2]))
    most = (0x7FFF_FFFF).to_bytes(4, "big")
    secured.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"\0\4" + most))
    secured.sendall(frame(8, 0, 0, (0x7000_0000).to_bytes(4, "big")) + frame(1, 5, 1, block))
    reader = secured.makefile("rb")
    while next_frame(reader)[0] != 0:
        pass
    # PING on a stream.
    secured.sendall(frame(6, 0, 1, bytes(8)))
    last = None
    while (heard := next_frame(reader)) is not None:
        last = heard
    assert last[0] == 7, last[:2]
    assert last[2][:8] == bytes([0, 0, 0, 1, 0, 0, 0, 1]), last[2]


ALL = (kept, crossing, pipelined, slow, upload, resumed, cut, crowd, first, last_word)
{one.__name__: one for one in ALL}[WHAT]()
