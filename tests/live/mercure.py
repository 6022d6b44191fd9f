"""A publisher and subscribers of Mercure, as Symfony's and a browser's are, against the server named.

Usage: mercure.py HOST PORT SECRET. Prints `held` when everything was as the protocol has it.
"""
import base64
import hashlib
import hmac
import http.client
import json
import sys
import time
import urllib.parse

HOST, PORT, SECRET = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
HUB = "/.well-known/mercure"
BOOK = "https://example.com/books/1"


def part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(claims, secret=SECRET, algorithm="HS256", kind="JWT"):
    header = part(json.dumps({"alg": algorithm, "typ": kind}).encode())
    signed = f"{header}.{part(json.dumps({'exp': int(time.time()) + 600, **claims}).encode())}"
    signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{part(signature)}"


def old(publish=(), subscribe=(), **more):
    return token({"mercure": {"publish": list(publish), "subscribe": list(subscribe)}, **more})


def new(actions, topics, **more):
    detail = {
        "type": "https://mercure.rocks/authorization-detail",
        "actions": actions,
        "topics": [{"match": topic} for topic in topics],
    }
    claims = {"iss": "https://id.example.org", "aud": "https://live.example.org", "authorization_details": [detail]}
    return token({**claims, **more}, kind="at+jwt")


def publish(fields, jwt=None, content_type="application/x-www-form-urlencoded"):
    """What Symfony's Hub::publish sends: a form, by POST, with a token."""
    connection = http.client.HTTPConnection(HOST, PORT, timeout=60)
    headers = {"Content-Type": content_type}
    if jwt:
        headers["Authorization"] = f"Bearer {jwt}"
    connection.request("POST", HUB, urllib.parse.urlencode(fields, doseq=True), headers)
    response = connection.getresponse()
    return response.status, response.read().decode(), response.headers


class Subscriber:
    def __init__(self, query, **headers):
        self.connection = http.client.HTTPConnection(HOST, PORT, timeout=60)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", f"{HUB}?{query}", headers=names)
        self.response = self.connection.getresponse()
        self.status = self.response.status
        if self.status == 200:
            assert self.response.readline().startswith(b"retry: ")
            self.response.readline()

    def next(self):
        """The fields of the next event; None at the end of the stream."""
        event = {}
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            line = line.rstrip("\n")
            if not line and event:
                return event
            if line and not line.startswith(":"):
                name, value = line.split(": ", 1)
                event[name] = value


def check(what, got, expected):
    assert got == expected, f"{what}: {got!r}, and not {expected!r}"


everything = old(publish=["*"])
topic = urllib.parse.quote(BOOK, safe="")

# 0.x: a template, and the exact name; 1.0: an exact name, a URL pattern, all.
queries = [
    "topic=" + urllib.parse.quote("https://example.com/books/{id}", safe=""),
    "topic=" + topic,
    "match=" + topic,
    "match_urlpattern=" + urllib.parse.quote("https://example.com/books/:id", safe=""),
    "topic=*",
]
subscribers = [Subscriber(query) for query in queries]
status, identifier, _ = publish({"topic": BOOK, "data": '{"status":"out of stock"}'}, everything)
check("publishing", status, 200)
check("an own id is answered", publish({"topic": "urn:ids", "data": "x", "id": "id-1"}, everything)[:2], (200, "id-1"))
assert identifier.startswith("#"), identifier
for query, subscriber in zip(queries, subscribers):
    event = subscriber.next()
    check(query, event, {"id": identifier, "data": '{"status":"out of stock"}'})

# Fields of an update, one's own id, several topics.
fields = {"topic": [BOOK, "urn:other"], "data": "line 1\nline 2", "id": "urn:uuid:1", "type": "book", "retry": "7"}
check("own id", publish(fields, everything)[0], 200)
connection = subscribers[1]
event = connection.next()
check("fields", {name: event[name] for name in ("id", "event", "retry")}, {"id": "urn:uuid:1", "event": "book", "retry": "7"})

# Whoever comes back gets what it lacked, by field and by every name of the parameter.
check("third", publish({"topic": BOOK, "data": "third"}, everything)[0], 200)
for query, headers in [
    (f"topic={topic}", {"Last_Event_ID": identifier}),
    (f"topic={topic}&last_event_id={urllib.parse.quote(identifier)}", {}),
    (f"topic={topic}&lastEventID={urllib.parse.quote(identifier)}", {}),
]:
    back = Subscriber(query, **headers)
    check("where it goes on", back.response.headers["Mercure-Last-Event-ID"], identifier)
    check("what it lacked", [back.next()["id"], back.next()["data"]], ["urn:uuid:1", "third"])
