# SPDX-License-Identifier: BSD-3-Clause
"""A web application whose sessions and pages are cached through Django's own memcached driver, over TLS:
django_app.py HOST:PORT --ca FILE

It serves HTTP on a port of its own; browsers with cookies of their own ask it side by side.
"""
import argparse
import http.client
import http.cookies
import json
import socketserver
import ssl
import threading
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import django
from django.conf import settings

from checks import Checks

parser = argparse.ArgumentParser()
parser.add_argument("server")
parser.add_argument("--ca", required=True)
arguments = parser.parse_args()
checks = Checks("Django over TLS")
settings.configure(
    SECRET_KEY="a secret", DEBUG=False, ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, USE_TZ=True,
    INSTALLED_APPS=["django.contrib.sessions", "django.contrib.messages"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.messages.middleware.MessageMiddleware"],
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    MESSAGE_STORAGE="django.contrib.messages.storage.session.SessionStorage",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    CACHES={"default": {
        "BACKEND": "django.core.cache.backends.memcached.PyMemcacheCache", "LOCATION": arguments.server, "KEY_PREFIX": "site",
        "OPTIONS": {"tls_context": ssl.create_default_context(cafile=arguments.ca), "use_pooling": True, "timeout": 20}}})
django.setup()

from django.contrib import messages  # noqa: E402 (after setup)
from django.core.cache import cache  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.template import Context, engines  # noqa: E402
from django.urls import path  # noqa: E402
from django.views.decorators.cache import cache_page  # noqa: E402

made = {"page": 0, "part": 0}
lock = threading.Lock()
PART = "{% load cache %}{% cache 500 part name %}{{ make }}{% endcache %}"


def count(what):
    with lock:
        made[what] += 1
        return made[what]


def visit(request):
    session = request.session
    session["visits"] = session.get("visits", 0) + 1
    session.setdefault("basket", []).append({"item": session["visits"], "note": "\u20ac" * session["visits"]})
    session.modified = True
    return JsonResponse({"visits": session["visits"], "basket": session["basket"]})


def note(request):
    messages.info(request, "noted")
    return HttpResponse("ok")


def notes(request):
    return JsonResponse({"notes": [str(message) for message in messages.get_messages(request)]})


def leave(request):
    request.session.flush()
    return HttpResponse("bye")


@cache_page(500)
def page(_request, number):
    count("page")
    return HttpResponse(f"page {number} " * 2000)


def part(_request, name):
    template = engines["django"].from_string(PART).template
    return HttpResponse(template.render(Context({"name": name, "make": lambda: f"{name} {count('part')}"})))


urlpatterns = [path("visit", visit), path("note", note), path("notes", notes), path("leave", leave),
               path("page/<int:number>", page), path("part/<str:name>", part)]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class Browser:
    def __init__(self, port):
        self.port = port
        self.cookies = {}

    def get(self, where):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request("GET", where, headers={"Cookie": cookie} if cookie else {})
        answer = connection.getresponse()
        body = answer.read().decode()
        for header in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in http.cookies.SimpleCookie(header).items():
                if morsel.value and morsel["max-age"] != "0":
                    self.cookies[name] = morsel.value
                else:
                    self.cookies.pop(name, None)
        connection.close()
        return answer.status, body


def browse(port, number, results):
    """One visitor: what the session has must be what this visitor did, nobody else's."""
    browser = Browser(port)
    bad = []
    for turn in range(1, 26):
        status, body = browser.get("/visit")
        wanted = {"visits": turn, "basket": [{"item": i, "note": "\u20ac" * i} for i in range(1, turn + 1)]}
        if status != 200 or json.loads(body) != wanted:
            bad.append((turn, status, body[:200]))
            break
        status, body = browser.get(f"/page/{turn % 5}")
        if status != 200 or body != f"page {turn % 5} " * 2000:
            bad.append((turn, status, body[:200]))
    results[number] = bad


with checks.part("the cache itself"):
    cache.clear()
    checks.same("nothing", cache.get("nothing"), None)
    checks.same("default", cache.get("nothing", 7), 7)
    checks.same("touch of nothing", cache.touch("nothing", 10), False)
    checks.same("delete of nothing", cache.delete("nothing"), False)
    checks.raises("incr of nothing", ValueError, cache.incr, "nothing")
    for value in ("text", b"bytes", 7, 1.5, None, True, {"a": [1, "\u20ac"]}, ["x"] * 1000, "large" * 100000):
        cache.set("value", value, 100)
        checks.same(f"set and get of a {type(value).__name__}", cache.get("value"), value)
    checks.same("add", cache.add("added", 1), True)
    checks.same("add again", cache.add("added", 2), False)
    checks.same("get_or_set", cache.get_or_set("made", lambda: "made", 100), "made")
    checks.same("get_or_set again", cache.get_or_set("made", "again", 100), "made")
    many = {f"many-{i}": {"i": i} for i in range(200)}
    checks.same("set_many", cache.set_many(many, 100), [])
    checks.same("get_many", cache.get_many(many), many)
    cache.delete_many(many)
    checks.same("delete_many", cache.get_many(many), {})
    cache.set("n", 10)
    checks.same("incr", cache.incr("n", 5), 15)
    checks.same("decr", cache.decr("n"), 14)
    cache.set("v", "one", version=1)
    cache.set("v", "two", version=2)
    checks.same("versions", (cache.get("v", version=1), cache.get("v", version=2)), ("one", "two"))
    checks.same("incr_version", cache.incr_version("v", version=2), 3)
    cache.set("never", "x", 0)
    checks.same("timeout 0", cache.get("never"), None)
    cache.set("soon", "x", 1)
    cache.set("forever", "x", None)
    cache.set("touched", "x", 1000)
    checks.same("touch", cache.touch("touched", 1), True)
    checks.becomes("expires", lambda: cache.get("soon"), None)
    checks.becomes("touched expires", lambda: cache.get("touched"), None)
    checks.same("forever", cache.get("forever"), "x")
    checks.same("has_key", "forever" in cache, True)

server = Server(("127.0.0.1", 0), Quiet)
server.set_app(get_wsgi_application())
threading.Thread(target=server.serve_forever, daemon=True).start()
port = server.server_port

with checks.part("visitors side by side"):
    results = {}
    threads = [threading.Thread(target=browse, args=(port, number, results)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(6):
        checks.same(f"visitor {number}", results.get(number), [])
    checks.true("pages came from the cache", 5 <= made["page"] <= 30, made["page"])  # all may miss the first time

with checks.part("sessions"):
    one, other = Browser(port), Browser(port)
    checks.same("a first visit", json.loads(one.get("/visit")[1])["visits"], 1)
    checks.same("a second", json.loads(one.get("/visit")[1])["visits"], 2)
    checks.same("somebody else's first", json.loads(other.get("/visit")[1])["visits"], 1)
    other.cookies["sessionid"] = "stolenorforged0000000000000000000"
    checks.same("a session that doesn't exist", json.loads(other.get("/visit")[1])["visits"], 1)
    one.get("/note")
    one.get("/note")
    checks.same("messages", json.loads(one.get("/notes")[1]), {"notes": ["noted", "noted"]})
    checks.same("read once", json.loads(one.get("/notes")[1]), {"notes": []})
    kept = dict(one.cookies)
    one.get("/leave")
    one.cookies = kept
    checks.same("after leaving", json.loads(one.get("/visit")[1])["visits"], 1)

with checks.part("parts of pages"):
    first = Browser(port).get("/part/a")[1]
    checks.same("cached", Browser(port).get("/part/a")[1], first)
    checks.true("by name", Browser(port).get("/part/b")[1] != first)
    cache.clear()
    checks.true("made again after clear", Browser(port).get("/part/a")[1] != first)

server.shutdown()
checks.done()
