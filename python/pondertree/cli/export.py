"""`pondertree export`: writes a trained player as ONNX."""

from __future__ import annotations

import argparse

from pondertree.cli.arguments import Commands, add_parser

SUMMARY = "Write a trained player as ONNX."
EXAMPLES = """\
  pondertree export runs/connect4 --onnx connect4.onnx
  pondertree match alphazero:evaluator=onnx:connect4.onnx uct:num_simulations=1000 --game connect4

A MuZero model is written to two files: NAME.onnx maps observations to hidden states, policies and values
(initial_inference), NAME.step.onnx maps hidden states and actions to the next ones (recurrent_inference)."""


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree export`."""
    parser = add_parser(commands, "export", SUMMARY, EXAMPLES, run)
    parser.add_argument("player", metavar="DIR", help="the folder of a training run, or a player file")
    parser.add_argument("--onnx", metavar="FILE", required=True, help="output file; a MuZero model has a second one")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit status."""
    from pondertree.networks import export_onnx

    for path in export_onnx(arguments.player, arguments.onnx):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0
