"""What the results of a comparison say, as rows, as text and as JSON."""

import json
import math
import os
import platform
from collections import defaultdict

from .worker import OWN
from .workloads import GROUPS


def machine():
    """Where the numbers come from."""
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
    """One dict per workload and number of threads, where fastpool and a peer were timed.

    `ratio` is the best peer's time over fastpool's, `from_limit` fastpool's over the time that
    reading the input once and writing the output once takes, `gain` the time of the earlier
    version over fastpool's.
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
    """One dict per group and number of threads: geometric means and the worst."""
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


def _geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def text(results):
    """The tables."""
    rows = summary(results)
    lines = [
        f"{'workload':26} {'threads':>7}  {'best peer':18} {'us':>9} {'fastpool':>9} "
        f"{'ratio':>6} {'limit x':>7}"
    ]
    for row in rows:
        times = f"{row['best_microseconds']:9.4g} {row['fastpool_microseconds']:9.4g}"
        lines.append(
            f"{row['workload']:26} {row['threads']:7}  {row['best']:18} {times} "
            f"{row['ratio']:6.2f} {_number(row['from_limit']):>7}"
        )
    lines += [
        "",
        f"{'group':24} {'threads':>7} {'count':>5}  {'ratio':>6} {'least':>6}  "
        f"{'limit x':>7} {'most':>6}  least ratio at",
    ]
    for group in groups(rows):
        lines.append(
            f"{group['group']:24} {group['threads']:7} {group['count']:5}  "
            f"{group['ratio']:6.2f} {group['least']:6.2f}  {_number(group['from_limit']):>7} "
            f"{_number(group['furthest']):>6}  {group['least_workload']}"
        )
    lines += [
        "",
        "ratio: time of the best peer / fastpool's; limit x: fastpool's time / time to read the "
        "input once and write the output once;",
        "geometric means per group, and the worst.",
        *problems(results),
    ]
    return "\n".join(lines)


def _number(value):
    return "-" if value is None else f"{value:.1f}"


def problems(results):
    """Answers that differ, refusals and deaths: not timed."""
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
        yield f"  {way} {status}: {', '.join(names[:3])}{more}: {message[:100]}"


def write_json(path, **contents):
    """Write what was measured, with the machine."""
    with open(path, "w") as file:
        json.dump({"machine": machine(), **contents}, file, indent=1)
        file.write("\n")
