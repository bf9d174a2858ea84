def summary_html(o):
    return "<p></p>"


def write_report(path, o, frame, title):
    path.write_text("x")
