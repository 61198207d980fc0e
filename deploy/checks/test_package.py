"""The package of the binary that SEMEL_BINARY names: its files, and that they work. deploy/checks/package installs it."""

import concurrent.futures
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import pages
import runbooks
from binary import BINARY, DEPLOY

FILES = {
    "bin/semel": 0o755,
    "share/bash-completion/completions/semel": 0o644,
    "share/doc/semel/README.md": 0o644,
    "share/doc/semel/copyright": 0o644,
    "share/fish/vendor_completions.d/semel.fish": 0o644,
    "share/man/man1/semel.1.gz": 0o644,
}
CONTRACT = DEPLOY.parent / "Sources/Idempotency"
# To come, so that no file has been made since.
EPOCH = 2_000_000_000


def checkouts():
    """The folder with the sources of the packages that are linked into the binary."""
    folders = [folder / "checkouts" for folder in (pathlib.Path(BINARY).resolve().parents[2], DEPLOY.parent / ".build")]
    return next(folder for folder in folders if folder.is_dir())


def make(script, binary, folder, variables, **options):
    """The package and the archive."""
    environment = {**os.environ, "PACKAGE_COMPRESSION": "none", **variables}
    ended = subprocess.run([script, binary, folder], env=environment, **options, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [package], [archive] = folder.glob("semel_*.deb"), folder.glob("semel-*.tar")
    return package, archive


def make_here(folder):
    folder.mkdir()
    return make(DEPLOY / "package", BINARY, folder, {"SOURCE_DATE_EPOCH": str(EPOCH), "TZ": "Asia/Tokyo"}, umask=0o022)


def make_elsewhere(folder):
    """The same, as another user makes them of another copy: with other times and modes, at the time of its last commit, with
    another umask, locale and time zone, and in a folder whose files get its group."""
    root = folder / "copy"
    shutil.copytree(DEPLOY, root / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    for file in (DEPLOY.parent / "config.yaml", DEPLOY.parent / "Package.swift", *CONTRACT.glob("*.md")):
        copy = root / file.relative_to(DEPLOY.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    shutil.copy(BINARY, root / "binary")
    commit = ["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "--allow-empty", "--message", "one"]
    for command in (["init", "--quiet"], commit):
        subprocess.run(["git", "-C", root, *command], env={**os.environ, "GIT_COMMITTER_DATE": f"@{EPOCH} +0000"}, check=True)
    for number, path in enumerate(path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts):
        os.utime(path, (number, number))
        path.chmod(0o777 if os.access(path, os.X_OK) else 0o606)
    for name in ("made", "temporary"):
        (folder / name).mkdir()
        (folder / name).chmod(0o3777)
    variables = {
        "TMPDIR": str(folder / "temporary"), "TZ": "America/Lima", "LC_ALL": "de_DE.UTF-8", "LOCPATH": str(folder),
        "CHECKOUTS": str(checkouts()), "TAR_OPTIONS": "--mode=700", "HOME": "/nonexistent"}
    if shutil.which("localedef") and pathlib.Path("/usr/share/i18n/locales/de_DE").exists():
        # It sorts otherwise. Where it cannot be made, the locale has its name alone.
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"], check=True)
    somebody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        subprocess.run([root / "binary", "--version"], cwd="/", **somebody, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        somebody = {}  # Swift's runtime is in a folder that is not everybody's.
    return make(root / "deploy/package", root / "binary", folder / "made", variables, umask=0o077, cwd="/", **somebody)


@unittest.skipUnless(shutil.which("dpkg-deb"), "no Debian")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.folder.chmod(0o755)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            made, again = pool.submit(make_here, cls.folder / "here"), pool.submit(make_elsewhere, cls.folder / "elsewhere")
            cls.made, cls.again = made.result(), again.result()
        cls.package, cls.archive = cls.made
        cls.tree = cls.folder / "tree"
        subprocess.run(["dpkg-deb", "--raw-extract", cls.package, cls.tree], check=True)

    def members(self):
        listing = subprocess.run(["dpkg-deb", "--fsys-tarfile", self.package], capture_output=True, check=True).stdout
        (self.folder / "data.tar").write_bytes(listing)
        with tarfile.open(self.folder / "data.tar") as archive:
            return archive.getmembers()

    def check_members(self, members, strip, files):
        for member in members:
            self.assertEqual((member.uid, member.gid, member.mtime), (0, 0, EPOCH), member.name)
            self.assertTrue(member.isdir() or member.isfile(), member.name)
            if member.isdir():
                self.assertEqual(member.mode, 0o755, member.name)
        names = [member.name for member in members]
        self.assertEqual(names, sorted(names, key=lambda name: name.split("/")))
        found = {re.sub(strip, "", m.name): m.mode for m in members if m.isfile()}
        names = [page.name for page in (*DEPLOY.glob("*.md"), *CONTRACT.glob("*.md"))]
        names += [f"manual/{page.name}" for page in pages.MANUAL.glob("*.md")]
        names += ["monitoring/alerts.yaml", "monitoring/board.json"]
        documents = {f"{next(n for n in files if n.endswith('README.md'))[:-9]}{name}" for name in names}
        self.assertEqual(found, {**dict.fromkeys(documents, 0o644), **files})

    def test_the_same_binary_makes_the_same_bytes_wherever_and_by_whomever(self):
        for one, other in zip(self.made, self.again):
            self.assertEqual(one.name, other.name)
            self.assertEqual(subprocess.run(["cmp", one, other], capture_output=True, text=True).stdout, "")

    def test_the_package_has_the_right_files(self):
        self.check_members(self.members(), r"^\./", {
            **{f"usr/{name}": mode for name, mode in FILES.items()},
            "usr/share/zsh/vendor-completions/_semel": 0o644,
            "usr/lib/systemd/system/semel.service": 0o644,
            "etc/semel/config.yaml": 0o644})

    def test_the_archive_has_the_right_files(self):
        with tarfile.open(self.archive) as archive:
            self.check_members(archive.getmembers(), r"^semel-[^/]*/", {
                **FILES,
                "share/zsh/site-functions/_semel": 0o644,
                "share/doc/semel/config.yaml": 0o644,
                "lib/systemd/system/semel.service": 0o644})

    def test_the_licence_of_every_package_that_is_linked_in_is_there(self):
        text = (self.tree / "usr/share/doc/semel/copyright").read_text()
        for name in ["Semel", "Swift's runtime and Foundation", *(folder.name for folder in checkouts().iterdir())]:
            self.assertRegex(text, f"(?m)^{re.escape(name)}\n=+\n\n", name)
        self.assertGreater(text.count("Apache License"), 10)

    def test_every_package_has_an_exact_version(self):
        manifest = (DEPLOY.parent / "Package.swift").read_text()
        named = {url.rsplit("/", 1)[1] for url in re.findall(r'\.package\(url: "([^"]+)", exact: "[\d.]+"\)', manifest)}
        self.assertEqual(named, {folder.name for folder in checkouts().iterdir()})

    @unittest.skipIf("/debug/" in str(BINARY), "a debug build is not shipped")
    def test_the_binary_loads_nothing_from_its_own_folder_and_binds_at_its_start(self):
        dynamic = subprocess.run(["readelf", "-d", self.tree / "usr/bin/semel"], capture_output=True, text=True, check=True)
        self.assertNotRegex(dynamic.stdout, r"RUNPATH|RPATH")
        self.assertRegex(dynamic.stdout, r"BIND_NOW|Flags:.*NOW")

    def test_what_the_package_says_of_itself(self):
        control = dict(re.findall(r"(?m)^([\w-]+): (.*)$", (self.tree / "DEBIAN/control").read_text()))
        self.assertEqual((control["Package"], control["Section"]), ("semel", "net"))
        for library in ("libc6", "libcurl4", "libhiredis0.14", "libsqlite3-0"):
            self.assertRegex(control["Depends"], rf"(^|, ){re.escape(library)} \(>= [\d.]+\)(,|$)")
        self.assertEqual((self.tree / "DEBIAN/conffiles").read_text(), "/etc/semel/config.yaml\n")
        subprocess.run(["md5sum", "--check", "--quiet", "DEBIAN/md5sums"], cwd=self.tree, check=True)
        for script in ("postinst", "prerm", "postrm"):
            path = self.tree / "DEBIAN" / script
            self.assertTrue(os.access(path, os.X_OK), script)
            subprocess.run(["sh", "-n", path], check=True)

    def test_the_binary_of_the_package_works(self):
        binary = self.tree / "usr/bin/semel"
        version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        self.assertIn(f"Version: {version}\n", (self.tree / "DEBIAN/control").read_text())
        checked = subprocess.run(
            [binary, "check", self.tree / "etc/semel/config.yaml"], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        sections = subprocess.run(["readelf", "-S", binary], capture_output=True, text=True, check=True).stdout
        self.assertNotIn(".symtab", sections, "not stripped")

    def test_the_unit_starts_the_binary_of_the_package(self):
        unit = (self.tree / "usr/lib/systemd/system/semel.service").read_text()
        for path in re.findall(r"(?m)^Exec\w+=(/usr/\S+)", unit) + re.findall(r"file:(\S+)", unit):
            self.assertTrue((self.tree / path[1:]).exists(), path)
        self.assertNotIn("/usr/local", unit)

    def test_each_link_of_the_pages_leads_to_what_the_package_has(self):
        folder = self.tree / "usr/share/doc/semel"
        documents = sorted(folder.rglob("*.md"))
        self.assertEqual(pages.broken(documents), [])
        self.assertLessEqual(set(documents), pages.reached(folder / "README.md"))
        for page in documents:
            for link in pages.links(page):
                self.assertTrue(pages.target(page, link).is_relative_to(folder), f"{page.name}: {link}")
        self.assertIn("](../OPERATION.md#match)", (folder / "manual/protect-a-route.md").read_text())
        self.assertIn("](/etc/semel/config.yaml)", (folder / "manual/kubernetes.md").read_text())

    def check_runbooks(self, documents, prefix):
        """That each alert's URL leads to its chapter, if what `documents` has is installed below a prefix."""
        rules = runbooks.rules(documents / "monitoring/alerts.yaml")
        self.assertEqual(list(rules), list(runbooks.rules()))
        for name, rule in rules.items():
            url, anchor = rule["annotations"]["runbook_url"].split("#")
            self.assertEqual(url.removesuffix("runbooks.md"), f"file://{prefix}/share/doc/semel/", name)
            self.assertEqual(anchor, name.lower())
            self.assertIn(anchor, pages.anchors(documents / "runbooks.md"))

    def test_the_alerts_of_the_package_and_of_the_archive_lead_to_their_runbooks(self):
        self.check_runbooks(self.tree / "usr/share/doc/semel", "/usr")
        local = self.folder / "local"
        local.mkdir()
        subprocess.run(["tar", "-C", local, "--touch", "--strip-components=1", "-xf", self.archive], check=True)
        self.check_runbooks(local / "share/doc/semel", "/usr/local")

    def test_the_manuals_command_sets_another_url_of_the_runbooks(self):
        [command] = re.findall(r"^sed -i .*runbook_url.* alerts\.yaml$", (runbooks.MANUAL / "metrics.md").read_text(), re.M)
        for number, file in enumerate((runbooks.ALERTS, self.tree / "usr/share/doc/semel/monitoring/alerts.yaml")):
            folder = self.folder / f"rules-{number}"
            folder.mkdir()
            before = runbooks.rules(file)
            shutil.copy(file, folder / "alerts.yaml")
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
            for name, rule in runbooks.rules(folder / "alerts.yaml").items():
                changed = {"runbook_url": f"https://wiki.example/semel/runbooks.md#{name.lower()}"}
                annotations = {**before[name]["annotations"], **changed}
                self.assertEqual(rule, {**before[name], "annotations": annotations})

    def test_the_manual_page_has_every_command_and_option(self):
        page = gzip.decompress((self.tree / "usr/share/man/man1/semel.1.gz").read_bytes()).decode()
        for command in ("run", "check", "key list", "store backup", "conformance"):
            self.assertIn(f".SS {command}\n", page)
            text = subprocess.run([BINARY, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
            options = set(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", text)) - {"--version", "--help"}
            section = page.split(f".SS {command}\n")[1].split("\n.S")[0].replace("\\-", "-")
            self.assertEqual(options - set(re.findall(r"--[\w-]+", section)), set(), command)
        if shutil.which("groff"):
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True)
            self.assertEqual(result.stderr, "")

    def test_the_completions_are_of_their_shells(self):
        share = self.tree / "usr/share"
        subprocess.run(["bash", "-n", share / "bash-completion/completions/semel"], check=True)
        self.assertTrue((share / "zsh/vendor-completions/_semel").read_text().startswith("#compdef semel"))
        self.assertIn("complete -c 'semel'", (share / "fish/vendor_completions.d/semel.fish").read_text())


if __name__ == "__main__":
    unittest.main()
