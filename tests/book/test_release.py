"""What a release says of itself: versions, model cards, citation files, workflows."""

import datetime
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import reading_order
import yaml

import transformer_lib
from tools import model_cards, release

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf8")


def test_every_place_names_the_same_version():
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    citation = yaml.safe_load(text("CITATION.cff"))
    assert transformer_lib.__version__ == version
    assert citation["version"] == version == json.loads(text(".zenodo.json"))["version"]
    assert isinstance(citation["date-released"], datetime.date)
    newest, day = re.search(r"^## (\S+) \((.+)\)", text("CHANGELOG.md"), re.MULTILINE).groups()
    assert newest == version
    assert f"{citation['date-released']:%d %B %Y}".lstrip("0") == day


def test_the_first_release_counts_its_chapters():
    said = re.search(r"^The first release: (\d+) chapters", text("CHANGELOG.md"), re.MULTILINE)[1]
    assert int(said) == len(reading_order.chapters())


def test_a_release_says_what_is_new_in_it():
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    news = release.notes(text("CHANGELOG.md"), version)
    assert "The first release" in news and "## " not in news.replace("###", "")
    older = "# Changelog\n\n## 1.1.0 (today)\n\nNew.\n\n## 1.0.0 (before)\n\nOld.\n"
    assert release.notes(older, "1.1.0") == "New.\n" and release.notes(older, "1.0.0") == ""


