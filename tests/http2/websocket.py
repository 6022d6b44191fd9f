"""WebSockets by HTTP/2 (RFC 8441) with Python's h2: websocket.py PORT. Prints `ok`.

Its library raises when the server passes a window or sends a bad block, and asks for a WebSocket only because the server
offers it. Cases are those of the Autobahn test suite in kind: frames and parts of them, pings, what is no UTF-8, reserved
bits and codes, ends.
"""

import os
import socket
import struct
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GREEN = "grün 绿 🟢".encode()

connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
stream = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=40)
connection.initiate_connection()
heard, fields, ended = {}, {}, set()


def frame(opcode, payload, last=True, reserved=0, masked=True):
    head = bytes([last << 7 | reserved << 4 | opcode])
    mask = os.urandom(4) if masked else b""
    bit = 128 if masked else 0
    size = len(payload)
    if size < 126:
        head += bytes([bit | size])
    elif size < 65_536:
        head += bytes([bit | 126]) + struct.pack("!H", size)
    else:
        head += bytes([bit | 127]) + struct.pack("!Q", size)
    return head + mask + (bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload)) if masked else payload)


def turn():
    """Sends what stands to be sent, and takes what comes."""
    stream.sendall(connection.data_to_send())
    came = stream.recv(65_536)
    assert came, "the server has closed"
    for event in connection.receive_data(came):
        if isinstance(event, h2.events.ResponseReceived):
            fields[event.stream_id] = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            heard[event.stream_id] += event.data
            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            ended.add(event.stream_id)
        elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
            raise SystemExit(f"the server ended something: {event}")


def ask(path, **more):
    number = connection.get_next_available_stream_id()
    head = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", path)]
    head += [(":authority", "a.example"), ("sec-websocket-version", "13")]
    connection.send_headers(number, head + [(name.replace("_", "-"), value) for name, value in more.items()])
    heard[number] = b""
    return number


def send(number, data, piece=16_384):
    for start in range(0, len(data), piece):
        part = data[start:start + piece]
        while connection.local_flow_control_window(number) < len(part):
            turn()
        connection.send_data(number, part)


def frames(data):
    """The frames that these bytes begin with."""
    found = []
    while len(data) >= 2:
        assert not data[1] & 128, "a server masks nothing"
        size, start = data[1] & 127, 2
        if size == 126:
            size, start = struct.unpack("!H", data[2:4].ljust(2, b"\0"))[0], 4
        elif size == 127:
            size, start = struct.unpack("!Q", data[2:10].ljust(8, b"\0"))[0], 10
        if len(data) < start + size:
            break
        found.append((data[0] & 15, bytes(data[start:start + size])))
        data = data[start + size:]
    return found


def closed(code):
    return [(CLOSE, struct.pack("!H", code))]


# What is sent, and what comes back: frames, of a close frame its code alone.
CASES = [
    *[(frame(TEXT, b"*" * size), [(TEXT, b"*" * size)]) for size in (0, 1, 125, 126, 127, 128, 65_535, 65_536)],
    *[(frame(BINARY, b"\xfe" * size), [(BINARY, b"\xfe" * size)]) for size in (0, 125, 126, 65_535, 65_536)],
    (frame(PING, b""), [(PONG, b"")]),
    (frame(PING, bytes(range(125))), [(PONG, bytes(range(125)))]),
    (frame(PING, b"x" * 126), closed(1002)),
    (frame(PONG, b"unasked") + frame(PING, b"then"), [(PONG, b"then")]),
    (b"".join(frame(PING, bytes([at])) for at in range(10)), [(PONG, bytes([at])) for at in range(10)]),
    (frame(TEXT, b"a", reserved=4), closed(1002)),
    (frame(TEXT, b"a", reserved=2), closed(1002)),
    (frame(TEXT, b"a") + frame(TEXT, b"b", reserved=1), [(TEXT, b"a"), *closed(1002)]),
    *[(frame(opcode, b""), closed(1002)) for opcode in (3, 4, 7, 11, 15)],
    (frame(PING, b"a", last=False), closed(1002)),
    (frame(0, b"of nothing"), closed(1002)),
    (frame(TEXT, b"a", last=False) + frame(TEXT, b"b"), closed(1002)),
    (frame(TEXT, b"in ", last=False) + frame(PING, b"p") + frame(0, b"two"), [(PONG, b"p"), (TEXT, b"in two")]),
    (frame(TEXT, b"", last=False) + frame(0, b"", last=False) + frame(0, b""), [(TEXT, b"")]),
    (frame(TEXT, GREEN), [(TEXT, GREEN)]),
    (frame(TEXT, GREEN[:3], last=False) + frame(0, GREEN[3:]), [(TEXT, GREEN)]),
    *[(frame(TEXT, bad), closed(1007)) for bad in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xce")],
    *[(frame(CLOSE, struct.pack("!H", code)), closed(code)) for code in (1000, 1001, 1003, 1011, 3000, 4999)],
    *[(frame(CLOSE, struct.pack("!H", code)), closed(1002)) for code in (0, 999, 1004, 1005, 1006, 1016, 2999, 5000)],
    (frame(CLOSE, b""), [(CLOSE, b"")]),
    (frame(CLOSE, b"x"), closed(1002)),
    (frame(CLOSE, struct.pack("!H", 1000) + b"\xff"), closed(1007)),
    (frame(CLOSE, struct.pack("!H", 1000)) + frame(PING, b"late"), closed(1000)),
    (frame(TEXT, b"bare", masked=False), closed(1002)),
]

while not connection.remote_settings.enable_connect_protocol:
    turn()
for piece in (16_384, 1):
    for start in range(0, len(CASES), 20):
        part = [case for case in CASES[start:start + 20] if piece > 1 or len(case[0]) < 1_000]
        asked = [(ask("/ws/echo"), *case) for case in part]
        while any(number not in fields for number, _, _ in asked):
            turn()
        for number, data, _ in asked:
            assert fields[number][b":status"] == b"200", fields[number]
            assert b"sec-websocket-accept" not in fields[number], fields[number]
            send(number, data, piece)
        for number, data, expected in asked:
            while len(frames(heard[number])) < len(expected):
                turn()
            got = [(kind, said[:2] if kind == CLOSE else said) for kind, said in frames(heard[number])]
            assert got == expected, (data[:40], piece, got[:3], expected[:3])
            if expected[-1][0] == CLOSE:
                while number not in ended:
                    turn()
            else:
                assert number not in ended, data[:40]
            connection.end_stream(number)
        while any(number not in ended for number, _, _ in asked):
            turn()
offered = ask("/ws/echo", sec_websocket_extensions="permessage-deflate; client_max_window_bits")
while offered not in fields:
    turn()
assert fields[offered][b"sec-websocket-extensions"].startswith(b"permessage-deflate"), fields[offered]
connection.close_connection()
stream.sendall(connection.data_to_send())
print("ok")
