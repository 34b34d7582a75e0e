"""Sampling: factors, biases, thresholds and hyper-parameters drawn from their posterior, and models made of draws.

    normal_draws    compiled loops: latent values, rows of a factor, weights of features, thresholds
    factor_chain    one Markov chain: the two sides, their features, and what is observed
    diagnostics     length of a chain, split R-hat, effective number of draws
    sampled_model   chains run side by side, the draws that are kept, and the fitted model that answers from them

The first two import compiled code, and are imported when a fit begins.
"""
