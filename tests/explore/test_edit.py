"""Edit and see: saving the model reloads it, keeps the run as far as it exists, and shows errors in the page."""

from __future__ import annotations

from pathlib import Path

from tests.explore.server import explored

MODEL = """
from limits import LIMIT
from plait import Process, System, action, always

class Counter(Process):
    n: int = 0

    @action(when=lambda self: self.n < LIMIT)
    def up(self):
        self.n += 1

model = System([Counter()])
"""


def test_saving_the_model(tmp_path: Path) -> None:
    model, limits = tmp_path / "model.py", tmp_path / "limits.py"
    model.write_text(MODEL)
    limits.write_text("LIMIT = 5\n")
    run = ["up@Counter0"] * 4
    with explored("model.py", folder=tmp_path) as served, served.listening("/api/events") as events:
        assert served.walk(*run)["valid"] == 4
        limits.write_text("LIMIT = 2  # less\n")
        assert next(events) == ("reload", {})
        walked = served.walk(*run)
        assert (walked["valid"], walked["gone"]["step"]) == (2, 2)
        assert walked["gone"]["reason"] == "up of Counter0 is not possible here"

        model.write_text(MODEL + "syntax error\n")
        name, error = next(events)
        assert name == "error"
        assert "SyntaxError" in error["message"]
        assert "model.py" in error["message"]
        assert served.get("/api/model")["error"] == error
        refused = served.ask("POST", "/api/walk", {"run": {"steps": run}})
        assert (refused.status, refused.json["error"]) == (409, error)

        model.write_text(MODEL.replace("self.n += 1", "self.n += 2"))
        assert next(events) == ("reload", {})
        walked = served.walk(*run)
        assert (walked["valid"], walked["state"]["fields"]["Counter0"]["n"]) == (1, 2)


def test_a_search_ends_when_the_model_is_saved(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    endless = MODEL.replace("from limits import LIMIT", "LIMIT = 10**9")
    model.write_text(endless)
    with explored("model.py", folder=tmp_path) as served:
        number = served.post("/api/search", {"from": None, "kind": "find", "expression": "False"})["id"]
        with served.listening(f"/api/search/{number}/events") as events:
            assert next(events)[0] == "progress"
            model.write_text(endless + "\n")
            found = next((data for name, data in events if name == "done"), None)
    assert found == {"status": "stopped", "text": "the model was saved"}


def test_a_model_file_that_is_deleted_and_comes_back(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(MODEL.replace("from limits import LIMIT", "LIMIT = 5"))
    content = model.read_text()
    with explored("model.py", folder=tmp_path) as served, served.listening("/api/events") as events:
        assert served.walk("up@Counter0")["valid"] == 1
        model.unlink()
        name, error = next(events)
        assert (name, error["message"]) == ("error", "there is no file model.py")
        model.write_text(content)
        assert next(events) == ("reload", {})
        assert served.walk("up@Counter0")["valid"] == 1
