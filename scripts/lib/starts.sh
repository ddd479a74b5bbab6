# Several `scripts/start` of one state folder at a time share its gateway and this machine's node: the last one that needs the node
# stops it, and the last of those that print one answer stops the gateway that they started. Sourced by `start`, never run.
# Needs: home, id, once, GSV, is_online, is_working, say, die. Bash 3.2 and newer.
#
# Files in $home/starts, each written whole:
#   start-PID          a start that runs: its node's id, and its command line (a pid alone may belong to another program by now)
#   node-ID            the process of a start that keeps the node running: its pid and its command line
#   node-ID.ends-PID   the same while the start PID stops it
#   node-ID.begins     the start that is starting the node
#   *.ends-PID.by      the start PID as a process: it is no longer a start that needs something
#   gateway            the gateway was started for one answer, and no chat has used it
#   gateway.ends-PID   the same while the start PID stops it
#
# Who stops something renames its file and then looks for other starts; who joins writes its own file and then looks for renamed
# ones. So one of the two sees the other.

starts="$home/starts"
node_pid=""
# The agent's folder on this machine.
node_workspace=""
# How long a start waits for a node to connect, in tenths of a second.
connect_tenths=150

# A process's command line on one line, at most 4,000 characters.
command_of() {
  if [ -r "/proc/$1/cmdline" ]; then tr '\0\n' '  ' <"/proc/$1/cmdline" 2>/dev/null; else ps -o command= -p "$1" 2>/dev/null | tr '\n' ' '; fi | cut -c1-4000 || true
}
# Whether the process that a file names (its first line, or the given pid) still runs.
runs() {
  local pid known
  pid=${2:-$(sed -n 1p "$1" 2>/dev/null || true)}
  known=$(sed -n 2p "$1" 2>/dev/null || true)
  [ -n "$pid" ] && [ -n "$known" ] && kill -0 "$pid" 2>/dev/null && [ "$(command_of "$pid")" = "$known" ]
}
# Writes a file whole: name, first line, pid whose command line is the second line.
record() {
  printf '%s\n%s\n' "$2" "$(command_of "$3")" >"$starts/.new-$$" && mv -f "$starts/.new-$$" "$starts/$1"
}
# Whether another start runs: any, or one with this node.
others() {
  local file pid
  for file in "$starts"/start-*; do
    pid=${file##*-}
    if [ ! -f "$file" ] || [ "$pid" = $$ ]; then continue; fi
    runs "$file" "$pid" || { rm -f "$file"; continue; }
    if [ $# -eq 0 ] || [ "$(sed -n 1p "$file" 2>/dev/null)" = "$1" ]; then return 0; fi
  done
  return 1
}
# Waits while another start stops NAME. A start that was killed meanwhile has not stopped it. True: it had to wait.
await_end() {
  local file waited=false
  for file in "$starts/$1".ends-*; do
    case $file in *.by) continue ;; esac
    while [ -f "$file" ]; do
      waited=true
      if runs "$file.by"; then sleep 0.1; else mv -f "$file" "$starts/$1" 2>/dev/null || true; fi
    done
  done
  $waited
}
# Takes what NAME is about, so that this start may stop it. False: it does not exist, or others need it.
take() {
  local name=$1
  shift
  if [ ! -f "$starts/$name" ] || others "$@"; then return 1; fi
  record "$name.ends-$$.by" $$ $$
  mv "$starts/$name" "$starts/$name.ends-$$" 2>/dev/null || { rm -f "$starts/$name.ends-$$.by"; return 1; }
  if others "$@"; then
    mv -f "$starts/$name.ends-$$" "$starts/$name"
    rm -f "$starts/$name.ends-$$.by"
    return 1
  fi
}
taken_ended() { rm -f "$starts/$1.ends-$$" "$starts/$1.ends-$$.by"; }

# Before the gateway is asked for.
join_starts() {
  (umask 077 && mkdir -p "$starts") || die "The folder $starts can't be made. Make sure that you may write there and that the disk is not full."
  record "start-$$" "$id" $$
  await_end gateway || true
}
# When the gateway runs; whether this start started it.
gateway_runs() {
  if ! $once; then rm -f "$starts/gateway"; elif $1; then : >"$starts/gateway"; fi
}

# Waits until a process that was told to end has ended, and kills it after that many tenths of a second.
await_process() {
  local waited=0
  while kill -0 "$1" 2>/dev/null && [ $waited -lt "$2" ]; do
    sleep 0.1
    waited=$((waited + 1))
  done
  kill -9 "$1" 2>/dev/null || true
}
# Ends a process, by force after 5 s.
end_process() {
  kill "$1" 2>/dev/null || return 0
  await_process "$1" 50
}

# Starts this machine's node unless a node of this name is connected.
ensure_machine() {
  local waited=0
  node_workspace=$(printf '%q' "$1")
  if await_end "node-$id"; then
    # The gateway may not know yet that it ended.
    while is_online && [ ! -f "$starts/node-$id" ] && [ $waited -lt 50 ]; do
      sleep 0.1
      waited=$((waited + 1))
    done
  fi
  until (set -o noclobber && printf '%s\n%s\n' $$ "$(command_of $$)" >"$starts/node-$id.begins") 2>/dev/null; do
    runs "$starts/node-$id.begins" || rm -f "$starts/node-$id.begins"
    sleep 0.1
  done
  if is_online || await_kept; then
    say "Node:    $id (already connected)"
  else
    start_node "$1"
  fi
  rm -f "$starts/node-$id.begins"
}
# Waits until the node whose process is recorded connects: it may be about to start again. If it does not connect, its process is ended.
await_kept() {
  local waited=0
  while runs "$starts/node-$id" && [ $waited -lt $connect_tenths ]; do
    sleep 0.1
    waited=$((waited + 1))
    if is_online; then return 0; fi
  done
  if runs "$starts/node-$id"; then end_process "$(sed -n 1p "$starts/node-$id")"; fi
  return 1
}
# A line of the node's log, and of the terminal, if there is one that is still open.
tell_terminal() {
  printf '%s\n' "$2" >&3
  if [ -n "$1" ]; then (printf '\r%s\n' "$2" >"$1") 2>/dev/null || true; fi
}
# Whether the node's record names this process, also while a start is about to stop the node.
is_keeper() {
  local file
  for file in "$starts/node-$id" "$starts/node-$id".ends-* "$starts/node-$id"; do
    case $file in *.by) continue ;; esac
    if [ "$(sed -n 1p "$file" 2>/dev/null)" = "$1" ]; then return 0; fi
  done
  return 1
}
# Whether another process runs this node: it has the lock of the node's call ledger, or is connected under this name. The gateway may
# take a moment to know that a connection has ended.
is_elsewhere() {
  local pid waited=0
  pid=$(head -c 16 "$home/node/$id/ledger/lock" 2>/dev/null || true)
  if [ -n "$pid" ] && [ "$pid" != "$1" ] && kill -0 "$pid" 2>/dev/null; then
    case $(command_of "$pid") in *" node "*) return 0 ;; esac
  fi
  while is_online; do
    if [ $waited -ge 50 ]; then return 0; fi
    sleep 0.1
    waited=$((waited + 1))
  done
  return 1
}
# Runs the node. Once it is recorded, one that dies is started again, after 1 s, 2 s and so on up to a minute. One that was stopped, that
# another process runs, or that ends with a status after which waiting does not help, is not.
keep_node() {
  local child="" told=true stopped=false pause=1 self node began status again
  self=$(exec sh -c 'echo $PPID')
  again="Start it with: $GSV node --id $id --workspace $(printf '%q' "$1")"
  # One signal for each process: a second one would end the node at once, in the middle of its calls.
  tell_child() { $told || { told=true; kill "$child" 2>/dev/null || true; }; }
  trap 'stopped=true; tell_child' TERM
  while :; do
    began=$SECONDS
    status=0
    "$GSV" node --id "$id" --workspace "$1" >&3 2>&1 3>&- &
    child=$!
    told=false
    node=$child
    $stopped || wait "$child" || status=$?
    if $stopped; then
      tell_child
      await_process "$child" 40
      return 0
    fi
    told=true
    is_keeper "$self" || return "$status"
    case $status in
      0 | 2 | 3)
        tell_terminal "$2" "The node $id ended (exit status $status) and is not started again. $again"
        return "$status"
        ;;
    esac
    [ $((SECONDS - began)) -lt 60 ] || pause=1
    tell_terminal "$2" "The node $id ended (exit status $status). It is started again in $pause s."
    if ! $stopped; then
      sleep "$pause" &
      child=$!
      told=false
      $stopped || wait "$child" || true
      if $stopped; then tell_child; fi
      told=true
    fi
    # Another start may have taken over meanwhile.
    if $stopped || ! is_keeper "$self"; then return 0; fi
    if is_elsewhere "$node"; then
      tell_terminal "$2" "Another process runs the node $id, so it is not started again here. When that one has ended: $again"
      return 0
    fi
    if $stopped || ! is_keeper "$self"; then return 0; fi
    pause=$((pause < 30 ? pause * 2 : 60))
  done
}
start_node() {
  local workspace waited=0
  mkdir -p "$1"
  workspace=$(cd "$1" && pwd -P)
  # A separate process group, so that Ctrl-C in the chat stops the agent's run and not the node.
  set -m
  # It may outlive this start, so it holds none of its streams: who reads those waits for their end.
  keep_node "$workspace" "$(if [ -t 2 ]; then tty <&2; fi)" </dev/null >/dev/null 2>&1 3>"$scratch/node.log" &
  node_pid=$!
  set +m
  until is_online; do
    if ! kill -0 "$node_pid" 2>/dev/null || [ $waited -ge $connect_tenths ]; then
      cat "$scratch/node.log" >&2
      die "The node did not connect."
    fi
    sleep 0.1
    waited=$((waited + 1))
  done
  record "node-$id" "$node_pid" "$node_pid"
  say "Node:    $id, working in $workspace"
}

