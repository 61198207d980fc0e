"""The checks of the manifests and of the chart that need no Kubernetes and no Helm."""

import json
import os
import re
import subprocess
import tempfile
import unittest

import kubernetes_validate
import yaml

import chart
from binary import DEPLOY, check_configuration

CHART = DEPLOY / "helm/semel"
KUBERNETES = "1.31"
EXAMPLES = [
    ["values-demo.yaml", "values-embedded.yaml"],
    ["values-demo.yaml", "values-redis.yaml"],
    ["values-application.yaml", "values-redis.yaml"],
    ["values-application.yaml", "values-sentinel.yaml"],
    ["values-application.yaml", "values-cluster.yaml"],
    ["values-application.yaml", "values-embedded.yaml"],
    ["values-alone.yaml", "values-redis.yaml"],
    ["values-alone.yaml", "values-embedded.yaml"],
    [DEPLOY / "checks/chart-full.yaml"],
]

# Over the demo's values, and what the templates say to it.
REFUSALS = [
    ({"replicas": 2}, "one replica"),
    ({"config": {"store": {"path": "semel.db"}}}, "/var/lib/semel"),
    ({"config": {"store": {"kind": "memory"}}}, "redis or embedded"),
    ({"config": {"store": {"kind": "redis"}}}, "url of a Redis"),
    ({"config": {"listen": [{"address": "unix:/run/semel.sock"}]}}, "needs a port"),
    ({"config": {"routes": []}}, "upstreams and routes"),
    ({"containers": []}, "containers: write"),
    ({"secret": ""}, "secret: name"),
    ({"pod": {"volumes": []}}, "values of their own"),
    ({"sidecar": False}, "a Deployment of its own"),
    ({"sidecar": False, "containers": []}, "forgets a pod"),
    ({"networkPolicy": {"backend": {"app": "orders"}}}, "is for sidecar: false"),
    ({"prometheusRule": {"enabled": True}}, "the URL of runbooks.md"),
]


def documents(path):
    return [document for document in yaml.safe_load_all((DEPLOY / path).read_text()) if document]


def of_kind(manifests, *kinds):
    return [manifest for manifest in manifests if manifest["kind"] in kinds]


def configuration(manifests):
    """The text of Semel's configuration."""
    [text] = [m["data"]["semel.yaml"] for m in of_kind(manifests, "ConfigMap") if "semel.yaml" in m["data"]]
    return text


def size(text):
    """The bytes of a size, as Semel and Kubernetes write it."""
    number, unit = re.fullmatch(r"(\d+)([KMG]i)?B?", str(text)).groups()
    return int(number) << {None: 0, "Ki": 10, "Mi": 20, "Gi": 30}[unit]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(ms|s|m)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60}[unit]


def memory(settings):
    """The memory to plan for a configuration, by the manual's sum."""
    limits, store = settings.get("limits", {}), settings["store"]
    return (size(limits.get("body_memory", "256MiB")) + size(store.get("local_cache", "64MiB")) + (100 << 20)
            + limits.get("max_connections", 10_000) * (64 << 10))


