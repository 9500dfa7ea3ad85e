"""A notebook for tests: a real kernel (ipykernel), and a page that shows widgets as a notebook does.

The kernel speaks the protocol of Jupyter. The page has anywidget's documented interface of a model (`get`, `send`, `on`,
`off`), and passes messages on. JupyterLab itself would be ninety packages more.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import jupyter_client
from playwright.sync_api import Browser, Page

from tests.support.browser import tab
from tests.support.patience import PATIENCE

WIDGET = "application/vnd.jupyter.widget-view+json"

HOST = """async ([state, id]) => {
  const heard = new Set();
  window.fromKernel = (content) => { for (const one of [...heard]) one(content, []); };
  const model = {
    get: (name) => state[name], set: () => {}, save_changes: () => {},
    send: (content) => window.toKernel(id, content),
    on: (event, f) => event === "msg:custom" && heard.add(f), off: (event, f) => heard.delete(f),
  };
  const address = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
  const widget = (await import(address)).default;
  const el = document.createElement("div");
  el.className = "output";
  document.querySelector("main").append(el);
  window.endView = await widget.render({ model, el });
}"""
"""What anywidget does with the state of a widget."""

PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>notebook</title><link rel="icon" href="data:,"><style>
body { font: 20px serif; margin: 12px; background: %s } h1, h2, table, button { border: 3px solid lime }
h1 { color: #777 } td, button { color: lime }
</style><main><h1>Notebook</h1></main></html>"""
"""A notebook has styles of its own. They must not reach the widget."""


class Kernel:
    """A kernel that runs cells."""

    def __init__(self, folder: str) -> None:
        self.manager = jupyter_client.KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=folder)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.states: dict[str, dict[str, Any]] = {}
        """What a notebook would save of each widget, by the id of its model."""
        self.messages: list[dict[str, Any]] = []
        """Messages of widgets that no page has got."""

    def run(self, cell: str) -> dict[str, Any]:
        """Run a cell. Returns what it shows, by its type."""
        number = self.client.execute(cell)
        shown: dict[str, Any] = {}
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            kind, content = message["msg_type"], message["content"]
            if not self.hear(message) and message["parent_header"].get("msg_id") == number:
                assert kind != "error", content
                if kind in ("execute_result", "display_data"):
                    shown = content["data"]
                elif kind == "status" and content["execution_state"] == "idle":
                    return shown
        raise AssertionError("the cell did not end")

    def hear(self, message: dict[str, Any]) -> bool:
        """A message of a widget."""
        content = message["content"]
        if message["msg_type"] == "comm_open":
            self.states[content["comm_id"]] = content["data"].get("state", {})
        elif message["msg_type"] == "comm_msg" and content["data"]["method"] == "custom":
            self.messages.append(content["data"]["content"])
        elif message["msg_type"] != "comm_msg":
            return False
        return True

    def send(self, widget: str, content: Any) -> None:
        """A message to a widget."""
        data = {"comm_id": widget, "data": {"method": "custom", "content": content}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", data))

    def ask(self, widget: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask a widget, as its page does, and wait for the answer."""
        number = f"{time.monotonic_ns()}"
        self.send(widget, {"id": number, "method": method, "path": path, "body": body})
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.listen()
            for message in self.messages:
                if message["id"] == number and "status" in message:
                    return message
        raise AssertionError(f"no answer to {method} {path}")

    def listen(self, seconds: float = 0.02) -> None:
        """Take the messages that have arrived."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.hear(self.client.get_iopub_msg(timeout=seconds))

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel()


class Shown:
    """A widget in a page."""

    def __init__(self, page: Page, kernel: Kernel, widget: str) -> None:
        self.page, self.kernel = page, kernel
        self._sent: list[Any] = []
        page.expose_function("toKernel", lambda *message: self._sent.append(message))
        page.evaluate(HOST, [kernel.states[widget], widget])

    def pump(self) -> None:
        """Pass messages on, in both directions."""
        while self._sent:
            self.kernel.send(*self._sent.pop(0))
        self.kernel.listen()
        while self.kernel.messages:
            self.page.evaluate("content => window.fromKernel(content)", self.kernel.messages.pop(0))

    def until(self, condition: Callable[[], bool]) -> None:
        """Pass messages on until something is true."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, self.page.locator("main").inner_text()
            self.pump()

    def says(self, selector: str, text: str) -> None:
        """Wait until an element has a text in it."""
        found = self.page.locator(selector)
        self.until(lambda: found.count() > 0 and text in (found.first.text_content() or ""))


@contextlib.contextmanager
def shown(browser: Browser, kernel: Kernel, bundle: dict[str, Any], dark: bool = False, **look: Any) -> Iterator[Shown]:
    """Show the widget of a cell."""
    with tab(browser, **look) as page:
        page.set_content(PAGE % ("#111" if dark else "#fff"))
        yield Shown(page, kernel, bundle[WIDGET]["model_id"])
