"""What `make docs` does beyond Markdown: formulas, pictures of targets, cards, and pages from elsewhere."""
