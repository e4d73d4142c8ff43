"""Check the extractor against labelled replies and against what must hold for any reply."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from selfeval.identity.claims import entity, extract
from selfeval.identity.claims import abstains as abstains_

LABELLED = Path(__file__).parents[1] / "data" / "identity" / "labelled"
GROUPS = {"affirm": "affirm", "adopt": "affirm", "deny": "deny"}


def rows(half: str) -> list[dict]:
    return [json.loads(line) for line in (LABELLED / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()]


def read(half: str, source: str = "") -> tuple[dict[str, tuple[float, float, int, int]], list[str]]:
    """Return {what: (precision, recall, claims read, claims labelled)} of a half, and one line per difference."""
    right, got, wanted, differ = Counter(), Counter(), Counter(), []
    for row in rows(half):
        if source and (row["source"] == "written") != (source == "written"):
            continue
        text = row["text"]
        found = [(c.start, c.end, c.entity, c.name, GROUPS.get(c.polarity, "other")) for c in extract(text)]
        labels = []
        for label in row["claims"]:
            one = None if label.get("unknown") else entity(label["name"])
            start = label["start"]
            labels.append(
                (start, start + len(label["quote"]), one, label["name"], GROUPS.get(label["polarity"], "other"))
            )
        left = list(found)
        for label in labels:
            wanted[label[4]] += 1
            hit = next((c for c in left if _same(c, label)), None)
            if hit:
                left.remove(hit)
                right[label[4]] += 1
            else:
                differ.append(f"{row['phenomenon']}: missed {label[3]!r} {label[4]} in {text[:250]!r}")
        matched = [c for c in found if c not in left]
        left = [c for c in left if not any(c[2:] == other[2:] for other in matched)]  # said again: labelled once
        got.update(c[4] for c in [*matched, *left])
        differ += [f"{row['phenomenon']}: read {c[3]!r} {c[4]} in {text[:250]!r}" for c in left]
        said, told = abstains_(text), row["abstains"]
        wanted["abstains"] += told
        got["abstains"] += said
        right["abstains"] += said and told
        if said != told:
            differ.append(f"{row['phenomenon']}: abstains read {said} in {text[:250]!r}")
    for name in ("affirm", "deny", "other"):
        for counter in (right, got, wanted):
            counter["all claims"] += counter[name]
            counter["affirm or deny"] += counter[name] if name != "other" else 0
    table = {k: (right[k] / max(1, got[k]), right[k] / max(1, wanted[k]), got[k], wanted[k]) for k in wanted}
    return table, differ


def _same(claim, label) -> bool:
    """Tell whether a claim is what a label says: spans overlap, same polarity, same name up to a snapshot date."""
    if claim[4] != label[4] or not (claim[0] < label[1] and label[0] < claim[1]):
        return False
    return claim[2] == label[2] or (None not in (claim[2], label[2]) and replace(claim[2], snapshot=None) == label[2])


def show(half: str, source: str = "") -> dict:
    table, differ = read(half, source)
    print(f"\n{half} {source}")
    for what, (precision, recall, got, wanted) in table.items():
        print(f"  {what:15} precision {precision:.3f} recall {recall:.3f} (read {got}, labelled {wanted})")
    print("\n".join(differ))
    return table
