"""Requests that are wrong in a hundred ways, made here; each must be answered 4xx."""

import json

#: (method, path and query, body or None, headers); bytes go as they are.
Request = tuple[str, str, bytes | None, dict[str, str]]
JSON = {"content-type": "application/json"}

#: Bodies that are no JSON object.
BROKEN = {
    "nothing": b"",
    "blank": b"   ",
    "cut": b'{"users": [',
    "cut text": b'{"users": ["bo',
    "two objects": b'{"users": [0]} {"users": [0]}',
    "a comma too many": b'{"users": [0],}',
    "single quotes": b"{'users': [0]}",
    "no quotes": b"{users: [0]}",
    "a comment": b'{"users": [0] /* one */}',
    "a byte order mark": b'\xef\xbb\xbf{"users": [0]}',
    "UTF-16": '{"users": [0]}'.encode("utf-16"),
    "Latin-1": b'{"users": ["\xe9"]}',
    "an overlong byte": b'{"users": ["\xc0\x80"]}',
    "a line break in text": b'{"users": ["a\nb"]}',
    "a list": b"[0]",
    "a text": b'"users"',
    "a number": b"7",
    "null": b"null",
    "true": b"true",
    "form": b"users=0&n=3",
    "XML": b"<users><user>0</user></users>",
    "pickle": b"\x80\x04\x95\x00\x00\x00.",
    "zeros": bytes(100),
    "deep lists": b"[" * 100_000,
    "deep lists in an object": b'{"users": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"users":' * 50_000,
    "a name twice": b'{"users": [0], "users": [10]}',
    "a name twice in a history": b'{"histories": [{"item 1": 1, "item 1": 2}]}',
    "NaN": b'{"histories": [{"item 1": NaN}]}',
    "Infinity": b'{"histories": [{"item 1": Infinity}]}',
    "-Infinity": b'{"users": [-Infinity]}',
    "beyond double": b'{"histories": [{"item 1": 1e999}]}',
    "a huge whole number": b'{"users": [' + b"9" * 10_000 + b"]}",
    "hexadecimal": b'{"users": [0x10]}',
    "a plus": b'{"users": [+1]}',
    "octal": b'{"users": [010]}',
}

#: Objects with fields that are wrong, by route.
WRONG = {
    "/recommend": [
        {}, {"n": 3}, {"users": [0], "histories": [{}]}, {"user": [0]}, {"users": [0], "path": "/etc/passwd"},
        {"users": [0], "model": "other.hs"}, {"users": [0], "__class__": "x"}, {"items": ["item 1"]},
        {"users": 0}, {"users": "bob"}, {"users": None}, {"users": {}}, {"users": []}, {"users": [None]},
        {"users": [[0]]}, {"users": [{}]}, {"users": [True]}, {"users": ["\ud800"]}, {"users": [0] * 41},
        {"users": [0] * 30, "n": 50},
        *({"users": [0], "n": n} for n in (0, -1, 51, 10**19, 1.5, 3.0, "3", True, None, [3], {})),
        *({"users": [0], "exclude_seen": one} for one in (1, 0, "true", None, [], {})),
        *({"users": [0], "filter_items": one} for one in ("item 1", 5, None, {}, [None], [["item 1"]], [False])),
        *({"users": [0], "exclude": one} for one in ("item 1", 5, None, {}, [None], [{}], ["\udfff"])),
        *({"histories": one} for one in ({}, [], "x", None, 5, [None], [5], ["item 1"], [["item 1", 5]])),
        *({"histories": [{"item 1": one}]} for one in ("five", "\ud800", True, [5], {}, -3, 1e300)),
        {"histories": [{"\ud800": 1}]}, {"histories": [{f"item {one}": 1 for one in range(201)}]},
        {"histories": [{}] * 41},
    ],
    "/similar": [
        {}, {"items": ["item 1"], "users": [0]}, {"items": []}, {"items": "item 1"}, {"items": [None]},
        {"items": ["item 1"], "n": 0}, {"items": ["item 1"], "exclude_seen": True}, {"histories": [{}]},
        {"users": [0], "filter_items": ["item 1"]}, {"users": [0], "exclude": []}, {"itms": ["item 1"]},
    ],
}  # fmt: skip

