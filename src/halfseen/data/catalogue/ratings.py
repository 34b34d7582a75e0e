"""Ratings and play counts, and means of them."""

from __future__ import annotations

from halfseen.data.shelf import Download, Source, StoredFile, named

GROUPLENS = "https://files.grouplens.org/datasets"
GROUPLENS_TERMS = "GroupLens: research use; no redistribution and no commercial use without permission"
MOVIELENS_PAPER = (
    "Harper and Konstan (2015), The MovieLens datasets: history and context, ACM Transactions on Interactive "
    "Intelligent Systems 5(4), 19"
)


def _movielens_100k_file(name: str, sha256: str) -> StoredFile:
    return StoredFile(f"movielens-100k/{name}", sha256)


_U_DATA = _movielens_100k_file("u.data", "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490")
_U_ITEM = _movielens_100k_file("u.item", "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701")
_U_GENRE = _movielens_100k_file("u.genre", "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb")
_U_README = _movielens_100k_file("README", "4883b8cf340ed0059971b33f56ad3adc88a40792108ebca3d24aafc4c82e8b52")

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
_SPLIT_FILES = {
    split: tuple(_movielens_100k_file(f"{split}.{part}", sha) for part, sha in zip(("base", "test"), both, strict=True))
    for split, both in _SPLIT_DIGESTS.items()
}


def _movielens_100k(*files: StoredFile, size: str = "", what: str = "") -> Source:
    """What is made of some files of MovieLens 100K; all that come in its archive are kept when it is fetched."""
    return Source(
        title=f"MovieLens 100K{what}",
        address="https://grouplens.org/datasets/movielens/100k/",
        terms=GROUPLENS_TERMS,
        citation=MOVIELENS_PAPER,
        files=files,
        name="movielens-100k",
        size=size,
        downloads=(Download(f"{GROUPLENS}/movielens/ml-100k.zip"),),
        extras=(_U_DATA, _U_ITEM, _U_GENRE, _U_README, *(file for both in _SPLIT_FILES.values() for file in both)),
    )


#: Ratings and play counts: one cell a line.
_RATINGS = {
    "movielens-100k": _movielens_100k(_U_DATA, size="943 x 1,682, 100,000 ratings"),
    "movielens-1m": Source(
        title="MovieLens 1M",
        address="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        terms=GROUPLENS_TERMS,
        citation=MOVIELENS_PAPER,
        size="6,040 x 3,706, 1,000,209 ratings",
        downloads=(
            Download(
                f"{GROUPLENS}/movielens/ml-1m.zip",
                "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
            ),
        ),
        files=(
            StoredFile(
                "movielens-1m/ratings.dat",
                "506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f",
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
        size="610 x 9,724, 100,836 ratings",
        downloads=(
            Download(
                f"{GROUPLENS}/movielens/ml-latest-small.zip",
                "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
            ),
        ),
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
        size="138,493 x 26,744, 20,000,263 ratings",
        downloads=(
            Download(
                f"{GROUPLENS}/movielens/ml-20m.zip",
                "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
            ),
        ),
        files=(StoredFile("movielens-20m/ratings.csv"),),
    ),
    "movietweetings-100k": Source(
        title="MovieTweetings 100K",
        address="https://github.com/sidooms/MovieTweetings",
        terms="MIT licence",
        citation="Dooms, De Pessemier and Martens (2013), MovieTweetings: a movie rating dataset collected from "
        "Twitter, CrowdRec at RecSys",
        size="16,554 x 10,506, 100,000 ratings",
        downloads=(
            Download("https://raw.githubusercontent.com/sidooms/MovieTweetings/master/snapshots/100K/ratings.dat"),
        ),
        files=(
            StoredFile(
                "movietweetings-100k/ratings.dat",
                "c0dd868c2632d10002ebc928ddc5345f33adeaa59eca52c2941c26a2c5e36fd6",
            ),
        ),
    ),
    "lastfm-hetrec2011": Source(
        title="Last.fm play counts (HetRec 2011)",
        address="https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
        terms="non-commercial research; cite Last.fm too",
        citation="Cantador, Brusilovsky and Kuflik (2011), Second workshop on information heterogeneity and fusion in "
        "recommender systems, RecSys, 387-388",
        size="1,892 x 17,632, 92,834 play counts",
        downloads=(Download(f"{GROUPLENS}/hetrec2011/hetrec2011-lastfm-2k.zip"),),
        files=(
            StoredFile(
                "lastfm-hetrec2011/user_artists.dat",
                "001400dc3c7d2667fca6e4ea6dc6acc31a9dd28ad5cd0f74cea988c019934d3b",
                others=(  # with the line ends of Unix
                    StoredFile(
                        "lastfm-hetrec2011/user_artists.dat",
                        "254272fa721c3935e8be286d28c051b206844307128698ab4eaa41d483379416",
                    ),
                ),
            ),
        ),
    ),
    "taste-profile": Source(
        title="Taste Profile (Echo Nest)",
        address="http://millionsongdataset.com/tasteprofile/",
        terms="research use; see the page",
        citation="Bertin-Mahieux, Ellis, Whitman and Lamere (2011), The million song dataset, ISMIR, 591-596",
        size="1,019,318 x 384,546, 48,373,586 play counts",
        downloads=(Download("http://millionsongdataset.com/sites/default/files/challenge/train_triplets.txt.zip"),),
        files=(StoredFile("taste-profile/train_triplets.txt"),),
    ),
}
RATINGS = named(_RATINGS)

MOVIELENS_SPLITS = {split: _movielens_100k(*files) for split, files in _SPLIT_FILES.items()}

SMALLNETFLIX = Source(
    title="smallnetflix",
    address="http://www.select.cs.cmu.edu/code/graphlab/datasets/",
    terms="Netflix prize: research use; no redistribution and no commercial use without permission",
    citation="Low, Bickson, Gonzalez, Guestrin, Kyrola and Hellerstein (2012), Distributed GraphLab: a framework for "
    "machine learning and data mining in the cloud, PVLDB 5(8), 716-727",
    name="smallnetflix",
    size="95,526 x 3,561, 3,843,340 ratings",
    downloads=tuple(
        Download(f"http://www.select.cs.cmu.edu/code/graphlab/datasets/smallnetflix_mm.{part}")
        for part in ("train", "validate")
    ),
    files=(StoredFile("smallnetflix/smallnetflix_mm.train"), StoredFile("smallnetflix/smallnetflix_mm.validate")),
)

#: Mean ratings of kinds of things, made of ratings and of what is known of the things rated.
_AVERAGES = {
    "movielens-genres": _movielens_100k(
        _U_DATA, _U_ITEM, _U_GENRE, size="943 x 18, 14,226 means", what=": means by genre"
    ),
    "sushi-groups": Source(
        title="SUSHI preference data: means by group",
        address="https://www.kamishima.net/sushi/",
        terms="any research use; no redistribution without permission",
        citation="Kamishima (2003), Nantonac collaborative filtering: recommendation based on order responses, KDD, "
        "583-588",
        size="5,000 x 12, 34,305 means",
        downloads=(Download("https://www.kamishima.net/asset/sushi3-2016.zip"),),
        files=(
            StoredFile(
                "sushi/sushi3b.5000.10.score", "4a600bbbdea7f75dc218e14776fa41228f9bd553842997ffe79c1227f3ec119d"
            ),
            StoredFile("sushi/sushi3.idata", "236677eda275e13c39e4e0dc3d1438fb878527f15b6efbbb9ca07a715b866926"),
        ),
    ),
}
AVERAGES = named(_AVERAGES)
