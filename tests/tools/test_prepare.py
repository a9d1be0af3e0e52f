"""What make does before its targets: it finds a way, or says what to install, at once."""

import os
import subprocess
import sys
import tomllib

import find_browser
import prepare
import pytest
import python_packages
import system_packages


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Nothing on PATH, and nobody who could install anything."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(find_browser, "_downloaded", lambda: iter(()))
    monkeypatch.setattr(find_browser, "_playwright", lambda *words: "Error: no route")
    return tmp_path


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_targets_use_extras_that_exist():
    project = tomllib.loads(prepare.PROJECT.read_text(encoding="utf-8"))["project"]
    for extras in prepare.EXTRAS.values():
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert set(prepare.EXTRAS["demo"].split(",")).isdisjoint({"spark", "test", "docs", "lint"})


def test_an_old_python_is_named(monkeypatch, alone):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer.* make PYTHON="):
        prepare.check_python()


def test_a_newer_python_is_taken_instead(monkeypatch, alone):
    taken = []
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(os, "execv", lambda path, words: taken.append(path) or sys.exit())
    for name in ("python3.9", "python3.12", "python3.11"):
        program(alone / name, "exit 1")
    with pytest.raises(SystemExit):
        prepare.check_python()
    assert taken == [str(alone / "python3.12")]


def test_without_the_rest_of_venv_it_says_which_package_has_it(monkeypatch, alone):
    monkeypatch.setattr(prepare, "VENV", alone / "venv")
    monkeypatch.setattr(prepare, "PYTHON", alone / "venv" / "bin" / "python")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"apt-get install python3\.\d+-venv(.|\n)*no apt-get"):
        prepare.make_environment()
    assert not (alone / "venv").exists()


PLAYED = {  # what a stand-in for an environment's Python does, by what it is asked
    "no uv": 'case "$*" in *uv*) exit 1;; *config*) ;; *) sleep 60; touch done;; esac',
    "uv fails": """case "$*" in
        "-m uv --version") ;; "-m uv pip"*) echo no route; exit 2;; *config*) ;;
        *) echo "$*" > asked;; esac""",
}


def test_installing_stops_when_what_goes_on_beside_it_fails(monkeypatch, tmp_path):
    program(tmp_path / "python", PLAYED["no uv"])
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as beside:
        beside.wait()
    with pytest.raises(SystemExit, match="3"):
        python_packages.install(tmp_path / "python", "all", beside=beside)
    assert not (tmp_path / "done").exists()


def test_pip_installs_what_uv_does_not(monkeypatch, tmp_path, capsys):
    program(tmp_path / "python", PLAYED["uv fails"])
    monkeypatch.chdir(tmp_path)
    python_packages.install(tmp_path / "python", "rankdrift[rank]")
    assert (tmp_path / "asked").read_text().split()[:3] == [
        "-m",
        "pip",
        "--disable-pip-version-check",
    ]
    assert (tmp_path / "asked").read_text().endswith("rankdrift[rank]\n")
    assert "with pip, then" in capsys.readouterr().out


def test_uv_asks_the_indexes_that_pip_would(monkeypatch, tmp_path):
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://a.example/simple\ncert = /a/file.pem\n")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b.example/simple https://c.example/it's")
    monkeypatch.setenv("PIP_CERT", "/another/file.pem")
    found = python_packages.pip_settings([sys.executable, "-m", "pip"])
    options, variables = python_packages.as_uv(found)
    text = " ".join(options)
    assert "--index-url https://a.example/simple " in text
    assert (
        "--extra-index-url https://b.example/simple --extra-index-url https://c.example/it's "
        in text
    )
    assert variables == {"SSL_CERT_FILE": "/another/file.pem"}


def test_only_root_or_sudo_without_a_password_may_install(monkeypatch, alone):
    assert system_packages.may_install() is None  # no apt-get
    program(alone / "apt-get", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert system_packages.may_install() is None
    program(alone / "sudo", "exit 1")
    assert system_packages.may_install() is None
    assert "without a password" in system_packages.why_not()
    program(alone / "sudo", "exit 0")
    assert system_packages.may_install() == ["sudo", "-n"]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert system_packages.may_install() == []


def test_a_browser_must_start_to_be_found(alone):
    program(alone / "chromium", "echo error while loading shared libraries >&2; exit 127")
    assert find_browser.find_browser() is None
    program(alone / "google-chrome", "echo '<html></html>'")
    assert find_browser.find_browser() == str(alone / "google-chrome")


def test_without_a_browser_it_says_what_was_tried_and_what_to_install(alone):
    with pytest.raises(SystemExit) as stopped:
        find_browser.bring_browser()
    said = str(stopped.value)
    for words in ("on PATH", "Error: no route", "no apt-get", "apt-get install chromium", "quick"):
        assert words in said
