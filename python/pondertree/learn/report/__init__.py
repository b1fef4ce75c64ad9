"""Reporting of a run: progress on the terminal, plots, sample games and the HTML page. Imports no PyTorch."""

from pondertree.learn.report.page import write_report
from pondertree.learn.report.progress import LineWatcher, PanelWatcher, Status, Watcher

__all__ = [
    "LineWatcher",
    "PanelWatcher",
    "Status",
    "Watcher",
    "write_report",
]
