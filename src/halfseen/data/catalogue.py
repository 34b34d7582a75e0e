"""The public data that can be loaded by name: where each comes from, its terms, whom to cite, its files."""

from __future__ import annotations

from halfseen.data.shelf import Source, StoredFile

UCI_TERMS = "CC BY 4.0"
KAGGLE_TERMS = "see the Kaggle page"
GROUPLENS_TERMS = "GroupLens: research use; no redistribution and no commercial use without permission"
MOVIELENS_PAPER = (
    "Harper and Konstan (2015), The MovieLens datasets: history and context, ACM Transactions on Interactive "
    "Intelligent Systems 5(4), 19"
)

#: In the order of Table 1 of Ghalamkari and Sugiyama (2022), without two that are not offered.
TABULAR = {
    "auto_mpg": Source(
        title="Auto MPG",
        address="https://archive.ics.uci.edu/dataset/9/auto+mpg",
        terms=UCI_TERMS,
        citation="Quinlan (1993), Combining instance-based and model-based learning, ICML, 236-243",
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
        files=(
            StoredFile(
                "tabular/credit_approval/crx.data", "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d"
            ),
        ),
    ),
    "human_resources": Source(
        title="Human resources analytics",
        address="https://www.kaggle.com/datasets/ludobenistant/hr-analytics",
        terms="base data CC BY-SA 4.0; the publisher of this variant in two files is not known",
        citation="Benistant, Human resources analytics, Kaggle",
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
        files=(
            StoredFile(
                "tabular/perth_house_prices/all_perth_310121_without_date_sold.csv.gz",
                "229be51fff17322dfea36d466d7b1d8a6b0103c3d272d76401c7805215cf1408",
            ),
        ),
    ),
    "sleep_mammals": Source(
        title="Sleep in mammals",
        address="https://lib.stat.cmu.edu/datasets/sleep",
        terms="public teaching data",
        citation="Allison and Cicchetti (1976), Sleep in mammals: ecological and constitutional correlates, "
        "Science 194, 732-734",
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
        files=(
            StoredFile(
                "tabular/arrhythmia/arrhythmia.data", "a7f0f4ca289a4c58b5ed85a9adb793189acd38425828ce3dfbb70adb45f30169"
            ),
        ),
    ),
    "boston_housing": Source(
        title="Boston housing with gaps",
        address="https://www.kaggle.com/datasets/altavish/boston-housing-dataset",
        terms=KAGGLE_TERMS,
        citation="Harrison and Rubinfeld (1978), Hedonic housing prices and the demand for clean air, "
        "J. Environmental Economics and Management 5, 81-102",
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
        files=(
            StoredFile(
                "tabular/hcc_survival/hcc-data.txt", "83c6594af06e9dce3bbf382996abab994d35e3894496439b60d19fed4a96594b"
            ),
        ),
    ),
    "wiki4he": Source(
        title="wiki4HE",
        address="https://archive.ics.uci.edu/dataset/334/wiki4he",
        terms=UCI_TERMS,
        citation="Meseguer-Artola, Aibar, Llados, Minguillon and Lerga (2015), Factors that influence the teaching use "
        "of Wikipedia in higher education, J. Association for Information Science and Technology 67, 1224-1232",
        files=(
            StoredFile(
                "tabular/wiki4he/wiki4HE.csv", "6581845f37bdf652713fb39c3bc9a492353fdc7ba84f4126801ea54883e27bb0"
            ),
        ),
    ),
}


def _movielens_100k(*files: StoredFile) -> Source:
    return Source(
        title="MovieLens 100K",
        address="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        terms=GROUPLENS_TERMS,
        citation=MOVIELENS_PAPER,
        files=files,
    )


#: Ratings and play counts: one cell a line.
RATINGS = {
    "movielens-100k": _movielens_100k(
        StoredFile("movielens-100k/u.data", "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490")
    ),
    "movielens-1m": Source(
        title="MovieLens 1M",
        address="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        terms=GROUPLENS_TERMS,
        citation=MOVIELENS_PAPER,
        files=(
            StoredFile(
                "movielens-1m/ratings.dat",
                others=(  # the same lines without their times
                    StoredFile(
                        "movielens-1m/ratings_notime.dat",
                        "2dad134c8b493373beed8d2a42e18ec2a93606fd957bd76c0bfbdef5c514b985",
                    ),
                ),
            ),
        ),
    ),
    "movielens-latest-small": Source(
        title="MovieLens latest-small (9/2018)",
        address="https://files.grouplens.org/datasets/movielens/ml-latest-small.zip",
        terms="GroupLens: research use; redistribution on the same terms only; no commercial use without permission",
        citation=MOVIELENS_PAPER,
        files=(
            StoredFile(
                "movielens-latest-small/ratings.csv",
                "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
                others=(  # with the line ends of Unix
                    StoredFile(
                        "movielens-latest-small/ratings.csv",
                        "80da8b3393dae325bbba5a31f291a6ba55d8d4f4396de3c456f2c1635b1b70e8",
                    ),
                ),
            ),
        ),
    ),
    "movielens-20m": Source(
        title="MovieLens 20M",
        address="https://files.grouplens.org/datasets/movielens/ml-20m.zip",
        terms=GROUPLENS_TERMS,
        citation=MOVIELENS_PAPER,
        files=(StoredFile("movielens-20m/ratings.csv"),),
    ),
    "movietweetings-100k": Source(
        title="MovieTweetings 100K",
        address="https://github.com/sidooms/MovieTweetings",
        terms="MIT licence",
        citation="Dooms, De Pessemier and Martens (2013), MovieTweetings: a movie rating dataset collected from "
        "Twitter, CrowdRec at RecSys",
        files=(
            StoredFile(
                "movietweetings-100k/ratings.dat", "c0dd868c2632d10002ebc928ddc5345f33adeaa59eca52c2941c26a2c5e36fd6"
            ),
        ),
    ),
    "lastfm-hetrec2011": Source(
        title="Last.fm play counts (HetRec 2011)",
        address="https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
        terms="non-commercial research; cite Last.fm too",
        citation="Cantador, Brusilovsky and Kuflik (2011), Second workshop on information heterogeneity and fusion in "
        "recommender systems, RecSys, 387-388",
        files=(
            StoredFile(
                "lastfm-hetrec2011/user_artists.dat", "254272fa721c3935e8be286d28c051b206844307128698ab4eaa41d483379416"
            ),
        ),
    ),
    "taste-profile": Source(
        title="Taste Profile (Echo Nest)",
        address="http://millionsongdataset.com/tasteprofile/",
        terms="research use; see the page",
        citation="Bertin-Mahieux, Ellis, Whitman and Lamere (2011), The million song dataset, ISMIR, 591-596",
        files=(StoredFile("taste-profile/train_triplets.txt"),),
    ),
}

