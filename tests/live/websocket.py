"""A client of the library `websockets` against the server named: frames in parts, compression, pings, commands.

Usage: websocket.py HOST:PORT TOKEN SECRET-OF-ISSUER. Prints `held` when everything was as the standard has it.
"""
import asyncio
import base64
import hashlib
import hmac
import json
import sys
import time

import websockets

AT, TOKEN, SECRET = sys.argv[1], sys.argv[2], sys.argv[3].encode()


def part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(seconds):
    """One that holds for so long, with the half minute of leeway."""
    claims = {"iss": "https://id.example.org", "aud": "https://live.example.org", "exp": int(time.time()) + seconds - 30}
    signed = f'{part(json.dumps({"alg": "HS256", "typ": "at+jwt"}).encode())}.{part(json.dumps(claims).encode())}'
    return f"{signed}.{part(hmac.new(SECRET, signed.encode(), hashlib.sha256).digest())}"


async def echo():
    async with websockets.connect(f"ws://{AT}/ws/echo") as socket:
        for message in ["", "grün", "x" * 60_000, b"", b"\x00\xff" * 30_000]:
            await socket.send(message)
            assert await socket.recv() == message
        await socket.send(["in ", "three ", "parts"])
        assert await socket.recv() == "in three parts"
        await asyncio.wait_for(await socket.ping(b"alive"), 30)


async def closed(path, message, code, **more):
    async with websockets.connect(f"ws://{AT}{path}", **more) as socket:
        if message is not None:
            await socket.send(message)
        try:
            while True:
                await socket.recv()
        except websockets.ConnectionClosed as end:
            assert end.rcvd and end.rcvd.code == code, end


async def commands():
    async with websockets.connect(f"ws://{AT}/connection/websocket") as socket:
        async def ask(number, **command):
            await socket.send(json.dumps({"id": number, **command}))
            reply = json.loads(await socket.recv())
            assert reply["id"] == number, reply
            return reply

        assert "client" in (await ask(1, connect={"token": TOKEN}))["connect"]
        assert (await ask(2, subscribe={"channel": "python"}))["subscribe"]["recoverable"]
        value = {"text": "long " * 100}
        await socket.send(json.dumps({"id": 3, "publish": {"channel": "python", "data": value}}))
        came = [json.loads(await socket.recv()) for _ in range(2)]
        assert any(reply.get("id") == 3 and "publish" in reply for reply in came), came
        pushes = [reply["push"]["pub"]["data"] for reply in came if "push" in reply]
        assert pushes == [value], came


async def tokens():
    """One that ends closes its connection, one that has ended is refused, and so is none at all."""
    for seconds in [2, -10]:
        async with websockets.connect(f"ws://{AT}/ws") as socket:
            await socket.send(json.dumps({"id": 1, "connect": {"token": token(seconds)}}))
            reply = json.loads(await socket.recv())
            if seconds < 0:
                assert reply["error"]["code"] == 109, reply
                continue
            assert reply["connect"]["expires"] and reply["connect"]["ttl"] <= 2, reply
            try:
                while True:
                    await socket.recv()
            except websockets.ConnectionClosed as end:
                assert end.rcvd and end.rcvd.code == 3005, end
    bearer = {"Authorization": f"Bearer {token(2)}"}
    name = "additional_headers" if int(websockets.__version__.split(".")[0]) >= 14 else "extra_headers"
    await closed("/ws?topic=a", None, 3005, **{name: bearer})


async def main():
    await echo()
    await tokens()
    await commands()
    await closed("/ws", "nonsense", 3501)
    await closed("/ws", b"{}", 1003)
    await closed("/ws?topic=a", "hello", 1003)
    await closed("/ws/echo", "x" * 200_000, 1009)
    await closed("/ws/echo", "x" * 2_000_000, 1009, compression="deflate")
    print("held")


asyncio.run(asyncio.wait_for(main(), 120))