class Kubernetes(unittest.TestCase):
    def validate(self, manifest):
        if manifest["kind"] == "ServiceMonitor":
            return self.check_monitor(manifest)
        if manifest["kind"] == "PrometheusRule":
            return self.check_rules(manifest)
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)

    def check_monitor(self, manifest):
        """Kubernetes' schemas have no kinds of the operator."""
        self.assertEqual(manifest["apiVersion"], "monitoring.coreos.com/v1")
        self.assertEqual(set(manifest["spec"]), {"selector", "endpoints"})
        [endpoint] = manifest["spec"]["endpoints"]
        self.assertEqual(set(endpoint), {"port", "path", "interval", "authorization"})
        self.assertEqual(set(endpoint["authorization"]["credentials"]), {"name", "key"})

    def check_rules(self, manifest):
        """The rules of deploy/monitoring, which lead to a page that a browser opens."""
        self.assertEqual((manifest["apiVersion"], set(manifest["spec"])), ("monitoring.coreos.com/v1", {"groups"}))
        text = (DEPLOY / "monitoring/alerts.yaml").read_text()
        for group in manifest["spec"]["groups"]:
            for rule in group["rules"]:
                page, _, alert = rule["annotations"]["runbook_url"].partition("#")
                self.assertEqual((page[:8], alert), ("https://", rule["alert"].lower()))
                rule["annotations"]["runbook_url"] = f"../runbooks.md#{alert}"
        self.assertEqual(manifest["spec"], yaml.safe_load(text))

    def check_semel(self, spec, settings):
        """Semel's container, beside others or alone."""
        beside = [c for c in spec.get("initContainers", []) if c["name"] == "semel"]
        [semel] = beside or spec["containers"]
        self.assertEqual((semel["name"], semel.get("restartPolicy")), ("semel", "Always" if beside else None))
        if not beside:
            self.assertGreaterEqual(seconds(settings["drain_delay"]), 5, "the Service still sends requests")
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertIn(probe, semel)
        security = {**spec.get("securityContext", {}), **semel["securityContext"]}
        self.assertTrue(security["runAsNonRoot"])
        self.assertFalse(security["allowPrivilegeEscalation"])
        self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
        mounts = {mount["mountPath"]: mount["name"] for mount in semel["volumeMounts"]}
        self.assertLessEqual({"/etc/semel", "/run/secrets/semel"}, set(mounts))
        volumes = {volume["name"] for volume in spec["volumes"]} | {"records"}
        self.assertLessEqual(set(mounts.values()), volumes)
        for port, address in zip(semel["ports"], (settings["listen"][0]["address"], settings["admin"]["address"])):
            self.assertTrue(address.endswith(f":{port['containerPort']}"), address)
        self.assertLessEqual(memory(settings), size(semel["resources"]["limits"]["memory"]), "the limit is too small")

    def check(self, manifests):
        """All manifests of one application. Its workload."""
        for manifest in manifests:
            self.validate(manifest)
        [workload] = of_kind(manifests, "Deployment", "StatefulSet")
        text = configuration(manifests)
        check_configuration(self, text)
        settings = yaml.safe_load(text)
        pod = workload["spec"]["template"]
        self.check_semel(pod["spec"], settings)
        stop = sum(seconds(settings[name]) for name in ("drain_delay", "shutdown_grace"))
        # Marks, spans and the log may take 11 s more.
        self.assertGreaterEqual(pod["spec"]["terminationGracePeriodSeconds"], stop + 12)
        labels = pod["metadata"]["labels"].items()
        for service in of_kind(manifests, "Service"):
            self.assertLessEqual(service["spec"]["selector"].items(), labels)
            for port in service["spec"]["ports"]:
                self.assertIsInstance(port["targetPort"], int, "Kubernetes 1.29 finds no named port of a sidecar")
        return workload


class Manifests(Kubernetes):
    def test_shared_redis(self):
        self.assertEqual(self.check(documents("kubernetes/shared-redis.yaml"))["kind"], "Deployment")

    def test_embedded(self):
        workload = self.check(documents("kubernetes/embedded.yaml"))
        self.assertEqual((workload["kind"], workload["spec"]["replicas"]), ("StatefulSet", 1))

    def test_the_validation_can_fail(self):
        manifest = documents("kubernetes/embedded.yaml")[1]
        manifest["spec"]["replicaz"] = 1
        with self.assertRaises(kubernetes_validate.ValidationError):
            self.validate(manifest)
        settings = {"store": {}, "limits": {"body_memory": "400MiB"}}
        self.assertGreater(memory(settings), size("512Mi"))


