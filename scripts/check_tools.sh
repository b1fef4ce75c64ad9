#!/bin/sh
# Say, before anything else happens, which tool the build lacks, why it is needed, and what to install.
# Usage: check_tools.sh PYTHON [TARGET...]   (POSIX shell, because Python itself may be the missing tool)
#        check_tools.sh --node
# A TARGET is a platform in Rust's spelling that wheels are built for: Rust's standard library for it is needed, too.
python=$1
shift
root=$(dirname "$0")/..
rust=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' "$root/Cargo.toml")
missing=0
# The oldest Node.js that web/ is built with.
node=20

lacks() {
    printf '%s\n' "$1" >&2
    missing=1
}

if [ "$python" = --node ]; then
    get_node="install Node.js $node or newer from https://nodejs.org or your distribution's packages nodejs and npm"
    if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
        lacks "Missing tool: Node.js with npm. It builds the page of pondertree view. What to do: $get_node."
    elif [ "$(node --version | sed -n 's/^v\([0-9]*\).*/\1/p')" -lt "$node" ] 2>/dev/null; then
        lacks "Missing tool: a newer Node.js: this is $(node --version). It builds the page of pondertree view. What to do: $get_node."
    fi
    exit "$missing"
fi

get_rust="install Rust 1.$rust or newer with rustup (https://rustup.rs), or your distribution's packages cargo and rustc"
if ! command -v cargo >/dev/null 2>&1; then
    if [ -x "${HOME:-}/.cargo/bin/cargo" ]; then
        get_rust="it is installed but not on your PATH: run . \"\$HOME/.cargo/env\", or $get_rust"
    fi
    lacks "Missing tool: cargo (Rust). It compiles Pondertree's search engine. What to do: $get_rust."
elif ! version=$(cargo --version 2>/dev/null); then
    lacks "Missing tool: cargo (Rust) is on the PATH but does not run. It compiles Pondertree's search engine. What to do: $get_rust (then: rustup default stable)."
elif [ "$(printf '%s\n' "$version" | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')" -lt "$rust" ] 2>/dev/null; then
    lacks "Missing tool: a newer cargo (Rust): this is $version. It compiles Pondertree's search engine. What to do: $get_rust."
elif ! command -v cc >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1 && ! command -v clang >/dev/null 2>&1; then
    lacks "Missing tool: a C linker (cc). Rust links the search engine with it. What to do: install your distribution's package gcc (macOS: xcode-select --install)."
fi

for target in "$@"; do
    if ! library=$(rustc --print target-libdir --target "$target" 2>/dev/null); then
        lacks "Unknown target: rustc does not know $target. What to do: choose from what rustc --print target-list names."
    elif ! ls "$library"/libstd-*.rlib >/dev/null 2>&1; then
        lacks "Missing: Rust's standard library for $target. Wheels for it are compiled with it. What to do: rustup target add $target (or build fewer wheels: make wheel TARGETS=$(rustc -vV | sed -n 's/^host: //p'))."
    fi
done

get_python="install Python 3.11 or newer from https://www.python.org or your distribution's packages python3 and python3-venv; if it has another name, say so: make PYTHON=python3.12 ..."
if ! command -v "$python" >/dev/null 2>&1; then
    lacks "Missing tool: Python >= 3.11 (there is no $python). Pondertree is a Python package. What to do: $get_python"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
    lacks "Missing tool: Python >= 3.11 ($python is $("$python" --version 2>&1 | head -n 1)). Pondertree is a Python package. What to do: $get_python"
elif ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    lacks "Missing tool: the venv module of $python. The build keeps its packages in .venv. What to do: install your distribution's package python3-venv."
fi

exit "$missing"
