"""Reads /events in gzip with zlib, and prints the data of each event."""
import sys
import urllib.request
import zlib

request = urllib.request.Request(
    sys.argv[1] + "/events?topic=a&plain=1", headers={"Accept-Encoding": "gzip"}
)
response = urllib.request.urlopen(request, timeout=60)
assert response.headers["Content-Encoding"] == "gzip", response.headers
inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
text = ""
while True:
    piece = response.read1(65536)
    if not piece:
        break
    text += inflater.decompress(piece).decode()
    while "\n\n" in text:
        event, text = text.split("\n\n", 1)
        for line in event.split("\n"):
            if line.startswith("data: "):
                print(line[6:], flush=True)
