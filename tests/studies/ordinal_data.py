"""Small sets in the published formats, made here, so that the studies of the OrdNMF paper run without the real ones."""

import numpy as np


def write_movielens_20m(folder, seed=0):
    """70 users by 60 films in two groups: users rate the films of their own group more often, and higher."""
    random = np.random.default_rng(seed)
    lines = ["userId,movieId,rating,timestamp"]
    for user in range(70):
        for film in range(60):
            own = user % 2 == film % 2
            if random.random() < (0.85 if own else 0.3):
                stars = random.integers(5 if own else 1, 11 if own else 8) / 2
                lines.append(f"{user + 1},{film + 100},{stars},1112486027")
    (folder / "movielens-20m").mkdir()
    (folder / "movielens-20m" / "ratings.csv").write_text("\n".join(lines) + "\n")


def write_taste_profile(folder, seed=0):
    """The same with songs and heavy-tailed play counts."""
    random = np.random.default_rng(seed)
    lines = []
    for user in range(70):
        for song in range(60):
            own = user % 2 == song % 2
            if random.random() < (0.85 if own else 0.3):
                plays = 1 + int(random.lognormal(3.0 if own else 1.0, 1.5))
                lines.append(f"user{user:x}\tSO{song:04d}\t{plays}")
    (folder / "taste-profile").mkdir()
    (folder / "taste-profile" / "train_triplets.txt").write_text("\n".join(lines) + "\n")
