"""Clients with a certificate, by Python's ssl: `clients.py PORT CA CERTIFICATE|- WHAT [COUNT]`.

A file of a certificate holds its key as well. Ends with 0 if all is as it should be.
"""

import socket
import ssl
import sys
import time

PORT, CA, CERTIFICATE, WHAT = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
PATIENCE_S = 30
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def context(version=None):
    made = ssl.create_default_context(cafile=CA)
    if CERTIFICATE != "-":
        made.load_cert_chain(CERTIFICATE)
    if version is not None:
        made.minimum_version = made.maximum_version = version
    return made


def connect(made, session=None):
    plain = socket.create_connection(("127.0.0.1", PORT), PATIENCE_S)
    return made.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False, session=session)


def ask(secured):
    """The status, and the head of the answer in small letters."""
    secured.sendall(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
    reader = secured.makefile("rb")
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = reader.readline()
        assert piece, head
        head += piece
    head = head.decode().lower()
    length = int(head.split("content-length: ")[1].split("\r\n")[0])
    assert len(reader.read(length)) == length
    return int(head.split()[1]), head


def resumed():
    """A second connection with a ticket of the first, in both versions."""
    for version in VERSIONS:
        made = context(version)
        first = connect(made)
        # Tickets of TLS 1.3 come with the first answer.
        assert ask(first)[0] == 200
        second = connect(made, first.session)
        assert second.session_reused, version
        assert ask(second)[0] == 200


def kept():
    """A connection that is open while something changes: it ends with the answer behind it."""
    secured = connect(context())
    status, head = ask(secured)
    assert status == 200 and "connection: close" not in head, head
    print("open", flush=True)
    sys.stdin.readline()
    status, head = ask(secured)
    assert status == 200 and "connection: close" in head, head
    assert secured.read() == b""


def kept_http2():
    """As `kept`, over HTTP/2: of two requests that come together the first one is answered."""
    made = context()
    made.set_alpn_protocols(["h2"])
    secured = connect(made)
    assert secured.selected_alpn_protocol() == "h2"
    secured.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"") + request(1))
    reader = secured.makefile("rb")
    frames = frames_until_end(reader, 1)
    assert GOAWAY not in [kind for kind, _, _ in frames], frames
    print("open", flush=True)
    sys.stdin.readline()
    secured.sendall(request(3) + request(5))
    frames = frames_until_end(reader, 3)
    # The rest is what came before the end of the connection.
    while piece := next_frame(reader):
        frames.append(piece)
    left = [payload[:8] for kind, _, payload in frames if kind == GOAWAY]
    # The last stream that is looked at, and no fault.
    assert left and all(one == b"\0\0\0\3\0\0\0\0" for one in left), frames
    assert all(stream != 5 for _, stream, _ in frames), frames


DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload):
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


def request(stream):
    """A request for /page: fields of HPACK's own table, and two without Huffman's code."""
    block = b"\x82\x87\x04\x05/page\x01\x09localhost"
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, block)


def next_frame(reader):
    """Kind, stream and payload of a frame; nothing at the end. What ends a stream has a bit above its kind."""
    head = reader.read(9)
    if not head:
        return None
    payload = reader.read(int.from_bytes(head[:3], "big"))
    kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
    is_end = kind in (DATA, HEADERS) and flags & END_STREAM
    return kind | (256 if is_end else 0), stream, payload


def frames_until_end(reader, stream):
    """All frames up to the end of an answer, which is a good one."""
    frames = []
    while not frames or frames[-1][:2] not in ((256 | DATA, stream), (256 | HEADERS, stream)):
        piece = next_frame(reader)
        assert piece, frames
        frames.append(piece)
    heads = [payload for kind, one, payload in frames if kind & 255 == HEADERS and one == stream]
    # 200 stands in HPACK's own table.
    assert len(heads) == 1 and heads[0][0] == 0x88, frames
    return frames


def ended():
    """A connection whose certificate ends by and by, while nobody else comes."""
    secured = connect(context())
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        status, head = ask(secured)
        assert status == 200, head
        if "connection: close" in head:
            assert secured.read() == b""
            return
        time.sleep(0.05)
    raise AssertionError("the certificate has ended, and nothing else")


def stream():
    """A stream of events that is open while its certificate is revoked: it ends before the next event."""
    secured = connect(context())
    secured.sendall(b"GET /events?topic=a HTTP/1.1\r\nHost: localhost\r\n\r\n")
    reader = secured.makefile("rb")
    for awaited, said in ((b"retry: ", "begun"), (b"before", "open")):
        while awaited not in (line := reader.readline()):
            assert line
        print(said, flush=True)
    sys.stdin.readline()
    # The last chunk is empty.
    while (line := reader.readline()) != b"0\r\n":
        assert line and b"behind" not in line, line


def moved():
    """A connection that is open when the site begins to go by other authorities: it ends with a refusal."""
    secured = connect(context())
    assert ask(secured)[0] == 200
    print("open", flush=True)
    sys.stdin.readline()
    status, head = ask(secured)
    assert status == 421 and "connection: close" in head, head


def asked_later():
    """A connection that is open when the site begins to require what it has not shown."""
    secured = connect(context())
    assert ask(secured)[0] == 200
    print("open", flush=True)
    sys.stdin.readline()
    assert ask(secured)[0] == 421


def crowd():
    """Many connections that rest, until they are told to leave."""
    made = context()
    visitors = [connect(made) for _ in range(int(sys.argv[5]))]
    for visitor in visitors:
        assert ask(visitor)[0] == 200
    print("resting", flush=True)
    sys.stdin.readline()


def refused():
    """The server lets nobody in without a certificate, and says so by its alert."""
    for version in VERSIONS:
        try:
            # In TLS 1.3 the client hears of it when it reads.
            ask(connect(context(version)))
        except ssl.SSLError as error:
            assert "CERTIFICATE_REQUIRED" in error.reason, error.reason
        else:
            raise AssertionError(version)


ALL = (resumed, kept, kept_http2, ended, stream, moved, asked_later, crowd, refused)
{one.__name__: one for one in ALL}[WHAT]()
