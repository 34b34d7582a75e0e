"""The application in this process: refusals, methods, limits, a busy server, new model files."""

import asyncio
import json
import os
import shutil
import threading
import time

import httpx
import pytest

from halfseen.serving.application import application
from halfseen.serving.requests import ROUTES, Limits, RequestError, read_json, read_query
from halfseen.serving.service import Job, Service
from tests.serving import malformed
from tests.serving.conftest import ask, check_refused, counts, fit, get, post

REQUESTS = malformed.requests()


@pytest.fixture
def own(path, tmp_path):
    """A service of its own, whose file may be replaced."""
    mine = tmp_path / "own.hs"
    shutil.copy(path, mine)
    return Service(mine)


def test_there_are_a_hundred_kinds():
    assert len(REQUESTS) >= 100


@pytest.fixture(scope="module")
def guarded(path):
    return Service(path, limits=Limits(n=50, users=40, answers=1000, cells=200), hosts=("127.0.0.1", "localhost"))


@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_malformed_is_refused_with_a_sentence(guarded, name):
    method, path, body, headers = REQUESTS[name]
    check_refused(ask(guarded, method, path, content=body, headers=headers))


@pytest.mark.parametrize("route", ROUTES)
def test_methods(service, route):
    methods = {*ROUTES[route][0], "HEAD", "OPTIONS"}
    options = ask(service, "OPTIONS", route)
    assert (options.status, options.text, set(options.headers["allow"].split(", "))) == (204, "", methods)
    refused = ask(service, "DELETE", route)
    assert (refused.status, set(refused.headers["allow"].split(", "))) == (405, methods)
    query = {"/recommend": "?user=0", "/similar": "?item=item 1"}.get(route, "")
    head, full = (ask(service, method, route + query) for method in ("HEAD", "GET"))
    assert (head.status, full.status) == (200, 200)
    assert full.headers["content-type"] == "application/json"
    assert full.headers["cache-control"] == "no-store"
    assert route == "/health" or head.headers["content-length"] == full.headers["content-length"]


def test_a_route_that_is_spelled_wrong_is_suggested(service):
    assert "Did you mean '/recommend'?" in check_refused(get(service, "/recomend"), [404])["remedy"]
    assert "Did you mean 'users'?" in check_refused(get(service, "/recommend", usrs=0), [400])["remedy"]


def test_facts_of_the_model_and_of_the_service(service):
    facts = get(service, "/model").json
    assert (facts["model"], facts["users"], facts["items"], facts["n_components"]) == ("SquaredOrdNMF", 30, 20, 3)
    assert facts["takes_histories"] is True
    assert facts["limits"]["n"] == 50
    health = get(service, "/health").json
    assert health["status"] == "ok"
    assert health["model"] == facts["fingerprint"]
    assert (health["last_reload_error"], health["reloads"]) == (None, 0)
    assert set(get(service, "/").json["routes"]) == set(ROUTES)


