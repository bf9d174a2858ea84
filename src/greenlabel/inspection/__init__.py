"""Which labels count: what to label next, and why.

    sketch        a small anchored graph of any rows, before there is any label
    coverage      the rows that stand for most of the data that no label stands for yet

May import every room up to ``blend``.
"""
