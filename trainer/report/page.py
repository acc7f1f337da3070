"""report.html: one self-contained file."""

import html

import run_data

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ddd }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: right; border-bottom: 1px solid #eee }
td:first-child, th:first-child { text-align: left }
pre { background: #f6f6f4; padding: .8em; overflow-x: auto; font-size: 12px; line-height: 1.35 }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1em } .pair > div { min-width: 0 }
.good { color: #17692b } .bad { color: #a11 } .small { color: #666; font-size: 13px }
svg { max-width: 100%; height: auto }
"""

# Rows of the table: label, field of an evaluation, whether it is a share.
_ROWS = [
    ("valid", "valid", True),
    ("compiled", "compiled", True),
    ("correct", "correct", True),
    ("fused plans", "fused_rate", True),
    ("speedup > 1", "fast_1", True),
    ("speedup > 2", "fast_2", True),
    ("mean speedup", "mean_speedup", False),
    ("correct, greedy", "greedy_correct", True),
    ("fused plans, greedy", "greedy_fused_rate", True),
]


def _pass_rows(evaluation):
    counts = sorted(
        int(name.split("_")[1])
        for name in evaluation
        if name.startswith("pass_") and name.endswith("_correct")
    )
    return [(f"correct, pass@{k}", f"pass_{k}_correct", True) for k in counts if k > 1]


def _level_rows(evaluation):
    """Rows of each level, if there are several."""
    levels = [n for n in range(1, 10) if f"level{n}_tasks" in evaluation]
    if len(levels) < 2:
        return []
    names = [
        ("correct", "correct", True),
        ("speedup > 1", "fast_1", True),
        ("mean speedup", "mean_speedup", False),
        ("correct, greedy", "greedy_correct", True),
    ]
    return [(f"level {n}: {label}", f"level{n}_{field}", share) for n in levels for label, field, share in names]


def _number(value, share):
    return f"{100 * value:.1f} %" if share else f"{value:.2f} x"


def table(first, last, modelled):
    """The before/after table as HTML."""
    head = "<tr><th></th><th>before</th>" + ("<th>after</th><th>change</th>" if last else "")
    lines = ["<table>", head + "</tr>"]
    for label, field, share in _ROWS + _pass_rows(first) + _level_rows(first):
        if field not in first:
            continue
        if "speedup" in label and modelled:
            label += " (modelled)"
        cells = f"<td>{html.escape(label)}</td><td>{_number(first[field], share)}</td>"
        if last and field in last:
            change = last[field] - first[field]
            text = f"{100 * change:+.1f}" if share else f"{change:+.2f}"
            cells += f"<td>{_number(last[field], share)}</td><td>{text}</td>"
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join(lines + ["</table>"])


def _verdict(record, modelled):
    verdict = record.get("verdict", {})
    if run_data.is_correct(record):
        note = " (modelled)" if modelled else ""
        return f'<span class="good">correct, speedup {run_data.speedup_of(record):.2f}x{note}</span>'
    outcome = verdict.get("outcome", {})
    reason = outcome.get("reason", "not verified").lower()
    return f'<span class="bad">{html.escape(reason)}</span> {html.escape(outcome.get("message", ""))}'


def _example(task, old, new, modelled):
    prompt = old.get("prompt") or new.get("prompt") or ""
    parts = [f"<h3>{html.escape(task)}</h3>"]
    if prompt:
        parts.append(f"<pre>{html.escape(prompt)}</pre>")
    parts.append('<div class="pair">')
    for title, record in (("before", old), ("after", new)):
        parts.append(
            f"<div><b>{title}</b>: {_verdict(record, modelled)}"
            f"<pre>{html.escape(record.get('response', ''))}</pre></div>"
        )
    parts.append("</div>")
    return "\n".join(parts)


def render(run, svg, examples):
    """The whole page. `svg` holds the curves, `examples` the triples of choose_examples."""
    done = run.metrics[-1]["step"] if run.metrics else 0
    first, last = run.before_after()
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>GRPO-HRD run</title><style>{_STYLE}</style></head><body>",
        "<h1>GRPO-HRD: learning to write Triton kernels</h1>",
        f"<p>{done} of {run.total_steps} steps done. Folder: <code>{html.escape(run.folder)}</code></p>",
    ]
    if run.modelled:
        parts.append(
            "<p class='small'>No GPU executed these kernels: they were compiled for sm_89, executed on the "
            "CPU, and their times, and so every speedup here, are modelled from counted bytes and "
            "operations.</p>"
        )
    if first:
        parts.append("<h2>Held-out tasks, before and after</h2>")
        parts.append(table(first, last, run.modelled))
        parts.append(
            f"<p class='small'>{first.get('tasks', 0)} tasks, {first.get('k', 0)} samples each at "
            f"temperature {first.get('temperature', 1):g}; samples dropped for infrastructure errors: "
            f"{first.get('infra_errors', 0)}"
            + (f" before, {last.get('infra_errors', 0)} after" if last else "")
            + ".</p>"
        )
    parts.append("<h2>Curves</h2><p class='small'>Thin: each step. Thick: mean of the last five.</p>")
    parts.append(svg)
    if examples:
        parts.append("<h2>Example kernels, before and after</h2>")
        parts += [_example(task, old, new, run.modelled) for task, old, new in examples]
    parts.append("<h2>Configuration</h2><pre>" + html.escape(run.config) + "</pre>")
    if run.versions:
        rows = "".join(
            f"<tr><td>{html.escape(str(k))}</td><td>{html.escape(str(v))}</td></tr>"
            for k, v in run.versions[-1].items()
        )
        parts.append("<h2>Versions</h2><table>" + rows + "</table>")
    return "\n".join(parts + ["</body></html>\n"])
