import importlib
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import isotone
from isotone.registry import (
    BrokenPlugin,
    DuplicatePlugin,
    OptionError,
    Registry,
    UnknownPlugin,
    nearest,
)
from tests.registering import registered

GROUP = "isotone_test.losses"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a distribution from the source of its module and the names it declares."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = []

    def add(distribution, source, version="1.0", **names):
        module = distribution.replace("-", "_") + "_plugin"
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"{name.replace('_', '-')} = {module}:{target}" for name, target in names.items()]
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n" + "\n".join(lines) + "\n")
        importlib.invalidate_caches()
        modules.append(module)
        return module

    yield add
    for module in modules:
        sys.modules.pop(module, None)


GOOD = '''
class Loss:
    """Counts errors.

    More of it.
    """

    def __init__(self, scale: float = 1.0, *, margin: float = 0.0) -> None:
        self.scale, self.margin = scale, margin

class Strict:
    def __init__(self, size): self.size = size

def make(**options): return options

NUMBER = 3
'''


@pytest.fixture
def losses():
    return Registry("loss", GROUP)


def test_names_are_sorted_and_import_nothing(install, losses):
    good = install("good", GOOD, ottc="Loss", ctc="Strict")
    broken = install("broken", "raise RuntimeError('imported')", bad="Loss")
    assert losses.names() == ["bad", "ctc", "ottc"]
    assert good not in sys.modules
    assert broken not in sys.modules


def test_get_imports_one_plugin_and_build_calls_it(install, losses):
    good = install("good", GOOD, ottc="Loss")
    other = install("other", GOOD, ctc="Loss")
    built = losses.build("ottc", scale=2.0)
    assert losses.get("ottc") is type(built)
    assert built.scale == 2.0
    assert good in sys.modules
    assert other not in sys.modules


def test_an_unknown_name_lists_what_there_is_and_the_nearest(install, losses):
    install("good", GOOD, ottc="Loss", ctc="Loss")
    with pytest.raises(UnknownPlugin) as error:
        losses.build("otc")
    assert str(error.value) == "No loss named 'otc'. Did you mean 'ottc'? Installed: ctc, ottc."
    with pytest.raises(UnknownPlugin, match=r"^No loss named 'zzz'\. Installed: ctc, ottc\.$"):
        losses.get("zzz")
    with pytest.raises(LookupError, match="Installed: none"):
        Registry("head", "isotone_test.heads").get("x")


def test_a_broken_plugin_harms_only_those_who_ask_for_it(install, losses):
    install("good", GOOD, ottc="Loss")
    install("broken", "import a_module_that_is_not_there", version="0.3", bad="Loss")
    install("quits", "raise SystemExit(1)", quits="Loss")
    install("hollow", "x = 1", hollow="Loss")
    assert losses.build("ottc").scale == 1.0
    with pytest.raises(BrokenPlugin) as error:
        losses.build("bad")
    assert str(error.value) == (
        "The loss 'bad' (broken_plugin:Loss, from broken 0.3) did not import: "
        "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"
    )
    assert isinstance(error.value.__cause__, ModuleNotFoundError)
    with pytest.raises(BrokenPlugin, match="SystemExit: 1"):
        losses.get("quits")
    with pytest.raises(ImportError, match="AttributeError"):
        losses.get("hollow")


def test_something_that_cannot_be_called_is_a_broken_plugin(install, losses):
    install("good", GOOD, number="NUMBER")
    with pytest.raises(BrokenPlugin, match="is a int, which cannot be built"):
        losses.build("number")


def test_two_distributions_that_claim_a_name_are_both_named(install, losses):
    install("one", GOOD, ottc="Loss", ctc="Loss")
    install("two", GOOD, version="2.0", ottc="Loss")
    assert losses.names() == ["ctc", "ottc"]
    assert losses.build("ctc").scale == 1.0
    with pytest.raises(DuplicatePlugin) as error:
        losses.build("ottc")
    for part in ("'ottc'", "one_plugin:Loss, from one 1.0", "two_plugin:Loss, from two 2.0", "uninstall one"):
        assert part in str(error.value)


