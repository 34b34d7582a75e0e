"""Pages made and read back: headings, facts, paragraphs and tables, by the standard library alone."""

from html.parser import HTMLParser

import halfseen as hs


class Page(HTMLParser):
    """`tables` by caption, each a list of rows of texts, the heads first; `facts` by name; `headings` and `notes`."""

    VOID = ("meta", "link", "input", "br", "img")

    def __init__(self, html):
        super().__init__()
        self.tables, self.facts, self.headings, self.notes, self.alts, self.ids = {}, {}, [], [], [], []
        self._text, self._rows, self._open = "", [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.alts += [attributes["aria-label"]] if attributes.get("role") == "img" else []
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th", "caption", "dt", "dd", "h1", "h2", "h3", "p"):
            self._text = ""

    def handle_data(self, data):
        if "svg" not in self._open:
            self._text += data

    def handle_endtag(self, tag):
        assert self._open.pop() == tag, f"{tag} is not closed in order"
        if tag in ("td", "th"):
            self._rows[-1].append(self._text.strip())
        elif tag == "caption":
            self._caption, self._rows = self._text.strip(), []
        elif tag == "table":
            self.tables[self._caption] = self._rows
        elif tag == "dt":
            self._fact = self._text.strip()
        elif tag == "dd":
            self.facts[self._fact] = self._text.strip()
        elif tag in ("h1", "h2", "h3"):
            self.headings.append((tag, self._text.strip()))
        elif tag == "p":
            self.notes.append(self._text.strip())

    def handle_startendtag(self, tag, attributes):
        """Of drawings; nothing to read."""

    def numbers(self, caption):
        """The numbers of a table by the first field of each line, without their standard errors."""
        values = {row[0]: [field.partition(" ±")[0] for field in row[1:]] for row in self.tables[caption][1:]}
        return {name: [float(value.replace(",", "")) for value in row] for name, row in values.items()}


def page_of(*arguments, **options):
    """The page of a report, made and read back."""
    return Page(hs.make_report(*arguments, **options).html)


def split(X, unseen="missing"):
    """Training and test cells of data."""
    return hs.data.split_cells(X, 0.25, random_state=0, unseen=unseen)
