"""What happened: events, canonical bytes, the book, payloads, chain and package of one case."""
