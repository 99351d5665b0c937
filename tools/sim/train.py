# SPDX-License-Identifier: BSD-3-Clause
"""flashield-sim train: a trace is played, and the last model that the engine has accepted becomes a file."""
import os
import signal
import tempfile

import options
from worker import Bar, play, tell

EXIT_NONE, EXIT_TROUBLE = 1, 2


def told(result):
    """What became of the model that was written."""
    given_up = "" if result["model_origin"] != "none" else ", which was given up later"
    return f"the last accepted model{given_up}; of the last training: {result['model_reason']}"


def train(chosen):
    """Returns the exit status."""
    spec = options.spec_of(chosen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the folder is removed
    if os.path.lexists(chosen.output) and not os.path.isfile(chosen.output):  # such as /dev/null, which root could replace
        tell(f"--output: {chosen.output}: it is there, and not a regular file")
        return EXIT_TROUBLE
    try:
        # Beside the output, so that a finished model is moved there as a whole.
        with tempfile.TemporaryDirectory(prefix=".flashield-sim-", dir=os.path.dirname(os.path.abspath(chosen.output))) as folder:
            made = os.path.join(folder, "model.json")
            spec["runs"][0]["model_output"] = made
            answers, complete = play(spec, Bar(chosen.quiet))
            for error in answers.errors.values():
                tell(error)
            if not complete:
                return EXIT_TROUBLE
            result = answers.results[0]
            if not os.path.exists(made):
                tell(f"no model was accepted: {result['model_reason']}")
                return EXIT_NONE
            os.replace(made, chosen.output)
    except OSError as error:
        tell(f"--output: {chosen.output}: {error.strerror}")
        return EXIT_TROUBLE
    print(f"{chosen.output}: {told(result)}")
    return 0