def test_the_openapi_document_names_all_routes_and_fields(service):
    document = get(service, "/openapi.json").json
    assert document["openapi"].startswith("3.1")
    assert {path: {method.upper() for method in found} for path, found in document["paths"].items()} == {
        path: set(methods) for path, (methods, _) in ROUTES.items()
    }
    schema = document["paths"]["/recommend"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == {"users", "histories", "n", "filter_items", "exclude", "exclude_seen"}
    names = [one["operationId"] for found in document["paths"].values() for one in found.values()]
    assert len(set(names)) == len(names)


def test_limits_are_answered_413(service):
    for payload in (
        {"users": [0] * 41},
        {"users": [0] * 30, "n": 50},
        {"histories": [dict.fromkeys("abcdef", 1)] * 40},
    ):
        check_refused(post(service, "/recommend", payload), [413])
    long = ask(service, "POST", "/recommend", content=b" " * (1 << 21), headers=malformed.JSON)
    assert check_refused(long, [413])["found"] == "2,097,152"


def test_a_body_without_a_length_is_bounded_too(service):
    async def chunks():
        for _ in range(40):
            yield b" " * (1 << 16)

    check_refused(ask(service, "POST", "/recommend", content=chunks(), headers=malformed.JSON), [413])


def test_a_body_that_does_not_arrive_is_answered_408(path):
    async def slow():
        yield b'{"users":'
        await asyncio.sleep(5)

    patient = Service(path, limits=Limits(seconds=0.2))
    check_refused(ask(patient, "POST", "/recommend", content=slow(), headers=malformed.JSON), [408])


def test_values_that_the_model_does_not_take_are_answered_422(service):
    error = check_refused(post(service, "/recommend", {"histories": [{"item 1": "five"}]}), [422])
    assert "'five'" in error["found"]
    check_refused(post(service, "/recommend", {"histories": [{"item 1": -3}]}), [422])


def test_a_slow_request_gets_503_and_others_go_on(path, monkeypatch):
    service = Service(path, limits=Limits(seconds=0.3, threads=2))
    app, hold = application(service), threading.Event()
    similar = type(service.model).similar

    def slow(self, asked, deadline):
        if asked["items"] == ["slow"]:
            hold.wait(10)
        return similar(self, asked, deadline)

    monkeypatch.setattr(type(service.model), "similar", slow)

    async def both():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            waiting = asyncio.create_task(client.get("/similar?item=slow"))
            await asyncio.sleep(0.05)
            others = [await client.get("/recommend?user=0") for _ in range(5)]
            found = await waiting
            hold.set()
            return found, others

    refused, others = asyncio.run(both())
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert "time allowed" in refused.json()["error"]["message"]
    assert [one.status_code for one in others] == [200] * 5


def test_who_has_waited_too_long_does_not_spoil_it_for_others(path):
    service = Service(path)
    checked = [{"users": [user], "n": 2, "exclude_seen": True} for user in (0, 10)]
    late, early = (Job("/recommend", time.monotonic() + left, one) for left, one in zip((-1, 60), checked, strict=True))
    for job in (late, early):
        service.put(job)
    service.work()
    assert json.loads(early.done.result(0)) == service.compute("/recommend", checked[1:])[0]


def test_when_too_many_wait_the_rest_gets_503_and_health_answers(path, monkeypatch):
    service = Service(path, limits=Limits(threads=1, waiting=2))
    app, hold = application(service), threading.Event()
    similar = type(service.model).similar
    monkeypatch.setattr(type(service.model), "similar", lambda *words: (hold.wait(10), similar(*words))[1])

    async def many():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = [asyncio.create_task(client.get("/similar?item=item+1")) for _ in range(8)]
            await asyncio.sleep(0.2)
            health = (await client.get("/health")).json()
            hold.set()
            return health, [one.status_code for one in await asyncio.gather(*asked)]

    health, found = asyncio.run(many())
    assert health["pending"] == 3
    assert sorted(found) == [200] * 3 + [503] * 5
    assert service.pending == 0 or time.sleep(0.1) or service.pending == 0


def test_waiting_requests_are_answered_together_or_each_with_its_own_error(path, monkeypatch):
    monkeypatch.setattr("halfseen.serving.application.SMALL_WORK", 0)
    service = Service(path, limits=Limits(threads=1))
    app = application(service)

    async def many():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            paths = [f"/recommend?user={10 * one}&n={3 + one % 2}" for one in range(30)] + ["/recommend?n=0&user=1"]
            return await asyncio.gather(*(client.get(one) for one in paths))

    *found, refused = asyncio.run(many())
    assert refused.status_code == 400
    for one, answer in enumerate(found):
        (recommended,) = answer.json()["recommendations"]
        assert (recommended["user"], len(recommended["items"])) == (
            10 * one,
            min(3 + one % 2, len(recommended["items"])),
        )
        alone = service.answer("/recommend", {"users": [10 * one], "n": 3 + one % 2})["recommendations"][0]
        assert [item["item"] for item in recommended["items"]] == [item["item"] for item in alone["items"]]


def test_a_defect_is_answered_500_without_a_traceback(path, monkeypatch):
    service = Service(path)
    monkeypatch.setattr(type(service.model), "recommend", lambda *_: 1 / 0)
    app = application(service)

    async def send():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/recommend?user=0")

    answer = asyncio.run(send())
    assert answer.status_code == 500
    assert "log" in answer.json()["error"]["message"]
    assert "ZeroDivision" not in answer.text


# new model files


def test_a_new_file_is_taken_in_and_a_damaged_one_is_not(own, caplog):
    caplog.set_level("INFO", "halfseen.serving")
    first = own.model
    assert own.reload_if_changed() is False
    fit(counts(9), own.path, seed=9)
    assert own.reload_if_changed() is True
    second = own.model
    assert second.fingerprint != first.fingerprint
    assert get(own, "/recommend", user=0).json["model"] == second.fingerprint

    damaged = own.path.with_suffix(".new")
    damaged.write_bytes(own.path.read_bytes()[:-500])
    os.replace(damaged, own.path)
    assert own.reload_if_changed() is False
    assert own.reload_if_changed() is False  # it is not tried again and again
    assert own.model is second
    health = get(own, "/health").json
    assert health["status"] == "ok"
    assert (health["reloads"], health["model"]) == (1, second.fingerprint)
    assert "cut off or damaged" in health["last_reload_error"]["message"]
    assert sum("not served" in one.message for one in caplog.records) == 1

    own.path.unlink()
    assert own.reload_if_changed() is False
    fit(counts(10), own.path, seed=10)
    assert own.reload_if_changed() is True
    assert get(own, "/health").json["last_reload_error"] is None
    assert own.reload_if_changed(force=True) is True


def test_a_request_ends_with_the_model_with_which_it_began(own, monkeypatch):
    first, recommend = own.model, type(own.model).recommend

    def replaced_meanwhile(self, asked, deadline):
        monkeypatch.setattr(type(self), "recommend", recommend)
        fit(counts(9), own.path, seed=9)
        assert own.reload_if_changed()
        return recommend(self, asked, deadline)

    monkeypatch.setattr(type(first), "recommend", replaced_meanwhile)
    assert get(own, "/recommend", user=0).json["model"] == first.fingerprint
    assert get(own, "/recommend", user=0).json["model"] == own.model.fingerprint != first.fingerprint


def test_the_file_is_watched_while_the_application_lives(own, monkeypatch):
    app = application(own)
    monkeypatch.setattr("halfseen.serving.application.POLL", 0.02)

    async def live():
        async with app.router.lifespan_context(app):
            fit(counts(9), own.path, seed=9)
            for _ in range(500):
                if own.reloads:
                    return True
                await asyncio.sleep(0.02)
        return False

    assert asyncio.run(live())


# requests, alone


def test_json_by_the_letter():
    assert read_json(b'{"a": [1, 2.5, "\\u00e9", null, true, -0.0, 18446744073709551615]}')["a"][-1] == 2**64 - 1
    for body in malformed.BROKEN.values():
        if body[:1] == b"{" and b"users=" not in body:
            with pytest.raises(RequestError):
                read_json(body)


def test_queries():
    fields = ("users", "items", "filter_items", "exclude")
    read = read_query(b"user=a%20b&user=%C3%A9&users=c+d&n=3&exclude_seen=False&exclude=x", fields)
    assert read == {"users": ["a b", "é", "c d"], "n": 3, "exclude_seen": False, "exclude": ["x"]}
    assert read_query(b"", fields) == {}
    assert json.dumps(read_query(b"n=007&n2=1", fields)) == '{"n": "007", "n2": true}'