check("own id as last", Subscriber(f"topic={topic}", Last_Event_ID="urn:uuid:1").next()["data"], "third")
early = Subscriber(f"topic={topic}&last_event_id=earliest")
check("earliest", early.response.headers["Mercure-Last-Event-ID"], "earliest")
check("all of it", early.next()["id"], identifier)
check("unknown", Subscriber(f"topic={topic}", Last_Event_ID="urn:nothing").response.headers["Mercure-Last-Event-ID"], "earliest")

# Private updates reach only who may read one of their topics: by field, and by cookie.
may = old(subscribe=[BOOK])
granted = [
    Subscriber(f"topic={topic}", Authorization=f"Bearer {may}"),
    Subscriber(f"topic={topic}", Cookie=f"a=b; mercureAuthorization={may}"),
    Subscriber(f"match={topic}", Authorization="Bearer " + new(["subscribe"], [BOOK])),
]
anybody = Subscriber(f"topic={topic}")
other = Subscriber(f"topic={topic}", Authorization="Bearer " + old(subscribe=["https://example.com/books/2"]))
foreign = Subscriber(f"topic={topic}", Cookie=f"mercureAuthorization={may}", Origin="https://evil.example")
check("private", publish({"topic": BOOK, "data": "secret", "private": "on"}, everything)[0], 200)
check("public", publish({"topic": BOOK, "data": "public"}, everything)[0], 200)
for subscriber in granted:
    check("granted", [subscriber.next()["data"], subscriber.next()["data"]], ["secret", "public"])
for subscriber in (anybody, other, foreign):
    check("not granted", subscriber.next()["data"], "public")
# Whether an update that may not be read has an id is told to nobody.
check("private id", publish({"topic": BOOK, "data": "s", "private": "on", "id": "urn:private"}, everything)[0], 200)
for asked, expected in [("urn:private", "earliest"), ("urn:none", "earliest")]:
    heard = Subscriber(f"topic={topic}", Last_Event_ID=asked).response.headers["Mercure-Last-Event-ID"]
    check(f"{asked} without a right", heard, expected)
knows = Subscriber(f"topic={topic}", Last_Event_ID="urn:private", Authorization=f"Bearer {may}")
check("with a right", knows.response.headers["Mercure-Last-Event-ID"], "urn:private")
check("public again", publish({"topic": BOOK, "data": "public"}, everything)[0], 200)
replayed = Subscriber(f"topic={topic}&last_event_id={urllib.parse.quote(identifier)}")
check("replayed", [replayed.next()["data"] for _ in range(4)][-1], "public")

# A reader is closed when its token ends.
short = Subscriber(f"topic={topic}", Authorization="Bearer " + old(subscribe=[BOOK], exp=int(time.time()) + 3 - 30))
check("the stream ends with its token", short.next(), None)

# What is refused.
check("no token", publish({"topic": BOOK})[0], 401)
check("no error code", publish({"topic": BOOK})[2]["WWW-Authenticate"], "Bearer")
for what, jwt in [
    ("another secret", token({"mercure": {"publish": ["*"]}}, secret=b"x" * 32)),
    ("no algorithm", token({"mercure": {"publish": ["*"]}}, algorithm="none")),
    ("expired", old(publish=["*"], exp=1)),
    ("no text", "x.y.z"),
    ("another audience", new(["publish"], ["*"], aud="https://other.example")),
]:
    status, _, headers = publish({"topic": BOOK}, jwt)
    check(what, (status, headers["WWW-Authenticate"]), (401, 'Bearer error="invalid_token"'))
    check(what, Subscriber(f"topic={topic}", Authorization=f"Bearer {jwt}").status, 401)
status, _, headers = publish({"topic": BOOK}, old(publish=["urn:other"]))
check("another topic", (status, headers["WWW-Authenticate"]), (403, 'Bearer error="insufficient_scope"'))
check("one of two", publish({"topic": [BOOK, "urn:b"]}, old(publish=[BOOK]))[0], 403)
check("only reading", publish({"topic": BOOK}, may)[0], 403)
check("1.0", publish({"topic": BOOK, "data": "x"}, new(["publish"], [BOOK]))[0], 200)
check("no topic", publish({"data": "x"}, everything)[0], 400)
check("an id of ours", publish({"topic": BOOK, "id": "#1"}, everything)[0], 400)
check("the id of all", publish({"topic": BOOK, "id": "earliest"}, everything)[0], 400)
check("Mercure's type", publish({"topic": BOOK, "type": "mercure"}, everything)[0], 400)
for reserved in ["/.well-known/mercure/subscriptions/x", "https://e.com/.well-known/%6Dercure/subscriptions/x"]:
    check(reserved, publish({"topic": reserved, "data": "x"}, everything)[0], 400)
    check(reserved, publish({"topic": [BOOK, reserved], "data": "x"}, everything)[0], 400)
check("JSON", publish({"topic": BOOK}, everything, "application/json")[0], 415)
check("a parameter that is none", Subscriber("match_uritemplate=a").status, 400)
check("nothing asked for", Subscriber("").status, 400)
print("held", flush=True)
