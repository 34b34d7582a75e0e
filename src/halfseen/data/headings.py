"""The names of the columns of public files: all that a file without a header line has, or the ones that are kept.

Files without a header line: as the descriptions of the data name them.
"""

from __future__ import annotations

AUTO_MPG = ("mpg", "cylinders", "displacement", "horsepower", "weight", "acceleration", "model year", "origin")

SUNSPOTS_DAILY = (
    "Year", "Month", "Day", "Date In Fraction Of Year", "Number of Sunspots", "Standard Deviation", "Observations",
    "Indicator",
)  # fmt: skip

CALIFORNIA_HOUSING = (
    "longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms", "population", "households",
    "median_income", "median_house_value",
)  # fmt: skip

BIG_MART = ("Item_Weight", "Item_Visibility", "Item_MRP", "Outlet_Establishment_Year", "Item_Outlet_Sales")

CREDIT_APPROVAL = tuple(f"A{number}" for number in range(1, 17))

CREDIT_CONTINUOUS = ("A2", "A3", "A8", "A11", "A14", "A15")

EMPLOYEES = (
    "employee_id", "number_project", "average_montly_hours", "time_spend_company", "Work_accident",
    "promotion_last_5years",
)  # fmt: skip

EVALUATIONS = ("EMPLOYEE #", "satisfaction_level", "last_evaluation")

HEART_DISEASE = (
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal",
    "num",
)  # fmt: skip

LUNG_CANCER = tuple(f"A{number}" for number in range(1, 58))  # A1 is the class, the others are not named anywhere

PERTH_HOUSE_PRICES = (
    "PRICE", "BEDROOMS", "BATHROOMS", "GARAGE", "LAND_AREA", "FLOOR_AREA", "BUILD_YEAR", "CBD_DIST",
    "NEAREST_STN_DIST", "POSTCODE", "LATITUDE", "LONGITUDE", "NEAREST_SCH_DIST", "NEAREST_SCH_RANK",
)  # fmt: skip

SLEEP_MAMMALS = ("body", "brain", "sleep", "lifespan", "gestation", "predation", "exposure", "danger")

LIFE_EXPECTANCY = (
    "Life expectancy", "Adult Mortality", "infant deaths", "Alcohol", "percentage expenditure", "Hepatitis B",
    "Measles", "BMI", "under-five deaths", "Polio", "Total expenditure", "Diphtheria", "HIV/AIDS", "GDP", "Population",
    "thinness 1-19 years", "thinness 5-9 years", "Income composition of resources", "Schooling",
)  # fmt: skip

HCC_SURVIVAL = (
    "Gender", "Symptoms", "Alcohol", "HBsAg", "HBeAg", "HBcAb", "HCVAb", "Cirrhosis", "Endemic", "Smoking", "Diabetes",
    "Obesity", "Hemochro", "AHT", "CRI", "HIV", "NASH", "Varices", "Spleno", "PHT", "PVT", "Metastasis", "Hallmark",
    "Age", "Grams/day", "Packs/year", "PS", "Encephalopathy", "Ascites", "INR", "AFP", "Hemoglobin", "MCV",
    "Leucocytes", "Platelets", "Albumin", "Total Bil", "ALT", "AST", "GGT", "ALP", "TP", "Creatinine", "Nodules",
    "Major Dim", "Dir. Bil", "Iron", "Sat", "Ferritin", "Class",
)  # fmt: skip

_CHANNELS = ("DI", "DII", "DIII", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6")
_SHAPES = (
    "Q width", "R width", "S width", "R' width", "S' width", "intrinsic deflections", "ragged R", "diphasic R",
    "ragged P", "diphasic P", "ragged T", "diphasic T",
)  # fmt: skip
_AMPLITUDES = ("JJ", "Q", "R", "S", "R'", "S'", "P", "T", "QRSA", "QRSTA")

ARRHYTHMIA = (
    "Age", "Sex", "Height", "Weight", "QRS duration", "P-R interval", "Q-T interval", "T interval", "P interval",
    "QRS angle", "T angle", "P angle", "QRST angle", "J angle", "Heart rate",
    *(f"{channel} {shape}" for channel in _CHANNELS for shape in _SHAPES),
    *(f"{channel} {wave} amplitude" for channel in _CHANNELS for wave in _AMPLITUDES),
    "Class",
)  # fmt: skip
