"""What fitted classifiers and results show of themselves in a notebook."""

import re

import numpy as np
import pytest
from sklearn import config_context

from greenlabel import BlendedClassifier, GreenClassifier, explain, suggest, suspects
from greenlabel.estimators.notebook import learned
from helpers.estimators import ESTIMATORS

HOSTILE = "<img src=x onerror=alert(1)>"
X = np.concatenate([np.arange(8.0), 100 + np.arange(8.0)])[:, None]


def labels(first="a", second="b"):
    y = np.full(len(X), "", dtype=object)
    y[[0, 3, 6]], y[[8, 11, 14]] = first, second
    return y


@pytest.mark.parametrize("Model", ESTIMATORS)
def test_a_fitted_classifier_shows_parameters_and_what_it_learned(Model):
    model = Model().fit(X, labels())
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert Model.__name__ in page
        for line in ("<td>rows</td><td>16</td>", "<td>labels given</td><td>6</td>", "<td>classes</td><td>2: a, b</td>"):
            assert page.count(line) == 1
        assert page.count("estimated accuracy") == 1


def test_before_the_fit_and_without_html_nothing_is_added():
    assert "labels given" not in GreenClassifier()._repr_html_()
    with config_context(display="text"):
        model = GreenClassifier(n_neighbors=3).fit(X, labels())
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_the_estimate_is_that_of_the_blend():
    model = BlendedClassifier(random_state=0).fit(X, labels())
    assert dict(learned(model))["estimated accuracy"].startswith(f"{model.estimated_accuracy_:.1%}")


def test_a_model_for_new_rows_shows_what_is_left():
    model = GreenClassifier(n_neighbors=3).fit(X, labels()).for_prediction()
    assert dict(learned(model))["keeps"] == "what new rows need"


def test_names_of_classes_are_text_and_short():
    many = np.array([f"{HOSTILE} {i:02}" for i in range(12)], dtype=object)
    rows = np.repeat(np.arange(12.0), 2)[:, None] * 10 + np.tile([0, 1], 12)[:, None]
    page = GreenClassifier(n_neighbors=3).fit(rows, np.repeat(many, 2))._repr_html_()
    assert HOSTILE not in page
    assert "12: &lt;img" in page
    assert "…" in page


@pytest.mark.filterwarnings("ignore::greenlabel.errors.UnreachedWarning")
def test_results_show_themselves_as_escaped_tables():
    y = labels(HOSTILE, "b")
    y[3] = "b"
    model = GreenClassifier(n_neighbors=7).fit(X, y)
    for result in (suggest(model, 2), explain(model, [1, 9]), suspects(model)):
        page = result._repr_html_()
        assert page.startswith("<table><thead><tr><th>row</th>")
        assert page.count("<tr>") == 1 + len(result)
        assert "<img" not in page
    assert "&lt;img" in suspects(model)._repr_html_()


def test_suspects_print_as_a_table():
    y = labels()
    y[3] = "b"
    printed = str(suspects(GreenClassifier(n_neighbors=7).fit(X, y))).splitlines()
    assert printed[0].split() == ["row", "given", "suggested", "probability"]
    assert printed[1].split()[:3] == ["3", "b", "a"]


def test_a_fit_tells_its_steps_to_whoever_listens(caplog):
    model = BlendedClassifier(random_state=0)
    model.fit(X, labels())
    assert not caplog.messages
    with caplog.at_level("INFO", logger="greenlabel"):
        model.fit(X, labels())
    begun = [message for message in caplog.messages if message.endswith(" ...")]
    assert begun[0] == "BlendedClassifier: graph of 16 rows ..."
    assert "blend: trees ..." in begun
    ended = [message for message in caplog.messages if message.endswith(" s")]
    assert len(ended) == len(begun)


STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]")


@pytest.mark.filterwarnings("ignore::greenlabel.errors.UnreachedWarning")
def test_names_of_classes_neither_steer_a_terminal_nor_fill_it():
    y = labels("\x1b[31mred\u202e", "b" * 5000)
    y[3] = y[8]
    model = GreenClassifier(n_neighbors=7).fit(X, y)
    for result in (suggest(model, 2), explain(model, [1, 9]), suspects(model)):
        for shown in (str(result), result._repr_html_()):
            assert "[31mred" in shown
            assert not STEERING.search(shown)
            assert len(shown) < 5000


def test_slices_of_results_print_as_tables():
    y = labels()
    y[3] = "b"
    model = GreenClassifier(n_neighbors=7).fit(X, y)
    for result in (suspects(model), suggest(model, 3)):
        assert str(result[:1]).splitlines()[0].split() == list(result.as_table()[0])
        assert type(result[:1]) is type(result)
        assert result[:1] == [result[0]]
