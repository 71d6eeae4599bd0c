"""Export of models to plain transformers and to the hub, with a model card written from the run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from isotone.files import atomic_folder, atomic_write
from isotone.model import Model, ModelError
from isotone.model.encoder import SpeechEncoder
from isotone.model.fetch import CONFIG, model_folder
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Tokenizer
from isotone.text.transcript import write_json

CARD = "README.md"

#: Metrics of a result that a card shows.
METRICS = ("wer", "per", "peaky", "start_f1@20ms", "start_f1@50ms", "start_f1@200ms", "idr", "error_median")


def export_transformers(model: Model, folder: Path | str, head: str = "") -> None:
    """Write the encoder and one CTC head as a ``*ForCTC`` model of transformers with its processor.

    Its logits are the same. ``AutoModelForCTC``, ``AutoProcessor`` and the ``automatic-speech-recognition`` pipeline
    load it without isotone, and :meth:`isotone.model.Model.load` with it. Other heads are not exported.

    Args:
        model: A model with a transformers encoder.
        folder: Written whole or not at all.
        head: Name of the CTC head. Default: the head of the text.

    Raises:
        ModelError: transformers has no class for a part of the model; the message names it.
    """
    from transformers import AutoConfig, AutoModelForCTC

    name = head or model.decoding.text
    if name not in model.heads:
        raise ModelError(f"There is no head {name!r} to export; the model has {', '.join(model.heads)}.")
    if not isinstance(model.encoder, SpeechEncoder):
        raise ModelError(f"A {type(model.encoder).__name__} is no encoder of transformers.")
    config, part = model.encoder.model.config, model.heads[name]
    linear = getattr(part, "lm_head", None)
    reads = getattr(part, "reads", "last")
    if not isinstance(linear, nn.Linear) or reads != "last":
        raise ModelError(
            f"The head {name!r} ({model.head_specs[name]['name']}, reads {reads!r}) is not one linear layer over the "
            "last hidden states, which is what transformers' CTC models have."
        )
    if ahead := getattr(config, "lookahead_frames", 0):
        raise ModelError(
            f"This encoder looks {ahead} frames ahead, for the sake of its times, and transformers' "
            f"{config.model_type} cannot: its logits would be others. A model to export is trained with "
            "`encoder.source=wav2vec2-tiny`, with a published encoder, or with `encoder.config.lookahead_frames=0`."
        )
    config = AutoConfig.for_model(**config.to_dict())
    config.vocab_size, config.pad_token_id = len(model.tokenizer), model.tokenizer.blank
    config.final_dropout = float(model.head_specs[name].get("dropout", 0.1))
    theirs = AutoModelForCTC.from_config(config)
    theirs.base_model.load_state_dict(model.encoder.model.state_dict())
    theirs.lm_head.load_state_dict(linear.state_dict())
    with atomic_folder(folder) as target:
        theirs.save_pretrained(target)
        saved = json.loads((target / "config.json").read_text(encoding="utf-8"))
        model.encoder.save(
            target
        )  # for its preprocessor; it overwrites config.json with that of the bare encoder
        write_json(target / "config.json", saved)
        _write_tokenizer(model.tokenizer, target)
        bert = config.model_type == "wav2vec2-bert"
        processor = json.loads((target / "preprocessor_config.json").read_text(encoding="utf-8"))
        processor["processor_class"] = "Wav2Vec2BertProcessor" if bert else "Wav2Vec2Processor"
        write_json(target / "preprocessor_config.json", processor)


def _write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the tokenizer's files, for isotone and for transformers."""
    tokenizer.save(folder)
    if isinstance(tokenizer, CharacterTokenizer):
        return
    if not isinstance(tokenizer, PhoneTokenizer):
        raise ModelError(
            "transformers has no CTC tokenizer of SentencePiece's pieces: characters and phones go."
        )
    write_json(folder / "vocab.json", {label: i for i, label in enumerate(tokenizer.labels)})
    special = dict.fromkeys(("bos_token", "eos_token", "unk_token"))
    names = {"pad_token": tokenizer.labels[tokenizer.blank], **special, "word_delimiter_token": None}
    config = {"tokenizer_class": "Wav2Vec2PhonemeCTCTokenizer", "do_phonemize": False, **names}
    write_json(folder / "tokenizer_config.json", config)


