"""Skip what needs data that are not at hand."""

import pytest

from halfseen.studies import study


def needs_data_of(name, *only):
    """Skip a test unless the data of a study (or only these of them) are in the data folder."""
    absent = [one for one in study(name).absent() if not only or one in only]
    return pytest.mark.skipif(bool(absent), reason=f"not in the data folder: {', '.join(absent)}")
