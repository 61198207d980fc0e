"""Reads a metrics page with Prometheus's own parser, and prints its samples as JSON: {"NAME{LABEL=VALUE,...}": VALUE}."""

import json
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

with urllib.request.urlopen(sys.argv[1], timeout=10) as response:
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4"), response.headers["Content-Type"]
    page = response.read().decode()

samples = {}
for family in text_string_to_metric_families(page):
    assert family.documentation and family.type != "unknown", family.name
    for sample in family.samples:
        labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
        name = f"{sample.name}{{{labels}}}" if labels else sample.name
        assert name not in samples, f"{name} is there twice"
        samples[name] = sample.value
print(json.dumps(samples))
