"""Studies that take no time."""

from dataclasses import replace

from halfseen.studies import Column, Goal, Picture, Result, Study, Table


class Small(Study):
    """A study that takes no time, under the name of a real one."""

    paper = "A paper"
    title = "What it shows"

    def __init__(self, name, failure=None):
        self.name, self.failure, self.runs = name, failure, []

    def compute(self, settings, progress):
        progress("at work")
        self.runs.append((settings.quick, settings.seed))
        if self.failure is not None:
            raise self.failure
        columns = [Column("data"), Column("paper", "error"), Column("ours", "error", ".2f")]
        tables = [
            Table("First", columns, [["x", "0.12", 0.123456789], ["y", "3", None]], ["(1) A footnote [sic]."], "a"),
            Table("Second", columns[:1], [["z"]], name="b"),
        ]
        return Result("All in all.", tables, [Picture("p", "A picture", lambda figure: figure.text(0.5, 0.5, "drawn"))])


class Judged(Small):
    """A study that has goals."""

    def __init__(self, name, *reached):
        super().__init__(name)
        self.reached = reached

    def compute(self, settings, progress):
        goals = [Goal.claim(f"goal {number}", is_reached) for number, is_reached in enumerate(self.reached)]
        return replace(super().compute(settings, progress), goals=goals)
