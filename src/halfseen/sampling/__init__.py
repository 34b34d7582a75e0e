"""Sampling: one sampler of factors, and of what is observed of them, and models made of its draws.

    markov_chains   length of a chain, chains run side by side, what is kept of them, split R-hat, effective draws
    factor_chain    a Markov chain: the two sides, their features, hyper-parameters, and what is observed of x at cells
    normal_draws    its compiled loops: latent values, rows of a factor, weights of features, thresholds
    sampled_model   the draws that are kept of it, and the fitted model that answers from them
    coupling        uncoupled answers: which may belong to which cells, in what units, and the draws that are kept
    coupling_chain  a Markov chain: which answer belongs to which cell, factors, noise

Modules of chains and loops import compiled code, and are imported when a fit begins.
"""
