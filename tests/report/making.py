"""Pages made and read back, and cells held out of data."""

import halfseen as hs
from tests.report.reading import Page


def page_of(*arguments, **options):
    return Page(hs.make_report(*arguments, **options).html)


def parted(X, unseen="missing"):
    return hs.data.split_cells(X, 0.25, random_state=0, unseen=unseen)
