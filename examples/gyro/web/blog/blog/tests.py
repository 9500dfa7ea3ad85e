"""The tests of the microblog. They know nothing of Plait; `plait gyro record` runs them."""

from __future__ import annotations

from django.test import Client, TestCase


class Blog(TestCase):
    """What authors do."""

    def sign_up(self, name: str) -> int:
        return int(self.client.post("/authors", {"name": name}).json()["id"])

    def write(self, author: int, text: str) -> int:
        url = f"/authors/{author}/drafts/new"
        return int(self.client.post(url, {"text": text}, content_type="application/json").json()["id"])

    def test_profiles(self) -> None:
        assert self.client.post("/profile").status_code == 403
        for name in ("ada", "ben", "cyd"):
            author = self.sign_up(name)
            text = f"I am {name}"
            self.client.post("/profile", {"profile": text}, content_type="application/json")
            assert self.client.get(f"/authors/{author}").json() == {"name": name, "profile": text}
        assert Client().get("/authors/99").status_code == 404

    def test_drafts(self) -> None:
        ada, ben = self.sign_up("ada"), self.sign_up("ben")
        first, second, third = self.write(ada, "one"), self.write(ben, "two"), self.write(ben, "three")
        assert self.client.get(f"/authors/{ben}/drafts").json()["drafts"] == [[second, "two"], [third, "three"]]
        assert self.client.post(f"/authors/{ben}/drafts/{second}/discard").json() == {"deleted": 1}
        assert self.client.post(f"/authors/{ada}/drafts/{third}/discard").json() == {"deleted": 0}
        assert self.client.get(f"/authors/{ada}/drafts").json()["drafts"] == [[first, "one"]]

    def test_publish(self) -> None:
        ada, ben = self.sign_up("ada"), self.sign_up("ben")
        self.write(ada, "not yet")
        one, two, empty = self.write(ada, "one"), self.write(ben, "two"), self.write(ben, "")
        assert self.client.post(f"/authors/{ada}/drafts/{one}/publish").status_code == 201
        assert self.client.post(f"/authors/{ben}/drafts/{two}/publish").status_code == 201
        assert self.client.post(f"/authors/{ben}/drafts/{empty}/publish").status_code == 409
        assert self.client.post(f"/authors/{ben}/drafts/{one}/publish").status_code == 404
        assert self.client.get("/").json() == {"posts": [["ada", "one"], ["ben", "two"]]}
        assert self.client.get(f"/authors/{ben}/drafts").json()["drafts"] == [[empty, ""]]
