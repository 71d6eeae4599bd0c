"""Files that a release is made of, and that no other test runs: the workflow, the image, the forms for reports."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
import yaml

from tests import doc_blocks
from tests.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))


def minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def test_the_workflow_tries_every_python_from_the_oldest_on() -> None:
    job = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text(encoding="utf-8"))["jobs"][
        "wheels"
    ]
    pythons = [minor(version) for version in job["strategy"]["matrix"]["python"]]
    oldest = minor(PROJECT["requires-python"].removeprefix(">="))
    assert pythons == [(3, n) for n in range(oldest[1], oldest[1] + len(pythons))]
    assert "make wheels" in [step.get("run") for step in job["steps"]]
    assert re.search(r"^wheels: env\n", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_a_change_runs_what_the_contributor_is_told_to_run() -> None:
    about = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    events = about[True]  # YAML reads the word "on" so
    assert "pull_request" in events
    commands = {name: [step.get("run") for step in job["steps"]] for name, job in about["jobs"].items()}
    assert ".ci/run" in commands["checks"]
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111, "it can be run"
    targets = re.findall(r"^make (\w+)$", script.read_text(encoding="utf-8"), re.MULTILINE)
    assert targets == ["lint", "docs", "test"]
    for target in [
        *targets,
        *(c.removeprefix("make ") for c in commands["slow"] if c and c.startswith("make ")),
    ]:
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert "`.ci/run`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_image_is_made_from_what_is_there() -> None:
    context = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() and f"!{source}" in context for source in sources), line
    assert f"!{PROJECT['readme']}" in context, "the build reads it"


def test_the_image_asks_for_the_torch_of_the_package() -> None:
    asked = set(re.findall(r'"(torch(?:audio)?[<>=][^"]+)"', DOCKERFILE))
    assert asked == {d for d in PROJECT["dependencies"] if re.match(r"torch(audio)?\W", d)}
    python = re.search(r"^FROM python:([\d.]+)-slim$", DOCKERFILE, re.MULTILINE)
    assert python
    assert f"/python{python[1]}/site-packages" in DOCKERFILE
    assert minor(python[1]) >= minor(PROJECT["requires-python"].removeprefix(">="))


def test_the_commands_of_the_image_are_understood() -> None:
    inside = [
        part.strip(" \\\n&|")
        for part in re.findall(r"(?:RUN|&&|#   docker run .*data\") ?(isotone .+)", DOCKERFILE)
    ]
    for command in ["isotone --help", *inside]:
        words = shlex.split(command)
        if words[1] != "--help":
            doc_blocks.parse(words)
    assert "isotone doctor" in inside


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_what_a_good_report_has(form) -> None:
    fields = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert fields["name"]
    assert fields["description"]
    ids = [field["id"] for field in fields["body"]]
    assert len(ids) == len(set(ids))
    if form.stem == "bug":
        assert {"command", "output", "doctor", "recording"} <= set(ids), "as CONTRIBUTING.md asks"
    assert all(field["attributes"]["label"] for field in fields["body"])


def test_the_space_asks_for_the_extra() -> None:
    header = (ROOT / "space/README.md").read_text(encoding="utf-8").split("---")[1]
    about = yaml.safe_load(header)
    assert (ROOT / "space" / about["app_file"]).is_file()
    assert (about["sdk"], about["license"]) == ("gradio", PROJECT["license"].lower())
    assert (ROOT / "space/requirements.txt").read_text().split() == ["isotone[space]"]
    assert any(name.startswith("gradio") for name in PROJECT["optional-dependencies"]["space"])
