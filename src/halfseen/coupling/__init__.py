"""Uncoupled data: from answers without names, and comparisons, to what the cells may hold.

Closed forms and sampled couplings. Their compiled loops run on the processor's threads; no engine is needed.
"""
