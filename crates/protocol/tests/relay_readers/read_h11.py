"""Reads requests with h11, each line of the standard input a connection of its own: `request HEX`.

Tells on a line of the standard output what it understood: `METHOD:TARGET:HOST:BODY ...`, and `error` where it stops.
"""
import re
import sys

import h11


def text(request, body):
    host = dict(request.headers).get(b"host", b"")
    return ":".join([request.method.decode("latin-1"), request.target.hex(), re.sub(rb":\d*$", b"", host).hex(), body.hex()])


def read(stream):
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(stream)
    connection.receive_data(b"")
    understood, request, body = [], None, b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                understood.append(text(request, body))
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
            else:
                return understood
    except h11.RemoteProtocolError:
        return understood + ["error"]


for line in sys.stdin:
    print(" ".join(read(bytes.fromhex(line.split(" ")[-1]))))
