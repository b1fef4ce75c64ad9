"""What all tests share: how hypothesis looks for examples."""

import os

import hypothesis

# dev looks for new examples on each run and prints how to repeat a failure; ci tries the same ones every time.
# No deadlines: a machine that is busy is not a bug.
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
