"""What was really asked: rewriting, splitting, routing and filtering a question."""
