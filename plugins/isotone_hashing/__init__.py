"""Binary codes that are learned for ranking, and indexes to search vectors and codes with."""
