"""Tables 2 and 3 of the paper as they are printed."""

from typing import NamedTuple


class Printed(NamedTuple):
    """A row of a table, digit by digit: K, NDCG@100 by threshold s, and the log-likelihood where there is one."""

    K: str
    ndcg: tuple[str, ...]
    log_likelihood: str | None = None


#: Relevance thresholds on a scale from 1 to 10: half stars.
TABLE2_THRESHOLDS = (1, 4, 6, 8, 10)

#: By model and data. MovieLens 20M, 20,000 users by 12,000 films.
TABLE2 = {
    ("OrdNMF", "R"): Printed("150", ("0.444", "0.444", "0.439", "0.414", "0.353")),
    ("BePoF", "B (>= 1)"): Printed("50", ("0.433", "0.430", "0.421", "0.383", "0.310")),
    ("PF", "B (>= 1)"): Printed("100", ("0.431", "0.428", "0.418", "0.380", "0.306")),
    ("BePoF", "B (>= 8)"): Printed("50", ("0.389", "0.393", "0.399", "0.408", "0.369")),
    ("PF", "B (>= 8)"): Printed("150", ("0.386", "0.389", "0.395", "0.403", "0.365")),
}

#: Relevance thresholds in plays.
TABLE3_THRESHOLDS = (1, 3, 6, 11, 21, 51)

#: By model and data. Taste Profile, 16,000 users by 12,000 songs.
TABLE3 = {
    ("OrdNMF", "Q"): Printed("250", ("0.213", "0.174", "0.153", "0.135", "0.123", "0.117"), "-2.8e5"),
    ("dcPF", "R"): Printed("150", ("0.209", "0.173", "0.154", "0.137", "0.128", "0.121"), "-3.0e5"),
    ("BePoF", "B (>= 1)"): Printed("250", ("0.210", "0.170", "0.149", "0.131", "0.120", "0.115")),
    ("PF", "B (>= 1)"): Printed("250", ("0.206", "0.167", "0.146", "0.129", "0.118", "0.115")),
}