#: The published splits of MovieLens 100K: the sha256 of training and test cells.
_SPLIT_DIGESTS = {
    "u1": (
        "ce253ec86c448b44fb3ba9a30d12dcfc2e9210cbde71efada3730c22e9ac212a",
        "18c6014a4b2c7324f250a63f8904a7b16b2b19f911129e346141507b0cbac950",
    ),
    "u2": (
        "6c06f0b5df4b256da1a994f3ac66edc8da4d3f09bc9282df6b14d893366d703e",
        "4de658d1e04ed9104629509a2e2528fce833ac8e048280183f1df167632038c3",
    ),
    "u3": (
        "afdc155c291c6edc41c0407e39d7462eb98d341e064f0b0a12175b80b3c4af5d",
        "0f548b51c78327de4c156461d3e430b7e5579fe2b5681586a59416e48fd35f6d",
    ),
    "u4": (
        "219f0f4d40dfe9c5141d425f53fa91ee23ed275f14e280bbf1b50117afb064ca",
        "7c02ad0a1e7ab1083c8b9d4b627203a051dd7b5eab46d99fa44de33470de8db9",
    ),
    "u5": (
        "a9574e59ce961eec2121627760b6e9b0974ce1637b3fe69ac32cb14a4bfab485",
        "351cc52e0d15b6c721466276fc24671d40936899e3d01fadeaf312915b8c5634",
    ),
    "ua": (
        "67b5bcdb380c29f85d56a012ecd88612ae020f30a6730d117a334ee8203b91f2",
        "d0497e202417720f57a184ec8c66be2d1afa4ff41bb53787c57b28d6bf79bc42",
    ),
    "ub": (
        "237254d253b6ad7de84f919d041055428646254f34ed8f562703c899430cd881",
        "d54a72d05730d5892062734b2bec73e976f9b713d18c828a18b968d6cce442da",
    ),
}

MOVIELENS_SPLITS = {
    split: _movielens_100k(
        *(StoredFile(f"movielens-100k/{split}.{part}", sha) for part, sha in zip(("base", "test"), both, strict=True))
    )
    for split, both in _SPLIT_DIGESTS.items()
}

SMALLNETFLIX = Source(
    title="smallnetflix",
    address="http://www.select.cs.cmu.edu/code/graphlab/datasets/",
    terms="Netflix prize: research use; no redistribution and no commercial use without permission",
    citation="Low, Bickson, Gonzalez, Guestrin, Kyrola and Hellerstein (2012), Distributed GraphLab: a framework for "
    "machine learning and data mining in the cloud, PVLDB 5(8), 716-727",
    files=(StoredFile("smallnetflix/smallnetflix_mm.train"), StoredFile("smallnetflix/smallnetflix_mm.validate")),
)

#: Mean ratings of kinds of things, made of ratings and of what is known of the things rated.
AVERAGES = {
    "movielens-genres": _movielens_100k(
        StoredFile("movielens-100k/u.data", "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"),
        StoredFile("movielens-100k/u.item", "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701"),
        StoredFile("movielens-100k/u.genre", "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb"),
    ),
    "sushi-groups": Source(
        title="SUSHI preference data",
        address="https://www.kamishima.net/sushi/",
        terms="any research use; no redistribution without permission",
        citation="Kamishima (2003), Nantonac collaborative filtering: recommendation based on order responses, KDD, "
        "583-588",
        files=(
            StoredFile(
                "sushi/sushi3b.5000.10.score", "4a600bbbdea7f75dc218e14776fa41228f9bd553842997ffe79c1227f3ec119d"
            ),
            StoredFile("sushi/sushi3.idata", "236677eda275e13c39e4e0dc3d1438fb878527f15b6efbbb9ca07a715b866926"),
        ),
    ),
}

#: Everything that has a name.
SOURCES = TABULAR | RATINGS | AVERAGES | {"smallnetflix": SMALLNETFLIX}
