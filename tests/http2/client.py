"""A client of HTTP/2 that reads slowly through small windows: client.py PORT.

Its library raises when the server passes a window, answers a stream twice or sends a bad block.
"""

import socket
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings

SIZES = {"/a.txt": 13, "/empty.txt": 0, "/page.html": 7200, "/picture.png": 2000, "/big.bin": 3_000_000}

connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
stream = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=40)
connection.initiate_connection()
connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 700})
asked = {}
for index in range(40):
    path = list(SIZES)[index % 4 if index < 39 else 4]
    number = connection.get_next_available_stream_id()
    asked[number] = path
    head = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "a.example")]
    fields = [*head, ("priority", f"u={number % 8}, i"), ("user-agent", "python")]
    connection.send_headers(number, fields, end_stream=True)
connection.ping(b"12345678")
bodies = dict.fromkeys(asked, 0)
ended, pinged = set(), False
while len(ended) < len(bodies):
    stream.sendall(connection.data_to_send())
    bytes_read = stream.recv(65_536)
    assert bytes_read, "the server has closed"
    for event in connection.receive_data(bytes_read):
        if isinstance(event, h2.events.DataReceived):
            bodies[event.stream_id] += len(event.data)
            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.ResponseReceived):
            fields = dict(event.headers)
            assert fields[b":status"] == b"200", fields
            assert int(fields[b"content-length"]) == SIZES[asked[event.stream_id]], fields
        elif isinstance(event, h2.events.StreamEnded):
            ended.add(event.stream_id)
        elif isinstance(event, h2.events.PingAckReceived):
            pinged = event.ping_data == b"12345678"
        elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
            raise SystemExit(f"the server ended something: {event}")
connection.close_connection()
stream.sendall(connection.data_to_send())
assert pinged and bodies == {number: SIZES[path] for number, path in asked.items()}, bodies
print("ok")
