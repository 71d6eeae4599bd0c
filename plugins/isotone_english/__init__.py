"""The English model pack: words and phones of English, offline and without espeak-ng."""

from isotone.interfaces import ModelPack

__all__ = ["English"]


class English(ModelPack):
    """Aligner and phone recogniser of English speech."""

    name = "english"
    title = "English, words and phones"
    languages = ("en",)
    licence = "Apache-2.0"
    size_mb = 5.2
    trained_on = "synthetic voices; two hours of read speech with transcripts alone"
