"""The page on choosing the number of components shows what happens."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "rank.md"


def test_the_examples_of_the_page_run_one_after_the_other():
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["search"].best_n_components_ == 3
    seen = ~np.isnan(names["table"])
    np.testing.assert_array_equal(names["filled"][seen], names["table"][seen])
    assert not np.isnan(names["filled"]).any()