def push_to_hub(
    source: Path | str, repository: str, *, private: bool = False, token: str | None = None
) -> str:
    """Upload a model, with its card, to the Hugging Face hub.

    Args:
        source: A run or model folder, or one of :func:`export_transformers`.
        repository: ``user/name``; created if needed.
        private: Make a new repository private.
        token: Token of the hub. Default: the one that ``huggingface-cli login`` stored.

    Returns:
        The model's URL.

    Raises:
        ModelError: there is no model in the folder.
        huggingface_hub.errors.HfHubHTTPError: the hub rejects the upload.
        ConnectionError: the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    folder = model_folder(source)
    if not any((folder / name).is_file() for name in (CONFIG, "config.json")):
        raise ModelError(
            f"{source} holds no model: expected {CONFIG} (isotone) or config.json (transformers)."
        )
    api = HfApi(token=token)
    try:
        url = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=str(folder), commit_message=f"Upload {repository}")
    except (OSError, ValueError):
        raise
    except (
        Exception
    ) as error:  # errors of the HTTP library, which differs between versions of the hub's client
        raise ConnectionError(
            f"{repository} was not uploaded, the hub could not be reached ({error}). Check the network and try again."
        ) from error
    return str(url)


def write_card(run: Path | str) -> Path:
    """Write the model card of a finished run, ``model/README.md``, from its configuration and result.

    Raises:
        FileNotFoundError: the run has no configuration or no model.
    """
    from omegaconf import OmegaConf

    run = Path(run)
    config = OmegaConf.to_container(OmegaConf.load(run / "config.yaml"), resolve=True)
    result_file = run / "result.json"
    result = json.loads(result_file.read_text(encoding="utf-8")) if result_file.is_file() else {}
    model = json.loads((run / "model" / CONFIG).read_text(encoding="utf-8"))
    path = run / "model" / CARD
    with atomic_write(path) as file:
        file.write(card(run.name, config if isinstance(config, dict) else {}, model, result))
    return path


def copy_card(run: Path | str, folder: Path | str) -> None:
    """Copy the run's model card, if there is one, to an exported model."""
    path = model_folder(run) / CARD
    if path.is_file():
        shutil.copyfile(path, Path(folder) / CARD)


def card(name: str, config: Mapping[Any, Any], model: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Make a model card in Markdown, with the hub's metadata.

    Args:
        name: Name of the model.
        config: The run's configuration; its ``card`` has licence, language and a description. Folders of the training
            machine are left out.
        model: ``isotone.json``.
        result: ``result.json``; empty without a test split.
    """
    facts = {k: v for k, v in (config.get("card") or {}).items() if v}
    data = {k: v for k, v in config["data"].items() if "/" not in str(v) and "\\" not in str(v)}
    train = config["train"]
    length = f"{train['steps']} steps" if train["steps"] else f"{train['epochs']} epochs"
    encoder = config["encoder"].get("source") or config["encoder"]["name"]
    lines = [
        "---",
        "library_name: isotone",
        f"license: {facts.get('license', 'unknown')}",
        f"language: {facts.get('language', 'en')}",
        "pipeline_tag: automatic-speech-recognition",
        "tags: [isotone, speech, forced-alignment, ctc]",
        "---",
        "",
        f"# {name}",
        "",
        facts.get(
            "description", "A speech recogniser whose time stamps can be trusted, trained with isotone."
        ),
        "",
        "## Use",
        "",
        "```sh",
        "pip install isotone",
        "isotone align speech.wav --text speech.txt --model MODEL",
        "isotone transcribe speech.wav --model MODEL --format srt",
        "```",
        "",
        "MODEL is this repository's id or a folder with its files. "
        + _reading(model["reading"], model["heads"]),
        "",
        "## Training",
        "",
        f"- Data: {_inline(data)}",
        f"- Units: {config['tokens']['unit']}",
        f"- Encoder: {encoder if isinstance(encoder, str) else encoder.get('model_type')}",
        f"- Objective: {'; '.join(_term(n, t) for n, t in config['objective'].items())}",
        f"- {length} of {train['batch_size']} utterances, learning rate {train['lr']:g}, seed {config['seed']}",
        f"- Data licence: {facts.get('data_license', 'see the corpus')}",
        "",
        "## Results",
        "",
        *_results(result),
    ]
    return "\n".join(lines) + "\n"


def _reading(reading: Mapping[str, Any], heads: Mapping[str, Any]) -> str:
    sources = {
        what: f"{what} from `{head}` ({heads[head]['name']})"
        for what in ("text", "times")
        if (head := reading.get(what))
    }
    if reading.get("rescore"):
        sources["text"] += ", both heads choosing among its hypotheses,"
    if beside := reading.get("beside"):
        sources["times"] += f", with {reading['share']:.0%} of `{beside}`"
    guided = f", tokens near where `{guide}` hears them" if (guide := reading.get("guide")) else ""
    return f"It reads {' and '.join(sources.values())}{guided}."


def _term(name: str, term: Mapping[str, Any]) -> str:
    return f"{name}: {term['weight']:g} x {_inline(term['loss'])}"


def _inline(values: Mapping[str, Any]) -> str:
    rest = ", ".join(f"{k} {v}" for k, v in values.items() if k != "name")
    return str(values["name"]) + (f" ({rest})" if rest else "")


def _results(result: Mapping[str, Any]) -> list[str]:
    rows = [
        f"| {part} | {m['metric']} | {m['value']:.2f} {m['unit']} | {_interval(m)} |"
        for part in ("recognised", "forced")
        if part in result
        for m in result[part]["metrics"]
        if m["metric"] in METRICS and m["value"] is not None
    ]
    if rows:
        head = "On the test split; `forced` are alignments of the known transcript. Intervals are bootstrapped, 95 %."
        return [head, "", "| | metric | value | interval |", "|---|---|---|---|", *rows]
    if "error_rate" in result:
        return [f"Error rate on the test split: {100 * result['error_rate']:.2f} %."]
    return ["None: the run had no test split."]


def _interval(metric: Mapping[str, Any]) -> str:
    known = metric["low"] is not None and metric["high"] is not None
    return f"{metric['low']:.2f} to {metric['high']:.2f}" if known else "-"
