"""The containers: what they run is what the programs take, and nothing is swapped or dumped."""

from __future__ import annotations

import re
import subprocess
import tomllib

import click
import pytest
import typer
import yaml

from panprivacy.cli import app
from panprivacy.service.config.loading import load
from tests.commands import run_command
from tests.docs.pages import ROOT
from tests.docs.test_service import NGINX

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
OURS = [name for name, one in COMPOSE.items() if one["image"] == "panprivacy"]
CONTAINER = (ROOT / "Containerfile").read_text()
SITE = (ROOT / "examples/service/container.conf").read_text()


def test_there_are_nginx_the_service_and_the_dashboard():
    assert [*COMPOSE] == ["nginx", "serve", "dashboard"]
    assert OURS == ["serve", "dashboard"]


@pytest.mark.parametrize("name", COMPOSE)
def test_no_root_is_written_to_and_nothing_is_swapped_or_dumped(name):
    one = COMPOSE[name]
    assert one["read_only"]
    assert "/tmp" in one["tmpfs"]
    assert one["mem_limit"] == one["memswap_limit"]
    assert one["ulimits"]["core"] == 0


@pytest.mark.parametrize("name", OURS)
def test_its_command_is_one_that_the_program_takes(name):
    command, *words = COMPOSE[name]["command"]
    group = typer.main.get_command(app)
    found = group.get_command(click.Context(group), command)
    with found.make_context(command, words) as context:
        assert str(context.params["config"]) == "/etc/panprivacy/panprivacy.toml"


@pytest.mark.parametrize("name", OURS)
def test_folders_that_are_written_to_are_volumes(name):
    mounted = {volume.split(":")[1] for volume in COMPOSE[name]["volumes"]}
    written = re.search("^VOLUME (.+)$", CONTAINER, re.MULTILINE)[1].split()
    assert {"/etc/panprivacy", *written} == mounted
    assert re.search("^ENV NUMBA_CACHE_DIR=(.+)$", CONTAINER, re.MULTILINE)[1] in written
    extra = re.search(r"/src\[(\w+)\]", CONTAINER)[1]
    assert (
        extra
        in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )


def test_nginx_sends_to_where_the_recipe_listens(tmp_path):
    assert run_command("init", "a.toml", "--recipe", "website", cwd=tmp_path).code == 0
    streams = load(tmp_path / "a.toml").streams.values()
    ports = [one.listen.rpartition(":")[2] for stream in streams for one in stream.syslog]
    assert re.findall(r"server=127\.0\.0\.1:(\d+)", SITE) == ports
    (origin,) = COMPOSE["dashboard"]["command"][3:]
    assert f"server_name {origin.removeprefix('http://')};" in SITE


@pytest.mark.skipif(NGINX is None, reason="apt-get install nginx-light")
def test_nginx_takes_its_configuration(tmp_path):
    (tmp_path / "site.conf").write_text(SITE.replace("listen 80;", "listen 127.0.0.1:18080;"))
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; events {{}} http {{ include {tmp_path}/site.conf; }}"
    )
    words = [NGINX, "-t", "-p", tmp_path, "-e", tmp_path / "log", "-c", tmp_path / "nginx.conf"]
    found = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