class Chart(Kubernetes):
    def pod(self, *values):
        return self.check(chart.render(CHART, *values))["spec"]["template"]

    def checksum(self, *values):
        return self.pod(*values)["metadata"]["annotations"]["checksum/config"]

    def test_every_example(self):
        for values in EXAMPLES:
            with self.subTest(values=values):
                manifests = chart.render(CHART, *values)
                workload = self.check(manifests)
                embedded = "values-embedded.yaml" in values
                self.assertEqual(workload["kind"], "StatefulSet" if embedded else "Deployment")
                self.assertEqual("volumeClaimTemplates" in workload["spec"], embedded)

    def test_an_application_keeps_its_containers(self):
        values = yaml.safe_load((CHART / "values-application.yaml").read_text())
        spec = self.pod("values-application.yaml", "values-redis.yaml")["spec"]
        self.assertEqual(spec["containers"], values["containers"])
        self.assertEqual([c["name"] for c in spec["initContainers"]], ["migrate", "semel"])
        self.assertEqual(spec["initContainers"][:1], values["initContainers"])
        for volume in values["volumes"]:
            self.assertIn(volume, spec["volumes"])

    def test_the_configuration_is_what_the_values_say(self):
        full = yaml.safe_load((DEPLOY / "checks/chart-full.yaml").read_text())
        text = configuration(chart.render(CHART, full))
        defaults = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
        self.assertEqual(yaml.safe_load(text), chart.merged(defaults, full["config"]))

    def test_every_value_has_its_place(self):
        full = yaml.safe_load((DEPLOY / "checks/chart-full.yaml").read_text())
        manifests = chart.render(CHART, full)
        workload = self.check(manifests)
        self.assertNotIn("replicas", workload["spec"], "an autoscaler's")
        self.assertLessEqual(full["workload"].items(), workload["spec"].items())
        pod = workload["spec"]["template"]
        self.assertLessEqual(full["podLabels"].items(), pod["metadata"]["labels"].items())
        self.assertLessEqual(full["podAnnotations"].items(), pod["metadata"]["annotations"].items())
        for name in ("affinity", "tolerations", "topologySpreadConstraints", "serviceAccountName"):
            self.assertEqual(pod["spec"][name], full["pod"][name])
        self.assertEqual(pod["spec"]["securityContext"]["fsGroup"], 2000)
        semel = pod["spec"]["initContainers"][-1]
        for name in ("image", "imagePullPolicy", "resources", "env", "envFrom"):
            self.assertEqual(semel[name], full["semel"][name])
        self.assertIn(full["semel"]["volumeMounts"][0], semel["volumeMounts"])
        [budget] = of_kind(manifests, "PodDisruptionBudget")
        self.assertEqual((budget["spec"]["minAvailable"], "maxUnavailable" in budget["spec"]), (2, False))

    def test_the_admin_port_is_reached_by_few_and_with_its_token(self):
        manifests = chart.render(CHART, DEPLOY / "checks/chart-full.yaml")
        [policy] = of_kind(manifests, "NetworkPolicy")
        rules = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["spec"]["ingress"]}
        self.assertEqual(rules, {
            8443: [{"podSelector": {"matchLabels": {"app": "gateway"}}}],
            9081: [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}], 9100: None})
        [monitor] = of_kind(manifests, "ServiceMonitor")
        [endpoint] = monitor["spec"]["endpoints"]
        self.assertEqual(endpoint["authorization"]["credentials"], {"name": "orders-secrets", "key": "token"})
        selected = [s for s in of_kind(manifests, "Service")
                    if monitor["spec"]["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items()]
        self.assertEqual([[p["name"] for p in s["spec"]["ports"]] for s in selected], [[endpoint["port"]]])
        plain = chart.render(CHART, "values-demo.yaml", "values-embedded.yaml")
        [policy] = of_kind(plain, "NetworkPolicy")
        self.assertEqual([rule["ports"][0]["port"] for rule in policy["spec"]["ingress"]], [8080])
        self.assertEqual(of_kind(plain, "ServiceMonitor"), [])

    def test_alone_it_is_the_only_way_to_the_backend(self):
        manifests = chart.render(CHART, "values-alone.yaml", "values-redis.yaml", release="orders-semel")
        spec = self.check(manifests)["spec"]["template"]["spec"]
        self.assertEqual(([c["name"] for c in spec["containers"]], "initContainers" in spec), (["semel"], False))
        own, backend = of_kind(manifests, "NetworkPolicy")
        self.assertEqual(own["spec"]["podSelector"]["matchLabels"], {"app": "orders-semel"})
        self.assertEqual(backend["spec"]["podSelector"]["matchLabels"], {"app": "orders"})
        first, second = backend["spec"]["ingress"]
        self.assertEqual(first, {"from": [{"podSelector": {"matchLabels": {"app": "orders-semel"}}}]})
        self.assertIn("namespaceSelector", second["from"][0])
        # Beside the application nobody else's pods are closed.
        self.assertEqual(len(of_kind(chart.render(CHART, "values-demo.yaml", "values-embedded.yaml"), "NetworkPolicy")), 1)

    def test_alerts_and_dashboard_are_those_of_the_folder_monitoring(self):
        manifests = chart.render(CHART, DEPLOY / "checks/chart-full.yaml")
        [rules] = of_kind(manifests, "PrometheusRule")
        self.assertEqual(rules["metadata"]["labels"], {"app": "orders", "release": "prometheus"})
        self.check_rules(rules)
        [board] = [m for m in of_kind(manifests, "ConfigMap") if "semel.json" in m["data"]]
        self.assertEqual(board["metadata"]["labels"], {"app": "orders", "grafana_dashboard": "yes"})
        self.assertEqual(board["metadata"]["annotations"], {"grafana_folder": "Semel"})
        self.assertEqual(json.loads(board["data"]["semel.json"]), json.loads((DEPLOY / "monitoring/board.json").read_text()))
        plain = chart.render(CHART, "values-demo.yaml", "values-embedded.yaml")
        self.assertEqual((of_kind(plain, "PrometheusRule"), len(of_kind(plain, "ConfigMap"))), ([], 1))

    def test_another_configuration_is_another_pod(self):
        example = ["values-application.yaml", "values-redis.yaml"]
        before = self.checksum(*example)
        self.assertRegex(before, r"^[0-9a-f]{64}$")
        self.assertEqual(self.checksum(*example), before)
        self.assertEqual(self.checksum(*example, {"replicas": 5}), before)
        self.assertNotEqual(self.checksum(*example, {"config": {"log": {"level": "debug"}}}), before)

    def test_it_refuses_what_makes_no_working_pod(self):
        demo = ["values-demo.yaml", "values-embedded.yaml"]
        misspelt = [({name: {"form": []}}, "was unexpected") for name in ("networkPolicy", "service", "semel", "container")]
        for over, reason in REFUSALS + misspelt:
            with self.subTest(reason=reason), self.assertRaisesRegex(chart.Refused, reason):
                chart.render(CHART, *demo, over)

    def test_everything_can_be_switched_off(self):
        manifests = chart.render(CHART, "values-demo.yaml", "values-embedded.yaml", {
            "replicas": 0, "podDisruptionBudget": None, "networkPolicy": {"enabled": False}})
        self.assertEqual(self.check(manifests)["spec"]["replicas"], 0)
        self.assertEqual({m["kind"] for m in manifests}, {"ConfigMap", "Service", "StatefulSet"})


@unittest.skipUnless("CHART_ENGINE" in os.environ, "by hand: deploy/checks/engine")
class Engine(unittest.TestCase):
    def rendered(self, *files):
        """The result of Go's own templates."""
        paths = [CHART / file for file in files]
        return subprocess.run([os.environ["CHART_ENGINE"], CHART, *paths], capture_output=True, text=True)

    def test_the_renderer_of_the_tests_renders_like_go(self):
        for files in EXAMPLES:
            with self.subTest(values=files):
                result = self.rendered(*files)
                self.assertEqual(result.returncode, 0, result.stderr)
                documents = [document for document in yaml.safe_load_all(result.stdout) if document]
                check_configuration(self, configuration(documents))
                self.assertEqual(self.comparable(documents), self.comparable(chart.render(CHART, *files)))

    def comparable(self, manifests):
        """The configuration is compared by its members: libraries indent lists and quote words in ways of their own."""
        for manifest in manifests:
            if manifest["kind"] == "ConfigMap":
                manifest["data"] = {name: yaml.safe_load(text) for name, text in manifest["data"].items()}
            elif manifest["kind"] in ("Deployment", "StatefulSet"):
                manifest["spec"]["template"]["metadata"]["annotations"].pop("checksum/config")
        return manifests

    def test_it_refuses_the_same_values(self):
        for over, reason in REFUSALS:
            with self.subTest(reason=reason), tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                yaml.safe_dump(over, file)
                file.flush()
                result = self.rendered("values-demo.yaml", "values-embedded.yaml", file.name)
                self.assertEqual((result.returncode, re.search(reason, result.stderr) is not None), (1, True), result.stderr)


if __name__ == "__main__":
    unittest.main()
