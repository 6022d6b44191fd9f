"""Reads requests with gunicorn's own reader, each line of the standard input a connection of its own: `request HEX`.

Tells on a line of the standard output what it understood: `METHOD:TARGET:HOST:BODY ...`, and `error` where it stops.
"""
import re
import sys

from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from gunicorn.http.parser import RequestParser


def text(request):
    body = request.body.read()
    host = next((value for name, value in request.headers if name == "HOST"), "")
    fields = [request.uri, re.sub(r":\d*$", "", host)]
    return ":".join([request.method] + [field.encode("latin-1").hex() for field in fields] + [body.hex()])


def read(stream):
    understood = []
    try:
        for request in RequestParser(Config(), iter([stream]), ("127.0.0.1", 1)):
            understood.append(text(request))
    except (ParseException, StopIteration, OSError):
        understood.append("error")
    return understood


for line in sys.stdin:
    print(" ".join(read(bytes.fromhex(line.split(" ")[-1]))))
