"""Uncoupled collections built with dictionaries and loops, without the library: the truth to compare with."""

from collections import Counter


def is_number(value):
    return value is not None and value == value


def built(asked, answers, comparisons):
    """The fields of an `Uncoupled`, as lists, and its account, from lists of tuples; None for an unknown side."""
    questions = list(dict.fromkeys(question for question, _ in asked))
    people = list(dict.fromkeys(person for _, person in asked))
    times = Counter(asked)
    cells = [(q, p) for q in questions for p in people if (q, p) in times]
    number = {cell: position for position, cell in enumerate(cells)}
    given = {q: sorted(v for name, v in answers if name == q and is_number(v)) for q in questions}
    kept, dropped = placed(comparisons, questions, number)
    fields = {
        "n_questions": len(questions),
        "n_respondents": len(people),
        "indptr": starts(sum(q == row for q, _ in cells) for row in questions),
        "respondents": [people.index(p) for _, p in cells],
        "times": None if set(times.values()) == {1} else [float(times[cell]) for cell in cells],
        "answer_indptr": starts(len(given[q]) for q in questions),
        "answers": [value for q in questions for value in given[q]],
        "comparison_indptr": starts(len(kept[q]) for q in questions),
        "higher": [higher for q in questions for higher, _ in sorted(kept[q])],
        "lower": [lower for q in questions for _, lower in sorted(kept[q])],
        "question_labels": questions,
        "respondent_labels": people,
    }
    asked_times = {q: sum(count for (name, _), count in times.items() if name == q) for q in questions}
    compared = {cells[side][1] for pairs in kept.values() for pair in pairs for side in pair if side >= 0}
    account = {
        "questions": len(questions),
        "respondents": len(people),
        "asked": len(cells),
        "answers": len(fields["answers"]),
        "comparisons": len(fields["higher"]),
        "answers_missing": sum(not is_number(value) for _, value in answers),
        "answers_unasked": sum(q not in questions for q, _ in answers),
        **dropped,
        "cells_repeated": sum(count > 1 for count in times.values()),
        "fewer_answers": sum(0 < len(given[q]) < asked_times[q] for q in questions),
        "more_answers": sum(len(given[q]) > asked_times[q] for q in questions),
        "no_answers": sum(not given[q] for q in questions),
        "no_comparisons": sum(not kept[q] for q in questions),
        "never_compared": len(people) - len(compared),
        **odd(kept, given, asked_times),
    }
    return fields, account


def starts(counts):
    totals = [0]
    for count in counts:
        totals.append(totals[-1] + count)
    return totals


def placed(comparisons, questions, number):
    """The comparisons of each question by cell numbers, and the counts of those that can't be used."""
    kept = {q: [] for q in questions}
    dropped = dict.fromkeys(("comparisons_unasked", "comparisons_strange", "comparisons_self", "comparisons_empty"), 0)
    for q, higher, lower in comparisons:
        if q not in questions:
            dropped["comparisons_unasked"] += 1
        elif any(side is not None and (q, side) not in number for side in (higher, lower)):
            dropped["comparisons_strange"] += 1
        elif higher is None and lower is None:
            dropped["comparisons_empty"] += 1
        elif higher == lower:
            dropped["comparisons_self"] += 1
        else:
            kept[q].append(tuple(-1 if side is None else number[q, side] for side in (higher, lower)))
    return kept, dropped


def odd(kept, given, asked_times):
    """What is odd about the comparisons, question by question."""
    counts = Counter()
    for q, pairs in kept.items():
        known = [pair for pair in pairs if -1 not in pair]
        both_ways = {pair for pair in known if pair[::-1] in known}
        reached, tied = closure(set(known)), closure(both_ways)
        counts["half_known"] += len(pairs) - len(known)
        counts["repeated"] += len(known) - len(set(known))
        counts["two_way"] += len(both_ways) // 2
        most = max(Counter(given[q]).values(), default=0) + max(asked_times[q] - len(given[q]), 0)
        for a, b in known:
            if (b, a) in reached:
                equal = {c for c in {c for pair in known for c in pair} if {(a, c), (c, a)} <= reached} | {a}
                counts["cyclic"] += (a, b) not in tied
                counts["contradictory"] += len(equal) > most
    return {name: counts[name] for name in ("half_known", "repeated", "two_way", "cyclic", "contradictory")}


def closure(pairs):
    """All (a, b) such that b can be reached from a."""
    reached = set(pairs)
    while True:
        more = {(a, d) for a, b in reached for c, d in pairs if b == c} - reached
        if not more:
            return reached
        reached |= more