def test_options_are_checked_before_the_call(install, losses):
    install("good", GOOD, ottc="Loss", strict="Strict", any="make")
    with pytest.raises(OptionError) as error:
        losses.build("ottc", scal=2.0)
    assert (
        str(error.value)
        == "The loss 'ottc' has no option 'scal'. Did you mean 'scale'? It takes: scale, margin."
    )
    with pytest.raises(
        TypeError, match=r"The loss 'strict': missing a required argument: 'size'. It takes: size."
    ):
        losses.build("strict")
    assert losses.build("strict", 5).size == 5
    assert losses.build("any", anything=1) == {"anything": 1}


@pytest.mark.parametrize(
    ("option", "good", "bad", "expected"),
    [
        ("count", [1, None], ["two", 2.0, True, [1]], "a whole number or null"),
        ("share", [1, 0.5, np.float32(1)], ["1e-3", None, False], "a number"),
        ("on", [True, False], ["no", 1], "true or false"),
        ("path", ["a", Path("a")], [3], "a text"),
        ("other", ["a", [1], None], [], ""),
    ],
)
def test_an_option_of_a_wrong_type_is_named(losses, option, good, bad, expected):
    @losses.register("typed")
    class Typed:
        def __init__(
            self,
            count: int | None = 1,
            share: float = 1.0,
            on: bool = True,
            path: str = "",
            other: object = 0,
        ) -> None: ...

    for value in good:
        losses.create({"name": "typed", option: value})
    for value in bad:
        with pytest.raises(OptionError) as error:
            losses.create({"name": "typed", option: value})
        takes = "It takes: count, share, on, path, other."
        assert (
            str(error.value) == f"The loss 'typed' expects {option} to be {expected}; got {value!r}. {takes}"
        )
    with pytest.raises(OptionError, match="named by a text; got 3"):
        losses.create({"name": 3})


def test_an_option_that_a_constructor_cannot_take_is_named(losses):
    @losses.register("sums")
    class Sums:
        def __init__(self, weights=()):
            sum(weights)

    with pytest.raises(
        OptionError,
        match=r"'sums' cannot be made with {'weights': \['a'\]}: unsupported .* It takes: weights\.",
    ):
        losses.build("sums", weights=["a"])


def test_an_error_inside_a_constructor_is_not_taken_for_a_bad_option(losses):
    @losses.register("picky")
    class Picky:
        def __init__(self, size=1):
            raise TypeError("from inside")

    with pytest.raises(TypeError, match=r"^from inside$") as error:
        losses.build("picky")
    assert not isinstance(error.value, OptionError)


def test_create_takes_a_name_or_a_mapping(install, losses):
    install("good", GOOD, ottc="Loss")
    assert losses.create("ottc", scale=3.0).scale == 3.0
    spec = {"name": "ottc", "scale": 4.0}
    assert losses.create(spec, margin=1.0).margin == 1.0
    assert spec == {"name": "ottc", "scale": 4.0}
    with pytest.raises(OptionError, match=r"A loss in a configuration needs a 'name'; got {'scale': 4.0}"):
        losses.create({"scale": 4.0})
    with pytest.raises(OptionError, match="is a name or a mapping; got None"):
        losses.create(None)
    with pytest.raises(OptionError, match="The loss option 'scale' is set by the program"):
        losses.create(spec, scale=5.0)


def test_register_never_overwrites(install, losses):
    install("good", GOOD, ottc="Loss")

    @losses.register("mine")
    class Mine:
        """My own."""

    assert losses.get("mine") is Mine
    assert losses.names() == ["mine", "ottc"]
    with pytest.raises(
        DuplicatePlugin, match=r"There is already a loss named 'mine' \(.*Mine\): choose another"
    ):
        losses.register("mine")(type("Other", (), {}))
    with pytest.raises(DuplicatePlugin, match=r"There is already a loss named 'ottc' .*from good 1.0"):
        losses.register("ottc")(Mine)
    assert losses.get("mine") is Mine
    assert losses.get("ottc") is not Mine


def test_a_notebook_cell_can_be_run_again(losses):
    def cell():
        return type("Loss", (), {"__module__": "__main__", "__qualname__": "Loss"})

    losses.register("mine")(cell())
    second = losses.register("mine")(cell())
    assert losses.get("mine") is second


