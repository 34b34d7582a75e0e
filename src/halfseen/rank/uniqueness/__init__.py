"""What is certain of unseen cells (Chapter 3): proofs that a level is forced, and witnesses that it is not."""
