"""The estimator for uncoupled data."""
