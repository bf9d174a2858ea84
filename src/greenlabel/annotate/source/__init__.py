"""What is labelled: a table with its features, pictures and texts, the demo, and how the outcome is saved."""
