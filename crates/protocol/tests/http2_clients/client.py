"""A client of HTTP/2 that reads slowly through small windows: client.py PORT.

Its library raises when the server passes a window, answers a stream twice or sends a bad block.
"""

import socket
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings

SIZES = {1: 0, 3: 1, 5: 100, 7: 1000, 9: 30_000}
UPLOAD = 300_000

connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
stream = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.initiate_connection()
connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 700})
head = [(":scheme", "http"), (":authority", "a.example")]
for number, size in SIZES.items():
    fields = [(":method", "GET"), (":path", f"/{size}"), *head, ("priority", f"u={number % 8}, i")]
    connection.send_headers(number, fields, end_stream=True)
connection.send_headers(11, [(":method", "POST"), (":path", "/echo")] + head)
connection.ping(b"12345678")
bodies = {number: 0 for number in [*SIZES, 11]}
sent, ended, pinged = 0, set(), False
while len(ended) < len(bodies):
    while sent < UPLOAD and (count := min(connection.local_flow_control_window(11), 5000, UPLOAD - sent)):
        connection.send_data(11, b"u" * count)
        sent += count
        if sent == UPLOAD:
            connection.send_headers(11, [("checksum", "none")], end_stream=True)
    stream.sendall(connection.data_to_send())
    bytes_read = stream.recv(65_536)
    assert bytes_read, "the server has closed"
    for event in connection.receive_data(bytes_read):
        if isinstance(event, h2.events.DataReceived):
            bodies[event.stream_id] += len(event.data)
            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.ResponseReceived):
            assert dict(event.headers)[b":status"] == b"200"
        elif isinstance(event, h2.events.StreamEnded):
            ended.add(event.stream_id)
        elif isinstance(event, h2.events.PingAckReceived):
            pinged = event.ping_data == b"12345678"
        elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
            raise SystemExit(f"the server ended something: {event}")
connection.close_connection()
stream.sendall(connection.data_to_send())
assert pinged and bodies == {**SIZES, 11: UPLOAD}, bodies
print("ok")
