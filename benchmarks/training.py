"""The training loop on Wav2Vec2: ours, against the Trainer of transformers' CTC example on the same data.

Every call trains from scratch: the same encoder, batches, precision and learning rate; recordings of one length, so
that both make the same batches. With Wav2Vec2-tiny, set-up and the last checkpoint are included; with the large one, on
a GPU, the time is the median of a step. Ours reads its audio from disk; the example
has everything in memory, as ``run_speech_recognition_ctc.py`` does after its preprocessing. A vocabulary of 29 stands
for English letters, one of thousands for Chinese characters or subwords.
"""

from __future__ import annotations

import io
import itertools
import json
import shutil
import statistics
import string
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
import torch
from accelerate.state import AcceleratorState
from accelerate.utils import patch_environment

from benchmarks.harness import Bench, Peer, Size
from benchmarks.timing import synchronize
from isotone.corpus.folder import FolderCorpus
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.model.sources import resolve
from isotone.text.tokenizer import CharacterTokenizer
from isotone.training.config import Recipe, Training
from isotone.training.data import Utterances
from isotone.training.loop import Trainer
from isotone.training.objective import Objective
from isotone.training.processes import make_accelerator

_RATE = 16_000
# Of English letters with spaces, and of Chinese characters.
_LETTERS_A_SECOND, _CHARACTERS_A_SECOND = 14, 4
_SPECIAL = ["<pad>", "<unk>", "|"]
_LR = 1e-4
# Steps before those that are timed: the first ones choose algorithms and fill caches.
_WARM_UP = 4


class Folder:
    """A temporary folder that is deleted with the object."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class Work(NamedTuple):
    """A corpus on disk, its characters, what to train, and where."""

    corpus: Folder
    tokenizer: CharacterTokenizer
    steps: int
    batch: int
    encoder: str | dict[str, Any] = "wav2vec2-tiny"
    precision: str = "no"
    device: str = "cpu"

    def on(self, device: str) -> Work:
        return self._replace(device=device)


class Trained(NamedTuple):
    """The loss at the end, nats per token, and the median milliseconds of a step."""

    loss: float
    ms: float


def letters_of(vocab_size: int) -> CharacterTokenizer:
    """Make a tokenizer of so many labels, three of them special: letters, or else Chinese characters."""
    count = vocab_size - len(_SPECIAL)
    few = count <= len(string.ascii_lowercase)
    return CharacterTokenizer(
        [*_SPECIAL, *(string.ascii_lowercase[:count] if few else (chr(0x4E00 + i) for i in range(count)))]
    )


def inputs(dims: Mapping[str, int]) -> Work:
    """Write noise of so many seconds with random letters, B recordings per step; V tokens, three of them special."""
    rng = np.random.default_rng(0)
    folder = Folder()
    tokenizer = letters_of(dims["V"])
    alphabet = tokenizer.labels[len(_SPECIAL) :]
    few = len(alphabet) <= len(string.ascii_lowercase)
    size = dims["seconds"] * (_LETTERS_A_SECOND if few else _CHARACTERS_A_SECOND)
    for i in range(dims["B"] * 4):
        path = Path(folder.name, f"{i:04d}.flac")
        soundfile.write(path, 0.1 * rng.standard_normal(dims["seconds"] * _RATE), _RATE)
        drawn = rng.choice(alphabet, size)
        text = "".join(" " if few and i % 6 == 5 else c for i, c in enumerate(drawn))
        path.with_suffix(".txt").write_text(text, encoding="utf-8")
    return Work(folder, tokenizer, dims["steps"], dims["B"])


def ours(work: Work) -> float:
    return train(work, "ctc").loss


def ottc(work: Work) -> float:
    return train(work, "ottc").loss


@contextmanager
def _alone(device: str) -> Iterator[None]:
    """Let accelerate begin anew, on this device."""
    AcceleratorState._reset_state(reset_partial_state=True)
    with patch_environment(ACCELERATE_TORCH_DEVICE="cuda:0" if device == "cuda" else device):
        yield
    AcceleratorState._reset_state(reset_partial_state=True)


def _step_ms(ends: list[float]) -> float:
    """Return the median of the milliseconds between the ends of steps, but for the first ones."""
    steps = [1e3 * (end - before) for before, end in itertools.pairwise(ends)]
    return statistics.median(steps[_WARM_UP:] or steps)


class _Enough(Exception):
    """The last step is done, and its checkpoint is not wanted."""


def train(work: Work, name: str, *, saves: bool = True) -> Trained:
    """Train, and save the last checkpoint if ``saves``."""
    torch.manual_seed(0)
    reading = DecodingConfig(
        name, {"name": f"{name}-greedy"}, name, {"name": "ctc" if name == "ctc" else "segmental"}
    )
    model = Model(SpeechEncoder(work.encoder), {name: {"name": name}}, work.tokenizer, reading)
    objective = Objective(model, {name: {"head": name, "loss": {"name": name}, "weight": 1.0}})
    rows = FolderCorpus(work.corpus.name, test_share=0.0).load("train")
    settings: dict[str, Any] = {
        "steps": work.steps, "batch_size": work.batch, "lr": _LR, "save_every": 10**6, "trackers": ["none"],
        "precision": work.precision, "evaluate_every": 1,
        # files are read while a GPU computes; the CPU has nothing to spare
        "workers": 0 if work.device == "cpu" else 4,
    }  # fmt: skip
    ends: list[float] = []

    def stamp(step: int, model: Model) -> dict[str, float]:
        ends.append(time.perf_counter())
        if step == work.steps and not saves:
            raise _Enough
        return {}

    recipe = Recipe(train=Training(**settings))
    with tempfile.TemporaryDirectory() as folder:
        data = Utterances(rows, work.tokenizer, _RATE, frames=model.encoder.frames)
        with redirect_stdout(io.StringIO()), _alone(work.device):  # the progress bar
            accelerator = make_accelerator(recipe, Path(folder))
            with suppress(_Enough):
                Trainer(objective, data, recipe, Path(folder), stamp, accelerator).fit()
        rows_of = [json.loads(line) for line in Path(folder, "metrics.jsonl").read_text().splitlines()]
    return Trained(float([row["loss"] for row in rows_of if "loss" in row][-1]), _step_ms(ends))


def transformers_trainer(work: Work) -> float:
    return transformers_steps(work).loss


def transformers_steps(work: Work) -> Trained:
    """Run the loop of transformers' ``run_speech_recognition_ctc.py`` on the same encoder, data and batches."""
    import transformers
    from transformers import Trainer as TheirTrainer
    from transformers import TrainerCallback, TrainingArguments, Wav2Vec2FeatureExtractor, Wav2Vec2ForCTC

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    config, _ = resolve(work.encoder)
    config.vocab_size, config.pad_token_id, config.ctc_loss_reduction = (
        len(work.tokenizer),
        work.tokenizer.blank,
        "mean",
    )
    extractor = Wav2Vec2FeatureExtractor(return_attention_mask=True)
    examples = _examples(work, extractor)

    def collate(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        batch = extractor.pad(
            [{"input_values": r["input_values"]} for r in rows], padding=True, return_tensors="pt"
        )
        labels = [torch.tensor(r["labels"]) for r in rows]
        batch["labels"] = torch.nn.utils.rnn.pad_sequence(labels, batch_first=True, padding_value=-100)
        return dict(batch)

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            synchronize(work.device)
            ends.append(time.perf_counter())

    on_cpu = work.device == "cpu"
    with tempfile.TemporaryDirectory() as folder, _alone(work.device):
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=work.batch, max_steps=work.steps, learning_rate=_LR,
            weight_decay=0.01, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=on_cpu, logging_steps=1,
            remove_unused_columns=False, dataloader_pin_memory=not on_cpu, logging_strategy="no",
            bf16=work.precision == "bf16",
        )  # fmt: skip
        trainer = TheirTrainer(
            Wav2Vec2ForCTC(config),
            arguments,
            data_collator=collate,
            train_dataset=examples,
            callbacks=[Clock()],
        )
        with redirect_stdout(io.StringIO()):  # its summary
            done = trainer.train()
    return Trained(float(done.training_loss), _step_ms(ends))


