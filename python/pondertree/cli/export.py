"""`pondertree export`: a trained player for other programs."""

from __future__ import annotations

import argparse

from pondertree.cli.arguments import Commands, Parser

SUMMARY = "Write a trained player as ONNX."
EXAMPLES = """\
  pondertree export runs/connect4 --onnx connect4.onnx
  pondertree match alphazero:evaluator=onnx:connect4.onnx uct:num_simulations=1000 --game connect4

Of a training by MuZero there are two files: NAME.onnx takes observations to hidden states, policies and values (the
model's initial_inference), and NAME.step.onnx hidden states and actions to the next ones (recurrent_inference)."""


def add_arguments(commands: Commands) -> None:
    """The arguments of `pondertree export`."""
    parser: Parser = commands.add_parser("export", help=SUMMARY, description=SUMMARY, epilog=f"Examples:\n{EXAMPLES}")
    parser.set_defaults(run=run)
    parser.add_argument("player", metavar="DIR", help="the folder of a training, or the file of a player")
    parser.add_argument(
        "--onnx", metavar="FILE", required=True, help="the file to write; a model (MuZero) gets a second one beside it"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs it; the exit status."""
    from pondertree.networks.loading import export_onnx

    for path in export_onnx(arguments.player, arguments.onnx):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0
