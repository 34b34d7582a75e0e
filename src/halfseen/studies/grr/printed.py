"""The thesis's Tables 4.1 to 4.4 as they are printed, digit by digit."""

from typing import NamedTuple

#: Tables 4.1 to 4.3: what share of all cells is for training.
PROPORTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

LINEAR, SIGMOID, SIGMOID_FIXED = "Linear", "Multi-sigmoid", "Multi-sigmoid, fixed τ"
ROUND, ROUND_FIXED = "Round", "Round, fixed τ"

#: RMSE at each proportion, by row.
Rows = dict[str, tuple[str, ...]]

TABLE4_1: Rows = {
    LINEAR: ("0.50", "0.50", "0.50", "0.50", "0.50", "0.50", "0.50", "0.50"),
    SIGMOID: ("0.51", "0.30", "0.25", "0.25", "0.26", "0.25", "0.23", "0.23"),
    SIGMOID_FIXED: ("0.58", "0.37", "0.36", "0.36", "0.35", "0.35", "0.34", "0.34"),
    ROUND: ("0.46", "0.34", "0.27", "0.25", "0.26", "0.21", "0.20", "0.16"),
    ROUND_FIXED: ("0.38", "0.26", "0.23", "0.19", "0.15", "0.13", "0.15", "0.13"),
}
TABLE4_2: Rows = {
    LINEAR: ("0.49", "0.46", "0.46", "0.46", "0.46", "0.46", "0.46", "0.46"),
    SIGMOID: ("0.39", "0.26", "0.23", "0.23", "0.22", "0.21", "0.20", "0.20"),
    SIGMOID_FIXED: ("0.48", "0.49", "0.33", "0.31", "0.30", "0.29", "0.29", "0.29"),
    ROUND: ("0.71", "0.41", "0.35", "0.29", "0.29", "0.27", "0.23", "0.22"),
    ROUND_FIXED: ("0.61", "0.57", "0.39", "0.52", "0.58", "0.30", "0.29", "0.34"),
}
TABLE4_3: Rows = {
    LINEAR: ("1.73", "1.06", "0.97", "0.90", "0.85", "0.85", "0.87", "0.83"),
    SIGMOID: ("1.92", "0.53", "0.48", "0.42", "0.39", "0.38", "0.36", "0.35"),
    SIGMOID_FIXED: ("1.96", "1.54", "1.37", "1.32", "1.29", "1.28", "1.25", "1.23"),
    ROUND: ("1.49", "0.92", "0.60", "0.48", "0.48", "0.39", "0.30", "0.28"),
    ROUND_FIXED: ("2.44", "1.50", "1.50", "1.43", "1.36", "1.39", "1.44", "1.34"),
}


class Printed(NamedTuple):
    """A row of Table 4.4: the number of components, as printed, and the RMSE."""

    k: str
    rmse: str


TABLE4_4 = {
    "APG": Printed("70", "1.037"),
    "AIS-Impute": Printed("70", "1.037"),
    "CWOCFI": Printed("10", "1.01"),
    ROUND: Printed("10", "1.007"),
    LINEAR: Printed("10", "0.995"),
    "UCMF": Printed("-", "0.948"),
    SIGMOID: Printed("10", "0.928"),
    "SVDPlusPlus": Printed("10", "0.911"),
    "SIAFactorModel": Printed("10", "0.908"),
    "GG": Printed("30", "0.907"),
}
