"""A small UCI program for tests. `good` plays legal moves; other modes fail at move `number` of the process."""

from __future__ import annotations

import os
import sys
import time
import zlib

import chess

MODES = ("good", "hang", "die", "illegal", "nothing", "null", "garbage", "mute")


def say(text: str) -> None:
    print(text, flush=True)


def main(mode: str, number: int, score: int) -> None:
    board, asked = chess.Board(), 0
    log = os.environ.get("UCI_PROGRAM_LOG")
    for line in sys.stdin:
        words = line.split()
        if log:
            with open(log, "a") as file:
                file.write(f"{os.getpid()} {line}")
        if not words:
            continue
        if words[0] == "uci":
            if mode == "mute":
                time.sleep(600)
            say("id name tester")
            say("option name Hash type spin default 16 min 1 max 64")
            say("uciok")
        elif words[0] == "isready":
            say("readyok")
        elif words[0] == "position":
            moves = words[words.index("moves") + 1 :] if "moves" in words else []
            board = chess.Board(" ".join(words[2:8])) if words[1] == "fen" else chess.Board()
            for move in moves:
                board.push_uci(move)
        elif words[0] == "go":
            asked += 1
            if asked >= number and mode != "good":
                misbehave(mode)
                continue
            legal = sorted(move.uci() for move in board.legal_moves)
            say(f"info depth 1 score cp {score}")
            say(f"bestmove {legal[zlib.crc32(board.fen().encode()) % len(legal)]}")
        elif words[0] == "quit":
            return


def misbehave(mode: str) -> None:
    if mode == "hang":
        time.sleep(600)
    elif mode == "die":
        os._exit(7)
    elif mode == "illegal":
        say("bestmove a1h8")
    elif mode == "nothing":
        say("bestmove (none)")
    elif mode == "null":
        say("bestmove 0000")
    elif mode == "garbage":
        say("\x00\x01 what? bestmove\nbestmove zz99")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[3]) if len(sys.argv) > 3 else 20)