def test_describe_lists_all_and_why_some_do_not_import(install, losses):
    install("good", GOOD, version="1.2", ottc="Loss")
    install("broken", "import a_module_that_is_not_there", bad="Loss")
    install("one", GOOD, twice="Loss")
    install("two", GOOD, twice="Loss")

    @losses.register("mine")
    class Mine:
        pass

    rows = {row.name: row for row in losses.describe()}
    assert list(rows) == ["bad", "mine", "ottc", "twice"]
    good = rows["ottc"]
    assert (good.kind, good.target, good.distribution, good.version) == (
        "loss",
        "good_plugin:Loss",
        "good",
        "1.2",
    )
    assert (good.summary, good.error) == ("Counts errors.", None)
    assert "No module named 'a_module_that_is_not_there'" in rows["bad"].error
    assert rows["bad"].distribution == "broken"
    assert "claimed by" in rows["twice"].error
    assert rows["mine"].distribution == "(this process)"
    assert rows["mine"].error is None


def test_describe_reads_sources_without_importing(install, losses):
    install(
        "careful",
        'raise RuntimeError("imported")\n\nclass Loss:\n    """Counts errors.\n\n    More."""\n',
        a="Loss",
    )
    install("indirect", "from functools import partial as Loss\n", b="Loss")
    install("two", GOOD, twice="Loss")
    install("three", GOOD, twice="Loss")
    rows = {row.name: row for row in losses.describe(check=False)}
    assert (rows["a"].summary, rows["a"].target, rows["a"].error) == (
        "Counts errors.",
        "careful_plugin:Loss",
        None,
    )
    assert rows["b"].summary.startswith("partial(")  # where the source does not tell, the import does
    assert "claimed by" in rows["twice"].error
    assert "RuntimeError: imported" in next(r for r in losses.describe() if r.name == "a").error


def test_nearest_suggests_only_what_is_near():
    assert nearest("tetxgrid", ["textgrid", "ctm"]) == " Did you mean 'textgrid'?"
    assert nearest("zzz", ["textgrid", "ctm"]) == ""


def test_the_registries_import_neither_plugins_nor_torch():
    code = """
        import sys
        import isotone
        for registry in (isotone.formats, isotone.losses, isotone.aligners):
            assert registry.names() is not None
        prefixes = ("isotone_ctc", "isotone_ottc", "isotone.format")
        found = [m for m in sys.modules if m == "torch" or m.startswith(prefixes)]
        print(found)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert run.stdout.strip() == "[]", run.stdout + run.stderr


def test_every_declared_format_imports():
    import isotone

    rows = isotone.formats.describe()
    assert [row.name for row in rows if row.error] == []
    assert {"textgrid", "ctm", "json", "srt", "vtt", "audacity", "elan", "csv", "timit"} <= {
        row.name for row in rows
    }


def test_a_class_of_this_process_can_be_removed_again(install, losses):
    install("good", GOOD, ottc="Loss")
    losses.register("mine")(dict)
    losses.unregister("mine")
    assert losses.names() == ["ottc"]
    for name in ("mine", "ottc"):
        with pytest.raises(UnknownPlugin, match=f"No loss named '{name}' was registered in this process"):
            losses.unregister(name)


def test_a_plugin_that_is_not_of_the_interface_is_refused() -> None:
    registry = Registry("number", "isotone.tests.numbers", "numbers:Number")
    with registered(registry, "two", lambda: 2):
        assert registry.build("two") == 2
    with (
        registered(registry, "word", lambda: "two"),
        pytest.raises(BrokenPlugin, match=r"builtins\.str\) is no Number"),
    ):
        registry.build("word")


@pytest.mark.parametrize(
    ("registry", "interface"),
    [(isotone.losses, "Loss"), (isotone.heads, "Head"), (isotone.formats, "Format")],
)
def test_what_a_recipe_names_is_of_its_interface(registry: Registry[object], interface: str) -> None:
    """Before, a loss that is none failed in torch, a head in the loss, and a format in a worker."""

    class Other:
        """Something else."""

    with (
        registered(registry, "other", Other),
        pytest.raises(BrokenPlugin, match=rf"Other\) is no {interface}: make its class a subclass of"),
    ):
        registry.build("other")