def test_a_tag_that_is_not_the_version_is_no_release(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(release, "BUILD", tmp_path)
    assert release.main(["v0.0.1"]) == 1
    assert "the tag is v0.0.1 and pyproject.toml names" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
    assert release.main([f"v{release.version()}"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release", "release.md"]


def test_the_steps_of_a_release_name_what_is_there():
    steps = text("CONTRIBUTING.md").partition("## Release\n")[2].partition("\n## ")[0]
    flow = text(".github/workflows/release.yml")
    assert 'tags: ["v*"]' in flow and 'make release TAG="$GITHUB_REF_NAME"' in flow
    assert "git push origin v" in steps and "`make release`" in steps
    for name in re.findall(r"`([\w./]+\.\w+)`", steps):
        assert (ROOT / name).exists(), name


def test_the_citation_files_have_what_services_need():
    """The fields that the Citation File Format and Zenodo require."""
    citation, zenodo = yaml.safe_load(text("CITATION.cff")), json.loads(text(".zenodo.json"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert {"title", "description", "upload_type", "creators", "license"} <= set(zenodo)
    assert citation["title"] == zenodo["title"]
    assert all(author.get("name") for author in citation["authors"] + zenodo["creators"])


@pytest.mark.parametrize("folder", model_cards.runs(), ids=lambda folder: folder.name)
def test_a_model_card_is_what_the_run_says(folder):
    card = (folder / "README.md").read_text(encoding="utf8")
    assert card == model_cards.card(folder), "stale: run python -m tools.model_cards"
    _, front, body = card.split("---\n", 2)
    about = yaml.safe_load(front)
    [model] = about["model-index"]
    [result] = model["results"]
    scores = json.loads((folder / "scores.json").read_text(encoding="utf8"))
    for metric in result["metrics"]:
        assert metric["value"] == pytest.approx(scores[metric["type"]], abs=0.005)
    assert model["name"] == folder.name and set(about["language"]) == {"de", "en"}
    assert "{" not in body and "Data" in body


def test_a_score_that_changes_makes_the_card_stale(tmp_path):
    import shutil

    run = model_cards.runs()[0]
    copy = tmp_path / run.name
    shutil.copytree(run, copy)
    before = model_cards.card(copy)
    scores = json.loads((copy / "scores.json").read_text(encoding="utf8"))
    (copy / "scores.json").write_text(json.dumps(scores | {"bleu": scores["bleu"] + 1}))
    assert model_cards.card(copy) != before


# ---------------------------------------------------------------- workflows, read dry


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_whole_and_its_actions_are_pinned(path):
    raw = path.read_text(encoding="utf8")
    flow = yaml.safe_load(raw)
    assert flow["name"] == path.stem and (flow.get("on") or flow.get(True))
    assert flow["permissions"]["contents"] == "read"
    for job in flow["jobs"].values():
        assert set(job.get("permissions", {})) <= {"contents"}, "no more than a release needs"
        assert job["runs-on"] and 0 < job["timeout-minutes"] <= 150
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), step
    for used in re.findall(r"uses: (\S+.*)", raw):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", used), used


def test_one_action_has_one_version():
    found = {}
    for path in WORKFLOWS:
        for action, at in re.findall(r"uses: ([\w/-]+)@(.+)", path.read_text(encoding="utf8")):
            found.setdefault(action, set()).add(at)
    assert found and all(len(versions) == 1 for versions in found.values()), found


def test_workflows_ask_make_for_targets_that_are_there():
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    for path in WORKFLOWS:
        flow = path.read_text(encoding="utf8")
        for line in re.findall(r"\bmake ([a-z -]+)$", flow, re.MULTILINE):
            assert set(line.split()) <= targets, (path.name, line)


def test_each_lab_has_a_job_of_its_own_once_a_week():
    """Hundreds of variants of eight labs, one after the other, don't end in a job's time."""
    flow = yaml.safe_load(text(".github/workflows/newest.yml"))
    parts = flow["jobs"]["weekly"]["strategy"]["matrix"]["part"]
    labs = sorted(path.name.partition("_")[0] for path in (ROOT / "labs").glob("lab*.ipynb"))
    assert parts == ["tests", *labs]
    assert "-m weekly $(if $(LAB),-k $(LAB)) labs/tests" in text("Makefile")


def test_once_a_week_the_pages_are_judged_for_speed():
    flow = yaml.safe_load(text(".github/workflows/newest.yml"))
    runs = [step.get("run") for step in flow["jobs"]["speed"]["steps"]]
    assert runs[-2:] == ["make book", "make lighthouse"]


def test_every_supported_python_is_tested():
    asked = tomllib.loads(text("pyproject.toml"))["project"]["requires-python"]
    flow = yaml.safe_load(text(".github/workflows/test.yml"))
    versions = flow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert versions[0] == asked.removeprefix(">=") and versions == ["3.11", "3.12", "3.13", "3.14"]


SCHEMAS = [
    *(("github-workflows", path) for path in WORKFLOWS),
    *(("github-issue-config" if path.stem == "config" else "github-issue-forms", path)
      for path in FORMS),
    ("dependabot", ROOT / ".github" / "dependabot.yml"),
    ("citation-file-format", ROOT / "CITATION.cff"),
]


def against(schema: str, path: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    return subprocess.run([*command, str(path)], capture_output=True, text=True)


@pytest.mark.parametrize(("schema", "path"), SCHEMAS, ids=lambda it: getattr(it, "name", it))
def test_files_are_as_their_readers_want_them(schema, path):
    done = against(schema, path)
    assert done.returncode == 0, done.stdout


def test_the_schemas_refuse_what_is_wrong(tmp_path):
    wrong = tmp_path / "page.yml"
    wrong.write_text(FORMS[-1].read_text(encoding="utf8").replace("type: input", "type: inptu"))
    assert against("github-issue-forms", wrong).returncode == 1


def test_the_devcontainer_takes_what_binder_takes():
    about = json.loads(text(".devcontainer/devcontainer.json"))
    assert "binder/requirements.txt" in about["postCreateCommand"]
    assert (ROOT / "binder" / "requirements.txt").exists()


def pinned(name: str) -> dict[str, set[str]]:
    """Package, in lower case with hyphens -> its versions in a file of requirements."""
    found = {}
    for package, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text(name), re.MULTILINE):
        found.setdefault(re.sub(r"[-_.]+", "-", package).lower(), set()).add(version)
    return found


def test_the_lock_holds_what_is_required():
    required, locked = pinned("requirements.txt"), pinned("requirements.lock")
    assert {package: locked.get(package) for package in required} == required
    entries = re.split(r"\n(?=\w)", text("requirements.lock"))[1:]
    assert len(entries) > 200 and all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text("requirements.lock")  # from wherever pip takes its packages
    assert "--require-hashes -r requirements.lock" in text("book/how-to-use.md")


def test_dependabot_looks_where_requirements_are():
    about = yaml.safe_load(text(".github/dependabot.yml"))
    [pip] = [entry for entry in about["updates"] if entry["package-ecosystem"] == "pip"]
    for folder in pip["directories"]:
        assert (ROOT / folder.strip("/") / "requirements.txt").exists(), folder
