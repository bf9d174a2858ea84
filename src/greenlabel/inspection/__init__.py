"""Which labels count: what to label next, why a row got its scores, which label is wrong.

    sketch        a small anchored graph of any rows, before there is any label
    coverage      the rows that stand for most of the data that no label stands for yet
    equal_rows    which of several equal rows may come
    asking        both of them on a sketch
    suggesting    the rows to label next, with reasons
    explaining    the exact part of every given label in the scores of a row
    suspicion     given labels that the others contradict
    checks, printing    what is given, and how results are shown

May import every room up to ``blend``.
"""
