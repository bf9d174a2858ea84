"""The page that compares: its numbers are those of the pages of results."""

import re

import pytest

from helpers.pages import ROOT

COMPARED = (ROOT / "docs" / "compared.md").read_text()


def table(text: str, section: str) -> list[list[str]]:
    """Rows of the first table after a heading, without marks of emphasis and of percent."""
    lines = f"\n{text}"[f"\n{text}".index(f"\n{section}\n") :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| "))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([re.sub(r"\*\*|\s?%", "", cell).strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def results(name: str, section: str) -> list[list[str]]:
    return table((ROOT / "benchmarks" / f"{name}.md").read_text(), section)


def test_accuracies():
    text = (ROOT / "benchmarks" / "accuracy.md").read_text()
    head, *rows = table("\nhere\n" + text[text.index("| data | **blend**") :], "here")
    columns = [head.index(name) for name in ("blend", "graph", "LabelSpreading", "SelfTraining", "Poisson")]
    expected = [[row[0], *(row[i].split(" ± ")[0] for i in columns)] for row in rows]
    assert table(COMPARED, "### Accuracy")[1:] == expected


def test_the_best_of_each_line_is_bold():
    section = COMPARED.partition("### Accuracy")[2].partition("**Where")[0]
    for line in [line for line in section.splitlines() if re.match(r"\| \w+.* \| [\d*]", line)]:
        cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
        best = max(float(cell.strip("*")) for cell in cells)
        assert {cell for cell in cells if cell.startswith("**")} == {f"**{best}**"}, line


def test_times():
    expected = [row[1:] for row in results("RESULTS", "## Others on the same task")[1:]]
    assert [row[1:] for row in table(COMPARED, "### Time and memory")[1:]] == expected


@pytest.mark.parametrize("page", ["README.md", "docs/from-label-spreading.md"])
def test_the_pages_claim_no_more_speed_than_was_measured(page):
    """Both ways it was measured: as a row of the bars, and beside the other peers."""
    (claimed,) = re.findall(r"more than (\w+) times\s+as\s+fast", (ROOT / page).read_text())
    (ratio,) = [row[3] for row in results("RESULTS", "# Benchmarks") if row[0].startswith("scikit-learn's `LabelSpr")]
    peers = results("RESULTS", "## Others on the same task")[1:3]
    ours, spreading = [float(row[2].removesuffix(" s")) for row in peers]
    numbers = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70}
    assert numbers[claimed] <= min(float(ratio), spreading / ours)


def test_rules_of_querying():
    measured = {row[0].removeprefix("GraphLearning "): row[1:] for row in results("queries", "## Other rules")[1:]}
    shown = [row[1:] for row in table(COMPARED, "### Which rows to label")[1:]]
    names = ["unc_sampling", "var_opt", "sigma_opt", "model_change", "model_change_var_opt"]
    assert shown == [measured[name] for name in [*names, "unc_sampling, Poisson norm", "margin", "V-optimality"]]
    assert len(shown) == len(measured)


def test_losses_to_random_rows():
    """What two pages say of the balance scale is what was measured."""
    row = next(row for row in results("queries", "## Learning curves") if row[0] == "Balance")
    chosen, drawn = zip(*(map(float, cell.split(" / ")) for cell in row[1:5]), strict=True)
    said = " ".join((ROOT / "docs" / "which-rows.md").read_text().split())
    shown = re.search(r"the suggested ones gave ([\d, and]+) %, random ones ([\d, and]+) %", said).groups()
    assert [[int(n) for n in re.findall(r"\d+", text)] for text in shown] == [
        [round(value) for value in values] for values in (chosen, drawn)
    ]
    worst = next(row for row in results("queries", "# Which rows to label: learning curves") if "fewer than" in row[0])
    starts, one_run, of_samples = (re.match(r"-([\d.]+) \(Balance", cell).group(1) for cell in worst[3:])
    said = f"up to {starts} points in the mean of the starts, {of_samples} in that of the samples, {one_run} in one run"
    assert said in " ".join(COMPARED.split())


def test_wrong_labels():
    means = results("suspects", "# Wrong labels found")[-1][1:]
    assert [" / ".join(row[1:]) for row in table(COMPARED, "### Wrong labels")[1:]] == means


@pytest.mark.parametrize("name", ["accuracy", "queries", "suspects", "RESULTS"])
def test_it_says_where_its_numbers_are_from(name):
    assert f"../benchmarks/{name}.md" in COMPARED
