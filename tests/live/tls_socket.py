"""A WebSocket over TLS that stays until its process is ended, as a browser does that is killed.

Usage: tls_socket.py HOST PORT PATH ORIGIN. Prints the status of the handshake; certificates are not verified.
"""
import socket
import ssl
import sys

HOST, PORT, PATH, ORIGIN = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
stream = context.wrap_socket(socket.create_connection((HOST, PORT), 60))
stream.sendall(
    f"GET {PATH} HTTP/1.1\r\nHost: {HOST}:{PORT}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: {ORIGIN}\r\n\r\n".encode()
)
head = b""
while b"\r\n\r\n" not in head:
    head += stream.recv(4096)
print("status", head.split()[1].decode(), flush=True)
stream.settimeout(None)
while stream.recv(4096):
    pass