def _examples(work: Work, extractor: Any) -> list[dict[str, Any]]:
    """Read the corpus as the example of transformers has it, in memory."""
    examples = []
    for path in sorted(Path(work.corpus.name).glob("*.flac")):
        values = extractor(soundfile.read(path, dtype="float32")[0], sampling_rate=_RATE).input_values[0]
        labels = list(work.tokenizer.encode(path.with_suffix(".txt").read_text(encoding="utf-8")).tokens)
        examples.append({"input_values": values, "labels": labels})
    return examples


def check(work: Work, loss: float) -> None:
    """Check that it learned something: random weights give log V or more per token."""
    assert np.isfinite(loss)
    assert 0 < loss < 20 * np.log(len(work.tokenizer))


def same(work: Work, mine: float, theirs: float) -> None:
    """Check that losses from other random weights are of the same order."""
    assert np.isfinite(theirs)
    assert 0.2 < mine / theirs < 5


def _sizes(ratio: Mapping[str, float]) -> list[Size]:
    def size(batch: int, seconds: int, tokens: int, steps: int, **options: Any) -> Size:
        return Size({"B": batch, "seconds": seconds, "V": tokens, "steps": steps}, **options)

    return [
        size(2, 1, 29, 2, quick=True),
        size(8, 2, 29, 16, swept=True),
        size(8, 4, 29, 12, targets=ratio, swept=True),
        size(8, 12, 29, 6, targets=ratio, swept=True),
        size(4, 24, 4000, 4, targets=ratio),
    ]


BENCHES = [
    Bench(
        name="training",
        about="training Wav2Vec2-tiny with CTC, from the files to the last step",
        inputs=inputs,
        ours=ours,
        check=check,
        peers=[Peer("transformers Trainer", transformers_trainer, same)],
        sizes=_sizes({"transformers Trainer": 1.0}),
        axis="seconds",
    ),
    Bench(
        name="training-ottc",
        about="the same with OTTC, against ours with CTC",
        inputs=inputs,
        ours=ottc,
        check=check,
        peers=[Peer("our CTC", ours, yardstick=True)],
        sizes=_sizes({"our CTC": 1 / 1.05}),
        axis="seconds",
    ),
]
