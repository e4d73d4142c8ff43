"""No file of the repository holds a key: what `detect-secrets` finds by the shapes of keys."""

import subprocess

from detect_secrets import SecretsCollection
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.settings import transient_settings

from selfeval.paths import ROOT
from selfeval.secrets import SECRET_VALUE

GUESSES = {  # not by a shape, or, as passwords in addresses, planted by tests
    "Base64HighEntropyString", "BasicAuthDetector", "HexHighEntropyString", "IPPublicDetector", "KeywordDetector",
}  # fmt: skip
PLUGINS = sorted({plugin.__name__ for plugin in get_mapping_from_secret_type_to_class().values()} - GUESSES)


def found(*files):
    """Return what looks like a key in files: {file: kinds}."""
    secrets = SecretsCollection(root=str(ROOT))
    with transient_settings({"plugins_used": [{"name": name} for name in PLUGINS]}):
        secrets.scan_files(*files, num_processors=1)
    return {file: {secret.type for secret in kinds} for file, kinds in secrets.data.items() if kinds}


def test_no_tracked_file_holds_a_key(tmp_path):
    (tmp_path / "planted.py").write_text("key = 'AKIA" + "A1B2C3D4E5F6G7H8'\n")
    assert found(str(tmp_path / "planted.py"))
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [name for name in tracked.stdout.split("\0") if name]
    texts = [name for name in files if name.endswith((".py", ".md", ".yaml", ".ipynb", ".toml", ".txt", "Makefile"))]
    assert len(texts) > 100 and found(*texts) == {}
    read = ((name, (ROOT / name).read_bytes().decode("utf-8", "replace")) for name in files if (ROOT / name).is_file())
    assert [name for name, text in read if SECRET_VALUE.search(text)] == []