# After the chat or the answer: what would be stopped now stays until no run is under way, because a run may use it. Ctrl-C ends the wait.
await_runs() {
  local stop=false
  [ -f "$starts/node-$id" ] || { $once && [ -f "$starts/gateway" ]; } || return 0
  ! others "$id" && is_working || return 0
  if $once; then
    say "Another run is under way, so the gateway and the node started here keep running until it ends. Press Ctrl-C to stop them now; this interrupts the run on this machine."
  else
    say "A run is under way and may use this machine, so the node $id keeps running until it ends. Press Ctrl-C to stop the node now; this interrupts the run on this machine."
  fi
  trap 'stop=true' INT
  while ! $stop && ! others "$id" && is_working; do sleep 0.3 || true; done
  trap : INT
  if ! $stop; then return 0; fi
  # The gateway that was started for one answer stops next, and no command reaches the run then.
  if $once && [ -f "$starts/gateway" ]; then
    say "The node and the gateway stop while a run is under way. It continues when the gateway starts again: ./scripts/start"
  else
    say "The node stops while a run is under way. To stop that run too: $GSV chat /stop"
  fi
}

# At the end of a start: stops what no other start needs.
leave_starts() {
  local pid
  # A gateway that was started again under an open chat goes on when the chat ends, as that says.
  $once || rm -f "$starts/gateway"
  rm -f "$starts/start-$$"
  if [ "$(sed -n 1p "$starts/node-$id.begins" 2>/dev/null)" = $$ ]; then rm -f "$starts/node-$id.begins"; fi
  if [ -n "$node_pid" ] && [ ! -f "$starts/node-$id" ]; then
    # It did not connect, or the state folder is gone.
    end_process "$node_pid"
  elif [ -f "$starts/node-$id" ]; then
    if take "node-$id" "$id"; then
      if runs "$starts/node-$id.ends-$$"; then
        pid=$(sed -n 1p "$starts/node-$id.ends-$$")
        end_process "$pid"
        $once || say "The node $id is stopped, because the chat that used it ended: the agent can't use this machine until you start it again, with ./scripts/start or with: $GSV node --id $id --workspace $node_workspace"
      fi
      taken_ended "node-$id"
    elif [ -n "$node_pid" ]; then
      say "The node $id keeps running, because another start uses it."
    fi
  fi
  if $once && take gateway; then
    "$GSV" down >/dev/null 2>&1 || true
    taken_ended gateway
  fi
}
