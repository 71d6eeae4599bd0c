"""English pronunciations that travel with a model: a packed lexicon and a letter-to-sound model, from CMUdict."""
