"""Equal rows: which of them may come next.

A label on a row says as much about all that equal it, so these come last. But equal rows may have different labels: who
answers a survey alike need not be alike. So a group of them is undecided, and one of its rows comes first, while

    n_g (l + 1) / n >= 2        it stands for two labels' worth of rows,
    l_g + 1 <= n_g (l + 1) / n  one more would not be more than its share,
    and no class leads among its labels by two.

n rows, n_g of them in the group     l labels, l_g of them in the group
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

DECIDED = 2  # labels by which a class has to lead; also the labels that a group has to be worth


def first_of_each(of_row: Ints, rows: Ints) -> Ints:
    """The first of some rows, which ascend, with each number ``of_row``; -1 where none of them has it."""
    first = np.full(int(of_row.max()) + 1, -1)
    first[of_row[rows[::-1]]] = rows[::-1]  # the last one that is written stays
    return first


def undecided_groups(size: Ints, group: Ints, codes: Ints) -> Ints:
    """Groups that want another label, those first that are furthest behind their share.

    size (u,) rows of each group     group, codes (l,) of the labels
    """
    groups, index, taken = np.unique(group, return_inverse=True, return_counts=True)
    share, n = size[groups].astype(np.int64) * (len(codes) + 1), int(size.sum())  # in units of 1 / n
    behind = share - taken * n
    large = np.flatnonzero((share >= DECIDED * n) & (behind >= n))
    large = large[[lead(codes[index == one]) < DECIDED for one in large]]
    return groups[large[np.argsort(-behind[large], kind="stable")]]


def lead(codes: Ints) -> int:
    """By how many labels the most frequent class is ahead of the next one; there is a label."""
    first, second = np.sort(np.append(np.bincount(codes), 0))[:-3:-1]
    return int(first - second)


def one_of_each(groups: Ints, of_row: Ints, may_come: Bools) -> Ints:
    """The first row of each of these groups that may come, in the order of the groups; none of a group without one."""
    rows = np.flatnonzero(np.isin(of_row, groups) & may_come)
    first = first_of_each(of_row, rows)[groups]
    return first[first >= 0]


def n_unlabelled(size: Ints, group: Ints, of_labels: Ints) -> list[int]:
    """Rows without a label in each of some groups; ``of_labels`` (l,) are the groups of the labels."""
    return [int(size[one] - np.count_nonzero(of_labels == one)) for one in group]
