"""How a file names what an edit needs, and where an import goes."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.rewriting import applied, first, model_of
from torchlint.edits.rewriter import Rewriter
from torchlint.rule import NoFixError

NAMES = [
    pytest.param("import torch\nx = 1\n", "torch.no_grad", "torch.no_grad", "", id="package"),
    pytest.param("import torch as th\nx = 1\n", "torch.no_grad", "th.no_grad", "", id="alias"),
    pytest.param("from torch import no_grad as n\nx = 1\n", "torch.no_grad", "n", "", id="name"),
    pytest.param("import torch\nfrom torch import nn\nx = 1\n", "torch.nn.Linear", "nn.Linear", "", id="longest"),
    pytest.param("import torch.nn as n\nx = 1\n", "torch.no_grad", "torch.no_grad", "import torch", id="part of it"),
    pytest.param(
        "from torch.utils.data.distributed import DistributedSampler as DS\nx = 1\n",
        "torch.utils.data.DistributedSampler",
        "DS",
        "",
        id="exported twice",
    ),
    pytest.param(
        "def f():\n    import torch as t\n    x = 1\n", "torch.no_grad", "t.no_grad", "", id="in the function"
    ),
    pytest.param("def f():\n    x = 1\nimport torch\n", "torch.no_grad", "torch.no_grad", "", id="below the function"),
    pytest.param(
        "def g():\n    import torch as t\ndef f():\n    x = 1\n",
        "torch.no_grad",
        "torch.no_grad",
        "import torch",
        id="in another function",
    ),
    pytest.param(
        "try:\n    import torch\nexcept ImportError:\n    pass\ndef f():\n    x = 1\n",
        "torch.no_grad",
        "torch.no_grad",
        "",
        id="tried",
    ),
    pytest.param("import os\nx = 1\n", "math.sqrt", "math.sqrt", "import math", id="another package"),
]


@pytest.mark.parametrize(("text", "qualified", "expected", "imported"), NAMES)
def test_name_for(text: str, qualified: str, expected: str, imported: str) -> None:
    model = model_of(text)
    found = Rewriter(model).name_for(qualified, first(model, "x", cst.Assign))
    assert found[0] == expected
    assert "".join(edit.text for edit in found[1]).strip("\n") == imported


TAKEN = [
    pytest.param("def f(torch):\n    x = 1\n", id="parameter"),
    pytest.param("torch = None\ndef f():\n    x = 1\n", id="variable"),
    pytest.param(
        "try:\n    import torch\nexcept ImportError:\n    torch = object()\ndef f():\n    x = 1\n", id="replaced"
    ),
    pytest.param("def f():\n    x = 1\n    import torch\n", id="imported later"),
    pytest.param("if TYPE_CHECKING:\n    import torch\ndef f():\n    x = 1\n", id="for types only"),
    pytest.param("y = [(x := 1) for torch in range(2)]\n", id="comprehension"),
]


@pytest.mark.parametrize("text", TAKEN)
def test_a_name_that_means_something_else_is_not_used(text: str) -> None:
    model = model_of(text)
    place = first(model, "x", cst.Name)
    with pytest.raises(NoFixError, match="`torch` is not imported there, and its name is taken"):
        Rewriter(model).name_for("torch.no_grad", place)


IMPORTS = [
    pytest.param(
        "import os\nimport sys\n\nx = 1\n", "import os\nimport sys\nimport torch\n\nx = 1\n", id="after imports"
    ),
    pytest.param(
        '"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n',
        '"""Doc."""\nfrom __future__ import annotations\nimport torch\n\nx = 1\n',
        id="after future imports",
    ),
    pytest.param('"""Doc."""\nx = 1\n', '"""Doc."""\n\nimport torch\nx = 1\n', id="after the docstring"),
    pytest.param(
        "import os\nfrom torch import nn\n\nfrom .a import b\n\nx = 1\n",
        "import os\nimport torch\nfrom torch import nn\n\nfrom .a import b\n\nx = 1\n",
        id="before a part of it",
    ),
    pytest.param(
        "import numpy\n\nfrom ..a import b\n\nx = 1\n",
        "import numpy\nimport torch\n\nfrom ..a import b\n\nx = 1\n",
        id="before the project's own",
    ),
    pytest.param("#!/bin/python\nx = 1\n", "#!/bin/python\nimport torch\n\nx = 1\n", id="after the first comment"),
    pytest.param("import a  # c\r\nx = 1\r\n", "import a  # c\r\nimport torch\r\nx = 1\r\n", id="CRLF"),
]


@pytest.mark.parametrize(("text", "expected"), IMPORTS)
def test_an_import_goes_to_the_others(text: str, expected: str) -> None:
    model = model_of(text)
    found = Rewriter(model).name_for("torch.no_grad", first(model, "x", cst.Assign))
    assert applied(text, found[1]) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param("import torch\nfrom a import b\n", "import os\n\nimport torch\nfrom a import b\n", id="others"),
        pytest.param("import math\nimport sys\n", "import math\nimport os\nimport sys\n", id="the alphabet"),
        pytest.param("import sys\n\nimport torch\n", "import os\nimport sys\n\nimport torch\n", id="the first"),
        pytest.param(
            "import io\nfrom time import time\nimport torch\n",
            "import io\nimport os\nfrom time import time\nimport torch\n",
            id="before what it imports from",
        ),
        pytest.param(
            "from __future__ import annotations\n\nimport torch\n",
            "from __future__ import annotations\n\nimport os\n\nimport torch\n",
            id="after future imports",
        ),
        pytest.param("", "import os\n\n", id="none"),
    ],
)
def test_an_import_of_the_standard_library_goes_to_its_own(head: str, expected: str) -> None:
    model = model_of(head + "x = 1\n")
    found = Rewriter(model).name_for("os.cpu_count", first(model, "x", cst.Assign))
    assert applied(head + "x = 1\n", found[1]) == expected + "x = 1\n"
