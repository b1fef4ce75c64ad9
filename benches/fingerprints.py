"""Compares the results of some hundred searches bit for bit with recorded ones: a guard for restructurings.

    python benches/fingerprints.py                         compare with baselines/fingerprints.json
    python benches/fingerprints.py UCT chess               only cases with all of these words in their names
    python benches/fingerprints.py --show "UCT chess 0"    print everything a case computes, to diff two versions
    python benches/fingerprints.py --record                renew the baseline

The exit status is 1 if a case differs; each is named.

Each case (see fingerprint_cases) is reduced to two hashes: of its answers (simulations, visits, actions) and of
everything, the whole tree node by node included. Evaluators and models are integer arithmetic, so the hashes do not
depend on the CPU, the number of cores or the version of NumPy. It takes about half a minute on one core.

Renew the baseline only in a commit that changes results on purpose, and say in its message which cases differ and why.
`PYTHONPATH=FOLDER` runs another version of the package, for example a wheel that was unzipped there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import traceback
import warnings
from pathlib import Path

from fingerprint_cases import cases
from fingerprint_cases.case import Case
from fingerprint_cases.transcript import Transcript

import pondertree

BASELINE = Path(__file__).parent / "baselines" / "fingerprints.json"


def transcript_of(case: Case) -> Transcript:
    """Runs a case; an exception becomes its last line, and is printed."""
    transcript = Transcript()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pondertree.PlayerCountWarning)
        warnings.simplefilter("ignore", pondertree.UnfinishedPlayoutWarning)
        try:
            case(transcript)
        except Exception as error:
            traceback.print_exc()
            transcript.failed = True
            transcript.answer(f"raised {type(error).__name__}: {error}")
    return transcript


def selected(words: list[str]) -> dict[str, Case]:
    """The cases whose names have all words in them, in any case of letters."""
    wanted = [word.casefold() for word in words]
    return {name: case for name, case in cases().items() if all(word in name.casefold() for word in wanted)}


def differences(recorded: dict[str, str], found: dict[str, str], *, whole: bool) -> list[str]:
    """One line for each case that differs; with `whole`, for each that is missing on one side, too."""
    lines = []
    if importlib.util.find_spec("torch") is None:
        recorded = {name: digests for name, digests in recorded.items() if not name.startswith("torch ")}
    for name in sorted(recorded.keys() | found.keys() if whole else found.keys()):
        before, after = recorded.get(name), found.get(name)
        if before is None or after is None:
            lines.append(f"{name}: {'not recorded' if before is None else 'recorded, but no case any more'}")
        elif before != after:
            same_answers = before.split()[0] == after.split()[0]
            lines.append(f"{name}: {'visits equal, values or tree differ' if same_answers else 'visits differ'}")
    return lines


def main() -> int:
    """Runs the cases; 1 if one differs, 2 if no case has such a name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases with all of these words in their names")
    parser.add_argument("--compare", type=Path, metavar="FILE", default=BASELINE, help="digests to compare with")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the digests to FILE, and compare nothing")
    parser.add_argument("--record", action="store_true", help="write the baseline, and compare nothing")
    parser.add_argument("--show", action="store_true", help="print what the cases compute, and compare nothing")
    given = parser.parse_args()
    if given.record and given.words:
        parser.error("--record is for all cases: no words")
    chosen = selected(given.words)
    if not chosen:
        parser.error(f"no case has {' and '.join(given.words)} in its name")

    begun = time.perf_counter()
    found = {}
    failed = []
    for name, case in chosen.items():
        transcript = transcript_of(case)
        found[name] = transcript.digests()
        if transcript.failed:
            failed.append(name)
        if given.show:
            print(f"== {name}", *transcript.lines, sep="\n")
    if given.show:
        return 0
    about = f"{len(found)} cases in {time.perf_counter() - begun:.0f} s ({Path(pondertree.__file__).parent})"
    if given.record or given.json:
        if failed:
            parser.exit(2, f"nothing was written: {', '.join(failed)} raised\n")
        file = BASELINE if given.record else given.json
        file.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{about}: written to {file}")
        return 0
    recorded = json.loads(given.compare.read_text(encoding="utf-8"))
    lines = differences(recorded, found, whole=not given.words)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{about}: {f'{len(lines)} differ' if lines else 'all equal'}", file=sys.stderr if lines else sys.stdout)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
