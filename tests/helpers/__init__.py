"""What several test modules share; fixtures are in tests/conftest.py, and no test module imports another one."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.command_line")  # its assertions then show values, as those of tests do
