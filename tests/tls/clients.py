"""Clients with a certificate, by Python's ssl: `clients.py PORT CA CERTIFICATE|- WHAT [COUNT]`.

A file of a certificate holds its key as well. Ends with 0 if all is as it should be.
"""

import socket
import ssl
import sys

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


{one.__name__: one for one in (resumed, kept, asked_later, crowd, refused)}[WHAT]()
