"""Speech of English voices with known phones: synthesisers, scenes, and real speech labelled by a model."""
