"""What `make docs` does beyond Markdown: formulas, pictures of targets, cards, pages from elsewhere in the repository."""
