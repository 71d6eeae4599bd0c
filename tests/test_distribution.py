"""The wheel in a fresh environment, with plugins of other distributions, as a user installs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from isotone import format as files
from tests.paths import ROOT
from tests.tiny_models import lines_of, names_in, save_character_model, save_noise

FOCAL = '''
"""A loss and an aligner from outside."""
import torch
from isotone import losses
from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner, Loss
from isotone.kernels.paths import coupling_from_paths
from isotone.types import length_mask


class FocalCTC(Loss):
    """CTC that looks harder at what is hard."""

    def __init__(self, *, gamma: float = 2.0) -> None:
        super().__init__()
        self.gamma = gamma
        self.ctc = losses.build("ctc", normalize="tokens")

    def forward(self, emissions, targets):
        nll = self.ctc(emissions, targets)
        return (1 - torch.exp(-nll)) ** self.gamma * nll


class Uniform(Aligner):
    """Every token takes the same share of the frames."""

    def __call__(self, emissions, targets):
        frames, tokens = emissions.lengths, targets.lengths
        inside = length_mask(frames, emissions.logits.shape[1])
        for row, (n, m) in enumerate(zip(frames.tolist(), tokens.tolist())):
            if m > n or not bool(torch.isfinite(emissions.logits[row, :n]).all()):
                raise AlignmentError(f"{m} tokens in {n} frames, or logits that are no numbers", row=row)
        share = torch.arange(inside.shape[1]) * tokens[:, None] // frames[:, None]
        return coupling_from_paths(torch.where(inside, share, -2), frames, tokens)
'''
CURSED = 'raise RuntimeError("the moon is not full")\n'
TWIN = "from isotone.interfaces import Loss\n\nclass Twin(Loss):\n    def forward(self, emissions, targets): ...\n"

#: Distribution: its version, its module, and the plugins it declares.
DISTRIBUTIONS = {
    "focal-ctc-plugin": (
        "1.2.3", "focal_plugin", FOCAL,
        {"losses": {"focal-ctc": "FocalCTC"}, "aligners": {"uniform": "Uniform"}},
    ),
    "cursed-plugin": ("0.0.13", "cursed_plugin", CURSED, {"losses": {"cursed": "Cursed"}}),
    "twin-one": ("1.0", "twin_one", TWIN, {"losses": {"twin": "Twin"}}),
    "twin-two": ("2.0", "twin_two", TWIN, {"losses": {"twin": "Twin"}}),
}  # fmt: skip

PACK = '''
from isotone.interfaces import ModelPack


class Sorbian(ModelPack):
    """A small model of letters."""

    name = "sorbian"
    title = "Letters"
    languages = ("hsb",)
    licence = "CC0-1.0"
    size_mb = 0.1
    trained_on = "nothing"
'''

RECIPE = """
data: {{name: timit, root: "{root}"}}
tokens: {{unit: phones, silence: sil}}
encoder:
  name: transformers
  source:
    model_type: wav2vec2-bert
    hidden_size: 16
    num_hidden_layers: 1
    num_attention_heads: 2
    intermediate_size: 16
    conv_depthwise_kernel_size: 3
    feature_projection_input_dim: 160
    position_embeddings_type: null
    mask_time_prob: 0.0
heads: {{ctc: {{name: ctc}}}}
objective: {{ctc: {{head: ctc, loss: {{name: focal-ctc, gamma: 1.5}}}}}}
reading: {{text: ctc, decoder: {{name: ctc-greedy}}, aligner: {{name: uniform}}}}
train: {{steps: 3, batch_size: 4, lr: 1.0e-3, trackers: [none]}}
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment with isotone and the plugins in it."""

    folder: Path
    wheel: Path

    def run(self, program: str, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment as a fresh shell would, away from the repository."""
        command = [str(self.folder / "bin" / program), *map(str, arguments)]
        result = subprocess.run(
            command, cwd=self.folder, env=_plain(), capture_output=True, text=True, check=False
        )
        assert result.returncode == code, f"{result.returncode}: {result.stdout}{result.stderr}"
        return result


