"""y <-> Y, and from scores to classes and probabilities.

    encoding                  y <-> Y; F -> class and probability; the temperature
    choosing                  a parameter by leave-one-out
    label_shift, offsets      shares of the classes in the data; classes of different size
    shares                    decisions under known shares, refined over a graph
    estimates                 the share of right predictions, and its interval

May import ``_common`` and ``errors``.
"""
