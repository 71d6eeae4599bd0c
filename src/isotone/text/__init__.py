"""Text: normalising, tokenizing, pronouncing, and phone sets."""
