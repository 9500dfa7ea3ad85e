"""The files around the code agree with it and with each other: version, changelog, citation, workflows, templates."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import plait

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(f for f in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if f.name != "config.yml")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads(text(name))


# -- one version ---------------------------------------------------------------------------------------------------------

VERSION: str = toml("rust/Cargo.toml")["package"]["version"]


def test_the_version_is_written_once() -> None:
    project = toml("pyproject.toml")["project"]
    assert "version" in project["dynamic"]
    assert "version" not in project


@pytest.mark.slow
def test_the_installed_version_is_that_of_the_source() -> None:
    assert plait.__version__ == VERSION, "the version has changed since it was installed: run make setup"
    done = subprocess.run(
        [sys.executable, "-m", "plait.cli.main", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{VERSION}\n"


def test_copies_of_the_version_agree() -> None:
    locked = {p["name"]: p["version"] for p in toml("rust/Cargo.lock")["package"]}
    assert locked["plait-native"] == VERSION
    assert str(yaml.safe_load(text("CITATION.cff"))["version"]) == VERSION


def test_the_changelog_ends_at_this_version() -> None:
    sections = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text("CHANGELOG.md"), re.MULTILINE)
    assert sections[0] == ("Unreleased", "")
    assert all(date for _, date in sections[1:]), "a release has a date"
    assert not sections[1:] or sections[1][0] == VERSION
    kinds = set(re.findall(r"^### (.+)$", text("CHANGELOG.md"), re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


# -- metadata ------------------------------------------------------------------------------------------------------------


def test_python_versions_agree() -> None:
    project = toml("pyproject.toml")["project"]
    listed = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    tested = yaml.safe_load(text(".github/workflows/test.yml"))["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert listed == tested
    assert project["requires-python"] == f">={listed[0]}"


def test_a_release_points_to_the_repository_that_builds_it() -> None:
    with_urls = runpy.run_path(str(ROOT / "scripts" / "project_urls.py"))["with_urls"]
    project = tomllib.loads(with_urls(text("pyproject.toml"), "https://example.org/owner/name"))["project"]
    assert project["urls"]["Repository"] == "https://example.org/owner/name"
    assert project["urls"]["Changelog"] == "https://example.org/owner/name/blob/main/CHANGELOG.md"
    assert {k: v for k, v in project.items() if k != "urls"} == toml("pyproject.toml")["project"]
    with pytest.raises(SystemExit, match="https URL"):
        with_urls(text("pyproject.toml"), "owner/name")


def test_pinned_packages_come_from_any_index() -> None:
    assert not re.search(r"https?://|--(extra-)?index-url|--trusted-host|--find-links", text("requirements-dev.lock"))


def test_every_dependency_is_pinned() -> None:
    project = toml("pyproject.toml")
    groups = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    wanted = [*project["project"]["dependencies"], *(requirement for group in groups for requirement in group)]
    pinned = set(re.findall(r"^([\w.-]+)==", text("requirements-dev.lock"), re.MULTILINE))
    names = {re.split(r"[\[<>=!~ ]", r)[0].lower() for r in wanted if not r.startswith("plait[")}
    assert names <= pinned, "run make lock"


# -- hosted CI -----------------------------------------------------------------------------------------------------------


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_there_are_workflows() -> None:
    assert {w.stem for w in WORKFLOWS} == {"docs", "fuzz", "test", "wheels"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda w: w.stem)
def test_workflows_call_what_exists(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    for command in filter(None, (step.get("run") for step in steps(workflow))):
        for target in re.findall(r"\bmake ([a-z-]+)", command):
            assert target in targets
        for script in re.findall(r"\bscripts/[\w.-]+", command):
            assert (ROOT / script).is_file()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda w: w.stem)
def test_workflows_are_careful(workflow: Path) -> None:
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert content["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in content["jobs"].values())
    for action in filter(None, (step.get("uses") for step in steps(workflow))):
        assert re.search(r"@(v\d+|stable|[0-9a-f]{40})$", action), f"{action} is not pinned"


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.stem)
def test_issue_forms_are_forms(form: Path) -> None:
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert content["name"]
    assert content["description"]
    fields = [f for f in content["body"] if f["type"] != "markdown"]
    assert {f["type"] for f in fields} <= {"textarea", "input", "dropdown", "checkboxes"}
    assert len({f["id"] for f in fields}) == len(fields)
    assert all(f["attributes"]["label"] for f in fields)
    assert any(f.get("validations", {}).get("required") for f in fields)


def test_hooks_use_the_tools_of_the_environment() -> None:
    hooks = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"], "hooks fetch nothing"
    assert all(hook["language"] == "system" for hook in hooks[0]["hooks"])
