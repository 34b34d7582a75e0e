"""Before anything is imported: let scikit-learn's estimator checks use the array API."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
