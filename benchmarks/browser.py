"""Headless Chromium, what it is shown of this machine, and in it the live model's modules."""

import functools
import http.server
import json
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

LIVE = Path(__file__).resolve().parents[1] / "book" / "_static" / "live"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
EMPTY = b"<!doctype html><meta charset=utf-8><title>live</title><link rel=icon href='data:,'>"
WRAPPER = """
const [args, done] = [arguments[0], arguments[1]];
(async () => {{ {body} }})().then(
  (value) => done(JSON.stringify({{ value: value ?? null }})),
  (error) => done(JSON.stringify({{ error: `${{error.name}}: ${{error.message}}` }})));
"""


class PageError(Exception):
    """What the page's code threw, as "name: message"."""


class Page:
    """run(body, **args): JavaScript with `args` in sight; may await, returns JSON values.

    publish(name, content): bytes that the page can fetch under /given/name.
    """

    def __init__(self, driver, address: str, given: dict[str, bytes]):
        self.driver, self.address, self.given = driver, address, given

    def publish(self, name: str, content: bytes) -> str:
        self.given[f"/given/{name}"] = content
        return f"/given/{name}"

    def run(self, body: str, **args):
        answer = json.loads(self.driver.execute_async_script(WRAPPER.format(body=body), args))
        if "error" in answer:
            raise PageError(answer["error"])
        return answer["value"]


def start_chromium(profile: Path):
    """A selenium driver of headless Chromium that keeps its logs; needs selenium and Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The files of a folder, and no line for each request."""

    def log_message(self, *arguments):
        pass


class OnlyFromHere(Quiet):
    """The same, and the browser, workers included, may ask nobody else."""

    def end_headers(self):
        self.send_header("Content-Security-Policy",
                         "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:")
        super().end_headers()


@contextmanager
def served(folder: Path, handler: type = Quiet):
    """The address at which this machine shows a folder, without a slash at its end."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def open_page(profile: Path, timeout: int = 600):
    """A Page with book/_static/live/ as its server's root; needs selenium and Chromium."""
    given: dict[str, bytes] = {}

    class Handler(Quiet):
        extensions_map = {".js": "text/javascript", "": "application/octet-stream"}

        def do_GET(self):
            content = EMPTY if self.path == "/empty.html" else given.get(self.path)
            if content is None:
                return super().do_GET()
            self.send_response(200)
            html = self.path.endswith(".html")
            self.send_header("Content-Type", "text/html" if html else "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with served(LIVE, Handler) as address:
        driver = start_chromium(profile)
        driver.set_script_timeout(timeout)
        try:
            driver.get(f"{address}/empty.html")
            yield Page(driver, address, given)
        finally:
            driver.quit()
