"""A client that comes to a state of its connection, says "ready", and stays there until it is killed.

Arguments: the state, and the port on 127.0.0.1.
"""

import socket
import sys
import time

HEAD = b"Host: a\r\n"


def receive_some(connection):
    if not connection.recv(100):
        raise SystemExit("the server closed the connection")


def main(state, port):
    connection = socket.socket()
    if state in ("mid-response", "pipelined"):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    if state == "mid-head":
        connection.sendall(b"GET /a.txt HTTP/1.1\r\nHost")
    elif state == "mid-body":
        connection.sendall(b"POST /a.txt HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\nabc")
        receive_some(connection)
    elif state == "mid-chunk":
        connection.sendall(b"POST /a.txt HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc")
        receive_some(connection)
    elif state == "mid-response":
        connection.sendall(b"GET /big.bin HTTP/1.1\r\n" + HEAD + b"\r\n")
        receive_some(connection)
    elif state == "pipelined":
        connection.sendall((b"GET /big.bin HTTP/1.1\r\n" + HEAD + b"\r\n") * 20)
        receive_some(connection)
    elif state == "keep-alive":
        connection.sendall(b"GET /a.txt HTTP/1.1\r\n" + HEAD + b"\r\n")
        receive_some(connection)
    elif state == "half-closed":
        connection.sendall(b"GET /big.bin HTTP/1.1\r\n" + HEAD + b"\r\n")
        connection.shutdown(socket.SHUT_WR)
    elif state != "connected":
        raise SystemExit("no such state: " + state)
    print("ready", flush=True)
    time.sleep(600)


main(sys.argv[1], int(sys.argv[2]))
