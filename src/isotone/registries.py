"""The registries, one per kind of plugin. Importing them imports no plugin and no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.registry import Registry

if TYPE_CHECKING:
    from isotone import interfaces as api

encoders: Registry[api.Encoder] = Registry("encoder", "isotone.encoders", "isotone.interfaces:Encoder")
heads: Registry[api.Head] = Registry("head", "isotone.heads", "isotone.interfaces:Head")
losses: Registry[api.Loss] = Registry("loss", "isotone.losses", "isotone.interfaces:Loss")
aligners: Registry[api.Aligner] = Registry("aligner", "isotone.aligners", "isotone.interfaces:Aligner")
decoders: Registry[api.Decoder] = Registry("decoder", "isotone.decoders", "isotone.interfaces:Decoder")
relaxations: Registry[api.Relaxation] = Registry("relaxation", "isotone.relaxations")
warpers: Registry[api.Warper] = Registry("warper", "isotone.warpers", "isotone.interfaces:Warper")
indexes: Registry[api.Index] = Registry("index", "isotone.indexes", "isotone.interfaces:Index")
searchers: Registry[api.Searcher] = Registry("searcher", "isotone.searchers", "isotone.interfaces:Searcher")
corpora: Registry[api.Corpus] = Registry("corpus", "isotone.corpora", "isotone.interfaces:Corpus")
formats: Registry[api.Format] = Registry("format", "isotone.formats", "isotone.interfaces:Format")
packs: Registry[api.ModelPack] = Registry(
    "pack",
    "isotone.models",
    "isotone.interfaces:ModelPack",
    facts=("title", "languages", "licence", "size_mb", "trained_on"),
)

ALL = (
    encoders,
    heads,
    losses,
    aligners,
    decoders,
    relaxations,
    warpers,
    indexes,
    searchers,
    corpora,
    formats,
    packs,
)
