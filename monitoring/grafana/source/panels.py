"""The kinds of panels. Each function returns (width, height, panel). A query is a pair: expression and legend."""
from queries import shares, spelled_out

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def steps(*values):
    """Thresholds, from the lowest: pairs of a color and the value from which it applies."""
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in values]}


def red_from(value):
    return steps(("green", None), ("red", value))


def green_from(value):
    return steps(("red", None), ("green", value))


PLAIN = steps(("green", None))
NONE_EXPECTED = red_from(1)
LAST_VALUE = {"calcs": ["lastNotNull"], "fields": "", "values": False}


def texts(zero, one):
    """Shows words and colors instead of the values 0 and 1."""
    options = {str(value): {"text": text, "color": color, "index": value}
               for value, (text, color) in enumerate((zero, one))}
    return [{"type": "value", "options": options}]


THERE = texts(("none", "red"), ("there", "green"))


def panel(kind, title, description, queries, defaults, options, **target):
    targets = [{"refId": chr(ord("A") + i), "datasource": DATASOURCE, "expr": spelled_out(expression),
                "legendFormat": legend, **target} for i, (expression, legend) in enumerate(queries)]
    return {"type": kind, "title": title, "description": description, "datasource": DATASOURCE, "targets": targets,
            "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options}


def timeseries(title, unit, description, *queries, w=8, h=8, stacked=False, bars=False, thresholds=None, min=0,
               max=None, decimals=None):
    custom = {"drawStyle": "bars" if bars else "line", "lineWidth": 1, "fillOpacity": 60 if stacked or bars else 10,
              "showPoints": "never", "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
              "thresholdsStyle": {"mode": "line" if thresholds else "off"}}
    limits = {"min": min, "max": max, "decimals": decimals}
    defaults = {"unit": unit, **{name: value for name, value in limits.items() if value is not None},
                "thresholds": thresholds or PLAIN, "custom": custom}
    options = {"legend": {"displayMode": "list", "placement": "bottom", "calcs": []},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return w, h, panel("timeseries", title, description, queries, defaults, options)


def stat(title, unit, description, *queries, w=4, h=4, thresholds=None, mappings=None, text="value", decimals=None):
    defaults = {"unit": unit, **({"decimals": decimals} if decimals is not None else {}),
                "thresholds": thresholds or PLAIN, "mappings": mappings or []}
    options = {"reduceOptions": LAST_VALUE, "textMode": text, "graphMode": "none",
               "colorMode": "value" if thresholds or mappings else "none"}
    return w, h, panel("stat", title, description, queries, defaults, options, instant=True, range=False)


def timeline(title, description, query, legend, zero, one, w=12, h=8):
    """Shows when a value was 1 and when 0. zero and one: (word, color)."""
    defaults = {"unit": "none", "thresholds": PLAIN, "mappings": texts(zero, one),
                "custom": {"lineWidth": 0, "fillOpacity": 80}}
    options = {"showValue": "never", "mergeValues": True, "rowHeight": 0.9,
               "legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "single"}}
    return w, h, panel("state-timeline", title, description, [(query, legend)], defaults, options)


def table(title, description, *expressions, w=12, h=8):
    """Shows the labels of the expressions' series, one row per task."""
    defaults = {"unit": "none", "thresholds": PLAIN, "custom": {"align": "left"}}
    made = panel("table", title, description, [(expression, "") for expression in expressions], defaults,
                 {"showHeader": True, "sortBy": [{"displayName": "task", "desc": False}]},
                 instant=True, range=False, format="table")
    hidden = {"Time": True, **{f"Value #{target['refId']}": True for target in made["targets"]}}
    made["transformations"] = [{"id": "merge", "options": {}},
                               {"id": "organize", "options": {"excludeByName": hidden}}]
    return w, h, made


def heatmap(title, description, query, w=12, h=8):
    """Shows the counts of a histogram's buckets over time. The query sums the buckets by le."""
    options = {"calculate": False, "cellGap": 1, "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
               "yAxis": {"axisPlacement": "left", "unit": "short"}, "legend": {"show": True}, "tooltip": {"show": True}}
    return w, h, panel("heatmap", title, description, [(query, "{{le}}")], {"unit": "short", "custom": {}}, options,
                       format="heatmap")


# Panels of several dashboards.

def job_state():
    return stat("Job", "none",
                "The job that runs, or ran last, on this cluster, and its state. `disttrain status` says why the job "
                "is in that state.",
                ("disttrain_job_state{CLUSTER} == 1", "{{job}}: {{state}}"),
                w=6, text="name")


def goodput(w=12):
    return timeseries("Where the job's time goes", "percentunit",
                      "Shares of the job's time by use, as the chief counts it. Expected: nearly all train. input: "
                      "waiting for data; sync: pull, push and waiting for other workers; checkpoint: waiting for a "
                      "checkpoint; restore and init: rollbacks and starts; stall: no step for an unknown reason.",
                      (shares("disttrain_goodput_seconds_total", "JOB", by="state"), "{{state}}"),
                      w=w, stacked=True, max=1)


def phases(selector, w=12, who="all workers of the job"):
    return timeseries("Where the workers' time goes", "percentunit",
                      f"Shares of a step's time, over {who}. compute is the work itself; input waits for data, pull "
                      "and push for parameter servers and network, wait for other workers.",
                      (shares("disttrain_worker_step_seconds_sum", selector, by="phase"), "{{phase}}"),
                      w=w, stacked=True, max=1)