QUERIES = [
    "/recommend", "/recommend?", "/recommend?user", "/recommend?user=0&n", "/recommend?=0", "/recommend?&&",
    "/recommend?usr=0", "/recommend?user=0&n=0", "/recommend?user=0&n=-1", "/recommend?user=0&n=ten",
    "/recommend?user=0&n=1e1", "/recommend?user=0&n=51", "/recommend?user=0&n=3&n=3", "/recommend?user=0&n=",
    "/recommend?user=0&n=%00", "/recommend?user=%ff", "/recommend?user=%ed%a0%80",
    "/recommend?user=0&exclude_seen=maybe", "/recommend?user=0&exclude_seen=",
    "/recommend?user=0&exclude_seen=true&exclude_seen=true",
    "/recommend?histories=x", "/recommend?item=1", "/recommend?user=0&item=1", "/similar?item=1&user=0", "/similar?n=3",
    "/similar?user=0&filter_items=1", "/similar?item=1&exclude_seen=true", "/health?verbose=1", "/model?x=1", "/?x=1",
    "/recommend?" + "&".join(["user=0"] * 41), "/openapi.json?x",
]  # fmt: skip

ELSEWHERE = [
    ("GET", "/nothing"), ("GET", "/recommend/"), ("GET", "/Recommend"), ("GET", "/recommend/0"),
    ("GET", "/../../etc/passwd"), ("GET", "/%2e%2e/etc/passwd"), ("GET", "/model.hs"), ("GET", "/recommend%00"),
    ("GET", "/" + "a" * 5000), ("GET", "/favicon.ico"), ("GET", "/docs"), ("PUT", "/recommend"), ("DELETE", "/model"),
    ("PATCH", "/recommend"), ("POST", "/health"), ("POST", "/"), ("POST", "/nothing"), ("TRACE", "/recommend"),
    ("NONSENSE", "/recommend"),
]  # fmt: skip


def requests() -> dict[str, Request]:
    """All of them, by name."""
    made: dict[str, Request] = {}
    for name, body in BROKEN.items():
        made[f"body: {name}"] = ("POST", "/recommend", body, JSON)
    for path, payloads in WRONG.items():
        for number, payload in enumerate(payloads):
            made[f"{path} {number}: {json.dumps(payload)[:60]}"] = ("POST", path, json.dumps(payload).encode(), JSON)
    for path in QUERIES:
        made[f"GET {path[:60]}"] = ("GET", path, None, {})
    for method, path in ELSEWHERE:
        made[f"{method} {path[:60]}"] = (method, path, None, {})
    good = b'{"users": [0]}'
    for kind in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/xml",
        "json",
    ):
        headers = {"content-type": kind} if kind else {}
        made[f"content type {kind!r}"] = ("POST", "/recommend", good, headers)
    made["a query beside a body"] = ("POST", "/recommend?n=3", good, JSON)
    made["a long body"] = ("POST", "/recommend", good + b" " * (1 << 20), JSON)
    made["a very long body"] = ("POST", "/recommend", good + b" " * (5 << 20), JSON)
    made["another host"] = ("GET", "/health", None, {"host": "evil.example"})
    made["another host with a port"] = ("GET", "/health", None, {"host": "evil.example:8000"})
    return made


#: What no HTTP client sends; the answer may be plain text, or the connection may be closed.
NO_HTTP = [
    b"nonsense\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /health\r\n\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",  # no host
    b"GET /health HTTP/1.1\r\nhost 127.0.0.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"a" * 1_000_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"POST /recommend HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\n\r\n",
    b"POST /recommend HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: five\r\n\r\n",
    b"POST /recommend HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    b"POST /recommend HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"DELETE /health HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"POST /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"GET /\x00 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),  # TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]
