"""The page to label on: every label given flows over all rows at once.

session     labels, journal, live predictions, map, what next: no HTTP
source      tables with their pictures and texts, the demo, and saving
app         the server on this machine
static      the page
"""
