"""Fetches from the server named in the argument with http.client and prints a verdict in JSON."""

import gzip
import http.client
import json
import sys
from urllib.parse import urlsplit


def main(url):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=15)
    connection.connect()
    socket = connection.sock
    verdict = {"client": "python"}

    def fetch(method, path, fields=None):
        connection.request(method, path, headers=fields or {})
        response = connection.getresponse()
        return response, response.read()

    page, body = fetch("GET", "/page.html")
    verdict["html"] = page.status == 200 and len(body) == 7200 and page.headers.get_content_type() == "text/html"
    head, nothing = fetch("HEAD", "/page.html")
    verdict["head"] = head.status == 200 and head.getheader("Content-Length") == "7200" and nothing == b""
    part, world = fetch("GET", "/a.txt", {"Range": "bytes=7-11"})
    verdict["range"] = part.status == 206 and world == b"world"
    same, nothing = fetch("GET", "/page.html", {"If-None-Match": page.getheader("ETag")})
    verdict["not_modified"] = same.status == 304 and nothing == b""
    packed, packed_body = fetch("GET", "/page.html", {"Accept-Encoding": "gzip"})
    is_gzip = packed.getheader("Content-Encoding") == "gzip"
    verdict["gzip"] = is_gzip and gzip.decompress(packed_body) == body
    verdict["reuse"] = connection.sock is socket
    print(json.dumps(verdict))


main(sys.argv[1])
