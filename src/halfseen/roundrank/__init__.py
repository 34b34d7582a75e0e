"""The theory of rounding: generalized round-rank, and which unseen levels are certain. Public name: `halfseen.rank`.

After "Compact Factorization of Matrices Using Generalized Round-Rank" (P. Pezeshkpour, 2018), whose numbers of
equations, theorems and sections are cited. GRF(x) counts the thresholds below x; the round-rank of levels Y is the
smallest rank of an X with GRF(X) = Y. Nothing is claimed without a proof that was checked in exact arithmetic: floating
point only proposes. Which claims of the thesis hold, and which do not: docs/methods.md.

Which file holds what; each uses only those above it:

    exact_rounding     GRF (Eq. 2.5), checks of levels and thresholds, the interval behind a level, levels of products
                       with fractions, certificates GRF(W H') = Y (Eq. 2.6)

Bounds on ranks (Chapter 2)

    outer_products     rank 1 decided: signs (proof in the module), sizes as linear inequalities, Motzkin's theorem
    planar_signs       rank 2 with the threshold 0 decided: arrangements of vectors in the plane (proof in the module)
    lower_bounds       Forster's theorem; shattered rows and columns (proof in `shattered_columns`); Lemma A.3; what of
                       them remains after any change of a few cells
    upper_bounds       unit vectors (Lemma A.1), truncated SVD, shifts (Lemmas 2.1.1 and 2.1.2), runs in some order of
                       the columns (proof in `run_factors`), search by L-BFGS on a squared hinge
    bounds             `round_rank` (Eq. 2.2 and 2.6) and `sign_rank` (Eq. 2.3) from all of these; Theorem 2.1.1;
                       `cells_needed` (Theorem 1.1.1)
    approximate_ranks  `epsilon_rank` (Eq. 2.20), `approximation_errors` (Theorem 2.2.2), and `approximate_rank`
                       (Eq. 2.21) for rounding, signs and sigmoids (Theorem 3.2.1)
    examples           `triangular`, `identity`, `band`: full linear rank, round-rank 1 or 2 (section 4.1)

Certainty of unseen cells (Chapter 3)

    chains             rank 1: exact ranges of levels by shortest paths in logarithms, signs by connected components
    independence       interval rows that are independent whatever the numbers (proof in the module): matrix games
    forcing            any rank: a level is forced if another would make r + 1 rows independent
    witnesses          other matrices with the same seen levels: linear programs (Eq. 3.4 and 3.7), a hit-and-run walk;
                       the thesis's conditions (Eq. 3.1 and 3.12, Theorems 3.1.1 and 3.1.2)
    certainty          `certainty`: reads model and data, uses the four above, gives each cell its verdict

Completion at rank one

    orders             `complete_by_orders`: the mean of all triangles, rows and columns in any order, that agree with
                       the seen cells, by Gibbs sampling
"""
