"""Summarise the results of a comparison, as rows and as JSON."""

import json
import math
import os
import platform
import re
from collections import defaultdict

from . import OWN
from .workloads import GROUPS


def machine():
    """Describe the machine on which the numbers were measured."""
    name = platform.processor()
    try:
        with open("/proc/cpuinfo") as lines:
            name = next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return {
        "processor": name or platform.machine(),
        "processors": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def summary(results):
    """Return one dict per workload and number of threads for which fastpool and a peer were timed.

    `ratio` is the best peer's time over fastpool's. `from_limit` is fastpool's time over that of
    reading the input once and writing the output once. `gain` is the earlier version's time over
    fastpool's.
    """
    found = defaultdict(list)
    for result in results:
        if result["microseconds"] is not None:
            found[result["workload"], result["group"], result["threads"]].append(result)
    rows = []
    for (workload, group, threads), timed in found.items():
        times = {result["way"]: result["microseconds"] for result in timed}
        peers = {r["way"]: r["microseconds"] for r in timed if r["library"] not in OWN}
        limits = [r["microseconds"] for r in timed if r["library"] == "limit"]
        if "fastpool" not in times or not peers:
            continue
        best, own = min(peers, key=peers.get), times["fastpool"]
        row = {"workload": workload, "group": group, "threads": threads, "best": best}
        row |= {"best_microseconds": peers[best], "fastpool_microseconds": own}
        row["ratio"] = peers[best] / own
        row["from_limit"] = own / min(limits) if limits else None
        row["gain"] = times["earlier"] / own if "earlier" in times else None
        rows.append(row)
    return rows


def groups(rows):
    """Return one dict per group and number of threads: geometric means and the worst."""
    found = defaultdict(list)
    for row in rows:
        found[GROUPS.index(row["group"]), row["threads"]].append(row)
    for (group, threads), members in sorted(found.items()):
        worst = min(members, key=lambda row: row["ratio"])
        limits = [row["from_limit"] for row in members if row["from_limit"]]
        gains = [row["gain"] for row in members if row["gain"]]
        yield {
            "group": GROUPS[group],
            "threads": threads,
            "count": len(members),
            "ratio": _geometric_mean([row["ratio"] for row in members]),
            "least": worst["ratio"],
            "least_workload": worst["workload"],
            "from_limit": _geometric_mean(limits) if limits else None,
            "furthest": max(limits, default=None),
            "gain": _geometric_mean(gains) if gains else None,
            "least_gain": min(gains, default=None),
        }


def distribution(rows, names):
    """Return one dict per group of random layers: how its ratios and distances are distributed.

    A percentile is a value of the list: of 100 ratios, the 5th percentile is the 6th least.
    """
    for name in names:
        members = [row for row in rows if row["group"] == name]
        ratios = sorted(row["ratio"] for row in members)
        limits = sorted(row["from_limit"] for row in members if row["from_limit"])
        if not ratios:
            continue
        found = {"group": name, "count": len(members), "ratio": _geometric_mean(ratios)}
        found |= {f"ratio_{p}": ratios[p * len(ratios) // 100] for p in (5, 1)}
        found["least"] = ratios[0]
        if limits:
            found["from_limit"] = _geometric_mean(limits)
            found |= {f"from_limit_{p}": limits[(p * len(limits) - 1) // 100] for p in (95, 99)}
            found["furthest"] = limits[-1]
        yield found


def _geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def problems(results):
    """Yield lines about calls that were not timed: different answers, refusals, dead processes."""
    found = defaultdict(list)
    for result in results:
        if result["status"] != "exact":
            key = result["way"], result["status"], result["message"]
            found[key].append(result["workload"])
    if found:
        yield "\nnot timed:"
    for (way, status, message), names in found.items():
        names = list(dict.fromkeys(names))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        message = re.sub(r"\{\{.*?\}\} ", "", message)  # TensorFlow's long name of the node
        yield f"  {way} {status}: {', '.join(names[:3])}{more}: {message[:100]}"


def write_json(path, **contents):
    """Write the measurements, with the machine."""
    with open(path, "w") as file:
        json.dump({"machine": machine(), **contents}, file, indent=1)
        file.write("\n")
