"""Rows -> neighbours, similarity, anchors and mixing weights. Knows no labels.

    features, scaling, projection, duplicates    rows that can be compared
    distances                                    blocks of rows, and how far rows are apart
    neighbors                                    nearest points: exact, exact below the price of a product, approximate
    anchor_search                                the same among many anchors: approximate
    similarity                                   S and its components
    anchors, mixing                              anchors, Z in few bytes, Z'Z in whole numbers

May import ``_common`` and ``errors``.
"""