def _plain() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return kept | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def _wheel(source: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    result = subprocess.run(command, env=_plain(), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def _write_distribution(folder: Path, name: str) -> Path:
    version, module, source, groups = DISTRIBUTIONS[name]
    folder.mkdir(parents=True)
    (folder / f"{module}.py").write_text(source)
    plugins = "".join(
        f'[project.entry-points."isotone.{group}"]\n{key} = "{module}:{value}"\n'
        for group, entries in groups.items()
        for key, value in entries.items()
    )
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
        f'[project]\nname = "{name}"\nversion = "{version}"\ndependencies = ["isotone"]\n'
        f'[tool.setuptools]\npy-modules = ["{module}"]\n{plugins}'
    )
    return folder


def _write_pack(folder: Path) -> Path:
    """Write a distribution with a model as package data."""
    (folder / "sorbian").mkdir(parents=True)
    (folder / "sorbian/__init__.py").write_text(PACK)
    save_character_model(folder / "sorbian/model")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "sorbian"\nversion = "1.0"\n'
        '[project.entry-points."isotone.models"]\nsorbian = "sorbian:Sorbian"\n'
        '[tool.setuptools]\npackages = ["sorbian"]\n[tool.setuptools.package-data]\nsorbian = ["model/**/*"]\n'
    )
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    pytest.importorskip("build", reason="the group 'test' has what builds a wheel")
    base = tmp_path_factory.mktemp("distribution")
    source = base / "source"
    source.mkdir()
    for part in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, source)
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    for part in (p for p in ("src", "plugins", "tests", "recipes", "benchmarks") if (ROOT / p).is_dir()):
        shutil.copytree(ROOT / part, source / part, ignore=skip)
    wheel = _wheel(source, base / "dist")
    others = [_wheel(_write_distribution(base / name, name), base / f"dist-{name}") for name in DISTRIBUTIONS]
    others.append(_wheel(_write_pack(base / "sorbian"), base / "dist-sorbian"))
    folder = base / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], env=_plain(), check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel), *map(str, others)], env=_plain(), check=True)
    # the dependencies come from the tests' environment: a path in a .pth file, which brings no editable install
    (packages,) = folder.glob("lib/python*/site-packages")
    paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in paths))
    return Environment(folder, wheel)


def test_the_wheel_holds_the_packages_and_nothing_else(environment: Environment) -> None:
    with zipfile.ZipFile(environment.wheel) as wheel:
        names = set(wheel.namelist())
        metadata = next(wheel.read(n).decode() for n in names if n.endswith(".dist-info/METADATA"))
    modules = {
        path.relative_to(ROOT / top).as_posix()
        for top in ("src", "plugins")
        for path in (ROOT / top).rglob("*.py")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    }
    assert {n for n in names if n.endswith(".py")} == modules
    assert {"isotone/py.typed", "isotone/corpus/data/sentences_en.txt"} <= names
    pack = ROOT / "plugins/isotone_english"
    data = {p.relative_to(pack.parent).as_posix() for p in (pack / "model").rglob("*") if p.is_file()}
    assert data | {"isotone_english/README.md"} <= names
    plugins = {path.parent.name for path in (ROOT / "plugins").glob("*/__init__.py")}
    assert {n.split("/")[0].split("-")[0] for n in names} == {"isotone"} | plugins
    assert [n for n in names if n.endswith("/licenses/LICENSE")]
    assert "License-Expression: Apache-2.0" in metadata
    assert "# isotone" in metadata, "the README is the description"


def test_isotone_is_the_installed_one(environment: Environment) -> None:
    code = "import isotone, isotone_ottc.loss; print(isotone.__file__, isotone_ottc.__file__, isotone.__version__)"
    *paths, version = environment.run("python", "-c", code).stdout.split()
    assert all(Path(path).is_relative_to(environment.folder) for path in paths)
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_a_fresh_shell(environment: Environment, tmp_path: Path) -> None:
    assert "transcribe" in environment.run("isotone", code=2).stdout
    said = environment.run("isotone", "align", code=2).stderr
    assert "Missing argument" in said
    model = save_character_model(tmp_path / "model")
    audio = save_noise(tmp_path / "u.wav", text="well then")
    quick = ("--aligner", "uniform", "--no-check", "--no-edges")  # what these compile others test
    environment.run("isotone", "align", audio, "-m", model, *quick, "-o", tmp_path / "out")
    found = files.read(tmp_path / "out/u.TextGrid")
    assert [x for x in found.tier("words").labels if x] == ["well", "then"]
    assert "u.TextGrid" in names_in(tmp_path / "out")


