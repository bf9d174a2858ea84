"""A mixed table with gaps, categories and dates

2,000 orders of a shop: numbers, categories, free text, dates, empty cells. 100 of them have been looked at, and we know
whether they came back. `label_table` fills the column for all others, and says how far it can be trusted.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from greenlabel import label_table

rng = np.random.default_rng(0)
n = 2000
kind = rng.choice(["shoes", "shirt", "lamp", "book"], n, p=[0.35, 0.3, 0.15, 0.2])
weekday = rng.integers(0, 7, n)
price = np.round(rng.lognormal(3.5, 0.6, n), 2)
is_gift = rng.random(n) < 0.2
chance = 0.9 * np.isin(kind, ["shoes", "shirt"]) * (price > 25) * ~is_gift + 0.04
truth = np.where(rng.random(n) < chance, "returned", "kept")

orders = pd.DataFrame(
    {
        "kind": pd.Series(kind).mask(rng.random(n) < 0.05),
        "price": pd.Series(price).mask(rng.random(n) < 0.1),
        "ordered": pd.Timestamp("2024-01-01") + pd.to_timedelta(weekday + 7 * rng.integers(0, 50, n), unit="D"),
        "note": np.where(is_gift, "please wrap as a gift", ""),
        "came back": pd.Series(truth).mask(np.arange(n) >= 100),
    }
)
print(orders.iloc[[91, 96, 97, 100, 108]].to_string(na_rep="-"), "\n")

filled, result = label_table(orders, "came back")
unlabelled = orders["came back"].isna()
is_right = filled["came back"] == truth
print("new columns:", ", ".join(filled.columns[orders.shape[1] :]))
stated = result.model.estimated_accuracy_
print(f"right: {is_right[unlabelled].mean():.0%}, stated beforehand: {stated.low:.0%} to {stated.high:.0%}")

weights = pd.Series(result.model.weights_).sort_values()
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
left.barh(weights.index, weights, color="seagreen")
left.set_title("What the labels said of each model: its weight")
confidence = filled["came back_confidence"][unlabelled].to_numpy()
bins = np.quantile(confidence, [0, 0.2, 0.4, 0.6, 0.8, 1])
group = np.clip(np.digitize(confidence, bins) - 1, 0, 4)
means = [(confidence[group == g].mean(), is_right[unlabelled].to_numpy()[group == g].mean()) for g in range(5)]
right.plot([0.5, 1], [0.5, 1], color="0.8")
right.plot(*np.transpose(means), "o-", color="seagreen")
right.set(
    title="Confident rows are right",
    xlabel="confidence",
    ylabel="share of right rows",
    xlim=(0.45, 1.02),
    ylim=(0.45, 1.02),
)
figure.tight_layout()
figure.savefig("mixed_table.png", dpi=100)
