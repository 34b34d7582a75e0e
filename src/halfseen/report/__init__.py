"""The report: one page, in one file, of what was seen, how a fit went, what was found, and how good it is."""

from halfseen.report.making import Report, check_tools, make_report

__all__ = ["Report", "check_tools", "make_report"]
