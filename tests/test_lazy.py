"""What a translation imports."""

import subprocess
import sys


def test_translating_and_searching_are_imported_without_torch() -> None:
    code = (
        "import sys, allyouneed.translator, allyouneed.bundle, allyouneed.decode, allyouneed.light.search\n"
        "assert 'torch' not in sys.modules\n"
        "from allyouneed.lazy import torch\n"
        "assert torch.tensor([1]).tolist() == [1] and 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
