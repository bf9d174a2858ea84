"""A labelling session without a server: what is labelled, kept safe, predicted, drawn and asked next.

sources     what a session needs of a table
actions     what a person does, checked
labels      State: classes, labels, ignored rows; undo and redo
journal     every action on disk before it counts
live        labels spread over all rows after each action
frames      scores -> a class and a confidence byte for each row
plane       the map: positions of the rows
queue       what to label next; one in five at random
accuracy    how good the predictions are, by the rows drawn at random
settled     the blend, fitted in a process of its own while hands rest
child       work in a process of its own
session     joins all this
"""