def test_plugins_of_others_are_listed_with_ours(environment: Environment) -> None:
    rows = json.loads(environment.run("isotone", "plugins", "--json").stdout)
    found = {(row["kind"], row["name"]): row for row in rows}
    for kind, name in (("loss", "focal-ctc"), ("aligner", "uniform")):
        row = found[kind, name]
        assert (row["distribution"], row["version"]) == ("focal-ctc-plugin", "1.2.3")
        assert row["error"] is None
        assert row["summary"]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    ours = {(row["kind"], row["name"]) for row in rows if row["distribution"] == "isotone"}
    assert {name for _, name in ours} == {name for entries in declared.values() for name in entries}
    assert [row["name"] for row in rows if row["error"] and row["distribution"] == "isotone"] == []
    cursed = found["loss", "cursed"]
    assert "RuntimeError: the moon is not full" in cursed["error"]
    assert (cursed["distribution"], cursed["version"]) == ("cursed-plugin", "0.0.13")
    twin = found["loss", "twin"]["error"]
    assert "twin-one 1.0" in twin
    assert "twin-two 2.0" in twin
    table = environment.run("isotone", "plugins").stdout
    assert "the moon is not full" in table


def test_a_pack_of_others_is_the_model_of_its_language(environment: Environment, tmp_path: Path) -> None:
    audio = save_noise(tmp_path / "u.wav", text="dobry wjecor")
    done = environment.run("isotone", "align", audio, "--language", "hsb", "-o", tmp_path / "out")
    assert "Model: sorbian (Letters; CC0-1.0)" in done.stderr
    found = files.read(tmp_path / "out/u.TextGrid")
    assert [x for x in found.tier("words").labels if x] == ["dobry", "wjecor"]


def test_plugins_of_others_keep_the_laws(environment: Environment) -> None:
    code = (
        "from isotone import aligners, losses\nfrom isotone.testing import check_aligner, check_loss\n"
        "check_loss(losses.build('focal-ctc', gamma=1.5)); check_aligner(aligners.build('uniform')); print('kept')"
    )
    assert environment.run("python", "-c", code).stdout == "kept\n"


def test_a_recipe_trains_with_plugins_of_others(
    environment: Environment, timit_root: Path, tmp_path: Path
) -> None:
    recipe, run = tmp_path / "focal.yaml", tmp_path / "run"
    recipe.write_text(RECIPE.format(root=timit_root))
    assert f"Run folder: {run}" in environment.run("isotone", "train", recipe, f"output={run}").stdout
    assert len([row for row in lines_of(run / "metrics.jsonl") if "loss" in row]) == 3
    ids = {row["id"] for row in lines_of(run / "predictions.jsonl")}
    assert ids
    for part in ("alignments", "forced", "reference"):
        assert set(files.read_folder(run / part).alignments) == ids, part
    for alignment in files.read_folder(run / "forced").alignments.values():
        tier = [s for s in alignment.tier("phones") if s.label]
        assert tier, "the phones of the text"
        # the uniform aligner ran: frames of 20 ms, give or take one
        shares = [s.duration for s in tier[1:-1]]
        assert max(shares) - min(shares) < 0.0201
    again = environment.run("isotone", "train", recipe, f"output={run}", "objective.ctc.loss.gamma=9", code=2)
    assert "objective" in again.stderr


def test_recipes_with_losses_that_cannot_be_are_explained(
    environment: Environment, timit_root: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE.format(root=timit_root))
    code = (
        "import json, sys\nfrom typer.testing import CliRunner\nfrom isotone.cli import app\n"
        "run, (recipe, out) = CliRunner().invoke, sys.argv[1:]\n"
        "for name in ('twin', 'cursed'):\n"
        "    found = run(app, ['train', recipe, f'objective.ctc.loss={{name: {name}}}', f'output={out}'])\n"
        "    print(json.dumps([found.exit_code, found.stderr]))"
    )
    lines = environment.run("python", "-c", code, recipe, tmp_path / "run").stdout.splitlines()
    twin, cursed = map(json.loads, lines)
    for (status, words), said in (
        (twin, ["twin-one 1.0", "twin-two 2.0", "uninstall one"]),
        (cursed, ["cursed-plugin 0.0.13", "the moon is not full"]),
    ):
        assert status == 2
        assert "Traceback" not in words
        assert all(part in words for part in said), words
