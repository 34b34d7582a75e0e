"""Reports: one self-contained HTML page on the data, the fit, what it found and how good it is."""

from halfseen.report.build import Report, check_tools, make_report

__all__ = ["Report", "check_tools", "make_report"]
