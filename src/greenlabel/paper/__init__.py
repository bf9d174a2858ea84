"""The paper, reproduced: its tables and figures rebuilt from data, published and measured numbers side by side.

F. Nie, Y. Song, W. Chang, R. Wang and X. Li, Fast Semi-supervised Learning on Large Graphs: An Improved Green-function
Method. ``greenlabel paper`` is the command.
"""
