import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

mpl.use("Agg")


@pytest.fixture
def ax():
    return Figure().add_subplot()
