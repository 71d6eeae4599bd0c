"""Contrastive losses on two views, from linear assignments, and QARe, their regulariser from quadratic ones."""
