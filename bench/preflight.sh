#!/bin/sh
# What the preflight costs: medians of container starts with and without it, and of the wrapper alone, many times in
# one container. Needs a Docker engine, an image with sh, date and sort, and a python that imports launcher.
#
#   bench/preflight.sh [IMAGE] [STARTS]
set -eu
image=${1:-trainlaunch-test:base} starts=${2:-30} loops=200

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/job.yaml" <<EOF
name: bench
image: $image
command: ["true", "--workers={num_workers}"]
resources: {memory: 1Gi}
data_loader:
  batch_size: 32
  sample: [{shape: [3, 64, 64], dtype: float32}, {shape: [], dtype: int64}]
EOF
wrapper=$(cd "$(dirname "$0")/.." && "${PYTHON:-python3}" - "$folder/job.yaml" <<'EOF'
import pathlib, shlex, sys
from trainlaunch.job import read_job
from trainlaunch.rules import plan_job
from trainlaunch.container.preflight import plan_variables, preflight_text
((name, value),) = plan_variables(plan_job(read_job(pathlib.Path(sys.argv[1])))).items()
print(f"{name}={shlex.quote(value)}", preflight_text(), sep="\n")
EOF
)
# shellcheck disable=SC2016  # expanded by the container's shell
bare='exec "$@"'

now() { date +%s%N; }

start_us() { # TEXT: microseconds from the start of a container to its end
  begin=$(now)
  docker run --rm --init --network none --shm-size 512m --memory 1g --entrypoint /bin/sh "$image" \
    -c "$1" trainlaunch true '--workers={num_workers}' 2>/dev/null
  echo $((($(now) - begin) / 1000))
}

median() { sort -n | sed -n "$(((starts + 1) / 2))p"; }

start_us "$bare" >/dev/null
i=0
while [ $i -lt "$starts" ]; do # taken in turns, so that a busy machine slows both
  start_us "$bare" >>"$folder/bare"
  start_us "$wrapper" >>"$folder/wrapped"
  i=$((i + 1))
done
bare_us=$(median <"$folder/bare") wrapped_us=$(median <"$folder/wrapped")
echo "median of $starts container starts: $((bare_us / 1000)) ms without, $((wrapped_us / 1000)) ms with the preflight"

# shellcheck disable=SC2016
loop='for shell in dash "busybox sh" "bash --posix"; do
  for text in "$1" "$2"; do
    begin=$(date +%s%N) i=0
    while [ $i -lt "$0" ]; do $shell -c "$text" trainlaunch true "--workers={num_workers}" 2>/dev/null; i=$((i + 1)); done
    us=$((($(date +%s%N) - begin) / 1000 / $0))
    [ "$text" != "$1" ] || bare=$us
  done
  echo "$shell: the preflight alone takes $(((us - bare) / 1000)).$(((us - bare) % 1000 / 100)) ms (mean of $0)"
done'
docker run --rm --init --network none --shm-size 512m --memory 1g --entrypoint /bin/sh "$image" \
  -c "$loop" "$loops" "$bare" "$wrapper"
