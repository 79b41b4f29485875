import socket

import pytest

from scripts import services


def test_a_taken_port_is_named_with_a_way_out():
    with socket.create_server((services.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(services.Failure, match=rf'port {port} for mlflow .*--mlflow-port {port + 1}"'):
            services.require_free("mlflow", port)


def test_nothing_answers_on_a_free_port():
    with socket.create_server((services.HOST, 0)) as server:
        port = server.getsockname()[1]
    services.require_free("prefect", port)
    assert not services.answers(f"http://{services.HOST}:{port}/health")


def test_a_service_that_ends_while_starting_shows_the_end_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(services, "STATE", tmp_path)
    monkeypatch.setattr(services, "PIDS", tmp_path / "processes.json")
    monkeypatch.setattr(services, "PREFECT_TOML", tmp_path / "prefect.toml")
    services.start("broken", ["python", "-c", "raise SystemExit('no such database')"], {})
    with pytest.raises(services.Failure, match=r"broken ended while starting(.|\n)*no such database"):
        services.wait_for("broken", None, timeout=60)
    services.down()
    assert not services.PIDS.exists()
