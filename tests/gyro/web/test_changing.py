"""The servers of a web application change while browsers use it: servers, and then the application and its tables."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plait.cli.gyro_change import change
from plait.gyro.belt.server import open_log
from plait.gyro.belt.settings import load_settings
from plait.gyro.belt.supervisor import free_ports
from plait.kernel.errors import UsageError
from tests.gyro.belt.changing import meanwhile
from tests.gyro.web.judge import Stage
from tests.gyro.web.servers import SHOP, Browser, Example, Servers, servers, shopping, work

pytestmark = pytest.mark.slow
MIGRATION = "CREATE TABLE notes (cart_id INTEGER NOT NULL, text VARCHAR NOT NULL, PRIMARY KEY (cart_id, text));"
MODEL = '''
class Note(Base):
    """A remark on a cart."""

    __tablename__ = "notes"
    cart_id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(primary_key=True)


engine = create_engine('''
VIEW = '''
@app.post("/carts/<int:cart>/notes")
def remark(cart: int) -> ResponseReturnValue:
    """Add a remark to a cart."""
    db.add(Note(cart_id=cart, text=request.get_json()["text"]))
    db.commit()
    return {"count": len(db.execute(select(Note.text).where(Note.cart_id == cart)).all())}


@app.get("/")'''
RECORDED = """\
  POST /carts/<int:cart>/notes:
    parameters: [cart, json_text]
    statements:
    - INSERT INTO notes (cart_id, text) VALUES (:cart, :json_text)
    - SELECT notes.text FROM notes WHERE notes.cart_id = :cart
"""


class NewShop(Example):
    """The shop with a new table and a new endpoint."""

    def __init__(self, folder: Path) -> None:
        source = Path(SHOP.application).read_text(encoding="utf-8")
        source = source.replace("\nengine = create_engine(", MODEL).replace('@app.get("/")', VIEW)
        recording = SHOP.recording.read_text(encoding="utf-8")
        recording = recording.replace("transactions:\n", f"  {MIGRATION}\ntransactions:\n") + RECORDED
        self.application, self.recording, self.data = str(folder / "shop2.py"), folder / "shop2.yaml", SHOP.data
        self.migration = folder / "migration.sql"
        for file, text in (
            (Path(self.application), source),
            (self.recording, recording),
            (self.migration, MIGRATION),
        ):
            file.write_text(text, encoding="utf-8")


class Changing:
    """Changes the cluster; clients always know the servers that are there."""

    def __init__(self, found: Servers) -> None:
        self.found = found
        found.changing = True
        self._ended = False
        self._nurse = threading.Thread(target=self._watch, daemon=True)
        self._nurse.start()

    def _watch(self) -> None:
        while not self._ended:
            self.found.supervisor.watch()
            time.sleep(0.02)

    def change(self, **options: Any) -> None:
        folder = Path(self.found.settings.folder)
        change(str(folder), **options)
        self.found.settings = load_settings(folder / "settings.json")
        log = open_log(self.found.settings)
        seq = max(entry.seq for entry in log.read(0, 1_000_000) if entry.operation == "gyro:activate")
        log.close()
        text = Path(options["migration"]).read_text(encoding="utf-8") if "migration" in options else ""
        self.found.stages.append(Stage(seq, self.found.settings.numbers, text))

    def end(self) -> None:
        self._ended = True
        self._nurse.join()


def test_servers_and_the_application_change_under_load(tmp_path: Path) -> None:
    """Every response is that of one server, which has executed the same requests on one database."""
    new = NewShop(tmp_path)
    (folder := tmp_path / "servers").mkdir()
    with servers(SHOP, folder, count=2, replicate="acknowledged", lost=0.4) as found:
        changing = Changing(found)
        with pytest.raises(UsageError, match="run a web application"):
            change(str(folder), application=new.application, schema=None, migration=new.migration)
        with meanwhile(lambda: work(found, shopping, clients=2)):
            time.sleep(0.5)
            url = f"http://127.0.0.1:{free_ports(1)[0]}"
            program = {"application": f"{new.application}:app", "recording": new.recording, "migration": new.migration}
            changing.change(add=(url,), remove=(0,), **program)
        browser = Browser(found, 9)
        for number in range(4):
            cart = browser.send("POST", "/carts", body={"owner": "eve"})["id"]
            assert browser.send("POST", f"/carts/{cart}/notes", body={"text": f"n{number}"}) == {"count": 1}
        changing.end()
        assert found.settings.numbers == [1, 2]
        new.recording, found.example = SHOP.recording, new  # one database begins with the tables of the old one
        assert found.differences() == []
        assert found.refused == []
        assert {event.server for event, _ in found.events} == {0, 1, 2}
