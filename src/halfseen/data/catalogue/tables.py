"""The tables with holes of Ghalamkari and Sugiyama (2022)."""

from __future__ import annotations

from halfseen.data.shelf import Download, Source, StoredFile, named

UCI_TERMS = "CC BY 4.0"
KAGGLE_TERMS = "see the Kaggle page"


def _uci(place: str) -> tuple[Download, ...]:
    return (Download(f"https://archive.ics.uci.edu/ml/machine-learning-databases/{place}"),)


#: In the order of Table 1 of Ghalamkari and Sugiyama (2022), without two that are not offered.
_TABLES = {
    "auto_mpg": Source(
        title="Auto MPG",
        address="https://archive.ics.uci.edu/dataset/9/auto+mpg",
        terms=UCI_TERMS,
        citation="Quinlan (1993), Combining instance-based and model-based learning, ICML, 236-243",
        size="398 x 8, 6 holes",
        downloads=_uci("auto-mpg/auto-mpg.data"),
        files=(
            StoredFile(
                "tabular/auto_mpg/auto-mpg.data", "48b830e11feee5572525f8f1691ddb9d38d3d7b7063edcd8fca672c2a5e17d8d"
            ),
        ),
    ),
    "sunspots_daily": Source(
        title="Daily sun spots 1818-2019",
        address="https://www.kaggle.com/datasets/abhinand05/daily-sun-spot-data-1818-to-2019",
        terms="SILSO: CC BY-NC 4.0",
        citation="SILSO, Royal Observatory of Belgium, Brussels: daily total sunspot number",
        size="73,718 x 9, 3,247 holes",
        files=(
            StoredFile(
                "tabular/sunspots_daily/sunspot_data.csv.gz",
                "970efe24646e04c96a749f42ef46b8ad385ff4d4ddc0778ce99ba8c37dd6d9cc",
            ),
        ),
    ),
    "california_housing": Source(
        title="California housing",
        address="https://www.kaggle.com/datasets/camnugent/california-housing-prices",
        terms="CC0",
        citation="Pace and Barry (1997), Sparse spatial autoregressions, Statistics & Probability Letters 33, 291-297",
        size="20,640 x 9, 207 holes",
        files=(
            StoredFile(
                "tabular/california_housing/housing.csv",
                "8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e",
            ),
        ),
    ),
    "big_mart": Source(
        title="Big Mart sales",
        address="https://www.kaggle.com/datasets/brijbhushannanda1979/bigmart-sales-data",
        terms="see the Kaggle and Analytics Vidhya pages",
        citation="Analytics Vidhya, Big Mart sales practice problem",
        size="8,523 x 5, 1,463 holes",
        files=(
            StoredFile(
                "tabular/big_mart/train.csv", "6f1b47d794ff393663517a075c3648baf413d0f1d687878b21c806d293ec2e41"
            ),
        ),
    ),
    "credit_approval": Source(
        title="Credit approval",
        address="https://archive.ics.uci.edu/dataset/27/credit+approval",
        terms=UCI_TERMS,
        citation="Quinlan (1987), Simplifying decision trees, Int. J. Man-Machine Studies 27, 221-234",
        size="690 x 7, 25 holes",
        downloads=_uci("credit-screening/crx.data"),
        files=(
            StoredFile(
                "tabular/credit_approval/crx.data",
                "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d",
            ),
        ),
    ),
    "human_resources": Source(
        title="Human resources analytics",
        address="https://www.kaggle.com/datasets/ludobenistant/hr-analytics",
        terms="base data CC BY-SA 4.0; the publisher of this variant in two files is not known",
        citation="Benistant, Human resources analytics, Kaggle",
        size="14,999 x 7, 54 holes",
        files=(
            StoredFile(
                "tabular/human_resources/hr_data.csv",
                "4458eb5f7c92be2c7baac2f138140060bc4d4d076097f288cadf52c2cd0d30a7",
            ),
            StoredFile(
                "tabular/human_resources/employee_satisfaction_evaluation.xlsx",
                "3d758d8d47c41c4747b1ce907380721b63ba46103e4564d81461135356d8ea1b",
            ),
        ),
    ),
    "heart_disease": Source(
        title="Heart disease (Cleveland)",
        address="https://archive.ics.uci.edu/dataset/45/heart+disease",
        terms=UCI_TERMS,
        citation="Detrano and others (1989), International application of a new probability algorithm for the "
        "diagnosis of coronary artery disease, American Journal of Cardiology 64, 304-310",
        size="303 x 14, 6 holes",
        downloads=_uci("heart-disease/processed.cleveland.data"),
        files=(
            StoredFile(
                "tabular/heart_disease/processed.cleveland.data",
                "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
            ),
        ),
    ),
    "lung_cancer": Source(
        title="Lung cancer",
        address="https://archive.ics.uci.edu/dataset/62/lung+cancer",
        terms=UCI_TERMS,
        citation="Hong and Yang (1991), Optimal discriminant plane for a small number of samples and design method of "
        "classifier on the plane, Pattern Recognition 24, 317-324",
        size="32 x 57, 5 holes",
        downloads=_uci("lung-cancer/lung-cancer.data"),
        files=(
            StoredFile(
                "tabular/lung_cancer/lung-cancer.data",
                "725a482ccc65f6a51403c9faacaf0c35c9572c9351e3e63df308d13c6ab6a5f0",
            ),
        ),
    ),
    "perth_house_prices": Source(
        title="Perth house prices",
        address="https://www.kaggle.com/datasets/syuzai/perth-house-prices",
        terms=KAGGLE_TERMS,
        citation="syuzai (2021), Perth house prices, Kaggle",
        size="33,656 x 14, 16,585 holes",
        files=(
            StoredFile(
                "tabular/perth_house_prices/all_perth_310121_without_date_sold.csv.gz",
                "229be51fff17322dfea36d466d7b1d8a6b0103c3d272d76401c7805215cf1408",
                others=(StoredFile("tabular/perth_house_prices/all_perth_310121.csv"),),  # as published
            ),
        ),
        hint="The file all_perth_310121.csv is read too, under its own name.",
    ),
    "sleep_mammals": Source(
        title="Sleep in mammals",
        address="https://lib.stat.cmu.edu/datasets/sleep",
        terms="public teaching data",
        citation="Allison and Cicchetti (1976), Sleep in mammals: ecological and constitutional correlates, "
        "Science 194, 732-734",
        size="62 x 8, 12 holes",
        hint='In R, write.csv(faraway::mammalsleep, "mammalsleep.csv", row.names = FALSE) writes it.',
        files=(
            StoredFile(
                "tabular/sleep_mammals/mammalsleep.csv",
                "d0b3c4e6221389e2f1d2a6dc538174256d56bc9c30153dbc71e57acf75550ad6",
            ),
        ),
    ),
    "arrhythmia": Source(
        title="Arrhythmia",
        address="https://archive.ics.uci.edu/dataset/5/arrhythmia",
        terms=UCI_TERMS,
        citation="Guvenir, Acar, Demiroz and Cekin (1997), A supervised machine learning algorithm for arrhythmia "
        "analysis, Computers in Cardiology 24, 433-436",
        size="452 x 280, 408 holes",
        downloads=_uci("arrhythmia/arrhythmia.data"),
        files=(
            StoredFile(
                "tabular/arrhythmia/arrhythmia.data",
                "a7f0f4ca289a4c58b5ed85a9adb793189acd38425828ce3dfbb70adb45f30169",
            ),
        ),
    ),
    "boston_housing": Source(
        title="Boston housing with gaps",
        address="https://www.kaggle.com/datasets/altavish/boston-housing-dataset",
        terms=KAGGLE_TERMS,
        citation="Harrison and Rubinfeld (1978), Hedonic housing prices and the demand for clean air, "
        "J. Environmental Economics and Management 5, 81-102",
        size="506 x 14, 120 holes",
        files=(
            StoredFile(
                "tabular/boston_housing/HousingData.csv",
                "4544dd2801f2eada9b2f160d9a6ca536bfa037e48ab69a668d1f71f8fb1a8b2a",
            ),
        ),
    ),
    "life_expectancy": Source(
        title="Life expectancy (WHO)",
        address="https://www.kaggle.com/datasets/kumarajarshi/life-expectancy-who",
        terms=KAGGLE_TERMS,
        citation="Kumar Rajarshi, Life expectancy (WHO), Kaggle",
        size="2,938 x 19, 2,563 holes",
        files=(
            StoredFile(
                "tabular/life_expectancy/life_expectancy_data.csv",
                "872125dd1dd0f9140fbead61df20585a815f5cf47db68f08bf54efaf87963b11",
            ),
        ),
    ),
    "hcc_survival": Source(
        title="HCC survival",
        address="https://archive.ics.uci.edu/dataset/423/hcc+survival",
        terms=UCI_TERMS,
        citation="Santos, Abreu, Garcia-Laencina, Simao and Carvalho (2015), A new cluster-based oversampling method "
        "for improving survival prediction of hepatocellular carcinoma patients, J. Biomedical Informatics 58, 49-59",
        size="165 x 50, 826 holes",
        downloads=_uci("00423/hcc-survival.zip"),
        files=(
            StoredFile(
                "tabular/hcc_survival/hcc-data.txt",
                "83c6594af06e9dce3bbf382996abab994d35e3894496439b60d19fed4a96594b",
            ),
        ),
    ),
    "wiki4he": Source(
        title="wiki4HE",
        address="https://archive.ics.uci.edu/dataset/334/wiki4he",
        terms=UCI_TERMS,
        citation="Meseguer-Artola, Aibar, Llados, Minguillon and Lerga (2015), Factors that influence the teaching use "
        "of Wikipedia in higher education, J. Association for Information Science and Technology 67, 1224-1232",
        size="913 x 53, 1,995 holes",
        downloads=_uci("00334/wiki4HE.csv"),
        files=(
            StoredFile(
                "tabular/wiki4he/wiki4HE.csv",
                "6581845f37bdf652713fb39c3bc9a492353fdc7ba84f4126801ea54883e27bb0",
                others=(  # between semicolons, as published
                    StoredFile(
                        "tabular/wiki4he/wiki4HE.csv",
                        "2270c9b4cc6a9492c740f2bd42a2fee23c7afab383ec31364b08365cc1d43ae2",
                    ),
                ),
            ),
        ),
    ),
}
TABULAR = named(_TABLES)
