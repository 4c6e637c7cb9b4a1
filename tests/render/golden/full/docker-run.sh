#!/bin/sh
# Rendered by trainlaunch from full.yaml for docker: change that file and render again.
# rendering format 1, input 0082fe72
# Relative mounts are relative to the folder of full.yaml: run this there.
# shm_size 5114Mi = hard: need 3.4 GiB + one storage per worker + 64 KiB pages + NCCL (full.yaml:26)
# num_workers 3 = min(max_workers 16, max(1, ⌊cpus 7 / ranks 2⌋)) (full.yaml:26)
# ranks 2 = torchrun.nproc_per_node (full.yaml:31)
# OMP_NUM_THREADS MKL_NUM_THREADS 1 = max(1, min(4, ⌊cpus 7 / (4·ranks 2)⌋)) (full.yaml:26)
# OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS RAYON_NUM_THREADS OPENCV_FOR_THREADS_NUM 1 = one per worker process (default)
# TORCHINDUCTOR_COMPILE_THREADS 3 = ⌊cpus 7 / ranks 2⌋ (full.yaml:26)
# working set (estimate) 4864Mi = estimate: ranks 2 × 2.0 GiB + workers 12 × 64 MiB (default)
# restart.max_attempts 3: only `trainlaunch up` starts another attempt, this text runs one.
# active_deadline 12h: only `trainlaunch up` ends the job then.
# ttl_after_finished 24h: the next `trainlaunch up` after that removes its run.
if [ -z "${WANDB_API_KEY:-}" ]; then
  echo "secret WANDB_API_KEY: variable WANDB_API_KEY of this shell is not set" >&2
  exit 125
fi
if [ -z "${MY_HF_TOKEN:-}" ]; then
  echo "secret HF_TOKEN: variable MY_HF_TOKEN of this shell is not set" >&2
  exit 125
fi
trainlaunch_secret_1="${MY_HF_TOKEN:-}"
HF_TOKEN=$trainlaunch_secret_1
export WANDB_API_KEY HF_TOKEN
# shellcheck disable=SC2016  # the container's shell expands what stands in single quotes, not this one
exec docker run \
  --rm \
  --init \
  --name resnet50 \
  --pull always \
  --label team=vision \
  --label example.com/cost-centre=0042 \
  --label dev.trainlaunch.job=resnet50 \
  --label dev.trainlaunch.format=1 \
  --label dev.trainlaunch.input=0082fe72 \
  --label dev.trainlaunch.num-workers=3 \
  --label dev.trainlaunch.planned-processes=12 \
  --label dev.trainlaunch.queued-batches=24 \
  --label dev.trainlaunch.shm-need=3699785728 \
  --label dev.trainlaunch.shm-size=5362417664 \
  --label dev.trainlaunch.unsized=false \
  --shm-size 5114m \
  --memory 32768m \
  --cpus 7.5 \
  --gpus 2 \
  --ulimit nofile=65536:65536 \
  --ulimit memlock=-1:-1 \
  --user 1200:1300 \
  --group-add 44 \
  --group-add 109 \
  --read-only \
  --tmpfs /tmp:exec \
  --tmpfs /fast:exec,size=32768m \
  --mount type=bind,source=./src,target=/workspace \
  --mount 'type=bind,"source=/data/image net, $1",target=/data,readonly' \
  --mount type=volume,source=checkpoints,target=/checkpoints \
  --mount type=volume,target=/scratch \
  --env WANDB_MODE=offline \
  --env ANSWER=y \
  --env 'PRICE=5$ or ${EUR}' \
  --env 'NOTE=two
lines: and '\''quotes'\''' \
  --env WANDB_API_KEY \
  --env HF_TOKEN \
  --workdir /workspace \
  --stop-signal SIGINT \
  --stop-timeout 120 \
  --health-interval 1m30s \
  --health-timeout 5s \
  --health-retries 4 \
  --health-start-period 10m \
  --health-cmd '# trainlaunch health: /dev/shm as planned, or one sentence and exit 1 (full is healthy: an idle queue is)
tl_bad() { printf '\''unhealthy: %s\n'\'' "$1"; exit 1; }
[ -d /dev/shm ] || tl_bad '\''/dev/shm is gone, so no batch can reach the training process'\''
tl_shm=$(stat -f -c '\''%T %S*%b %S*%a'\'' /dev/shm 2>/dev/null) || tl_bad '\''the size of /dev/shm is not readable'\''
[ "${tl_shm%% *}" = tmpfs ] || tl_bad "/dev/shm is ${tl_shm%% *}, not tmpfs: it is mounted over"
tl_free=$((${tl_shm##* })) tl_size=${tl_shm% *} tl_size=$((${tl_size##* }))
[ "$tl_size" -eq 0 ] || [ "$tl_size" -ge 3699785728 ] ||
  tl_bad "/dev/shm has $tl_size bytes, below the planned 3699785728: it was replaced or shrunk"
tl_probe=/dev/shm/.trainlaunch-health-$$
{ true >"$tl_probe"; } 2>/dev/null || tl_bad "uid $(id -u) can'\''t make files in /dev/shm, as batches are"
rm -f "$tl_probe"
tl_workers=0
for tl_comm in /proc/[0-9]*/comm; do
  { read -r tl_name <"$tl_comm"; } 2>/dev/null || continue # it ended meanwhile
  if [ "$tl_name" = pt_data_worker ]; then tl_workers=$((tl_workers + 1)); fi
done
if [ "$tl_size" -eq 0 ]; then # size=0 has no limit, and the kernel then counts no use
  echo "shm used=unknown peak=unknown size=unlimited workers=$tl_workers/12"
  exit
fi
tl_used=$((tl_size - tl_free)) tl_peak='\'''\''
{ read -r tl_peak </dev/shm/.trainlaunch-peak; } 2>/dev/null
case $tl_peak in *[!0-9]* | '\'''\'') tl_peak=-1 ;; esac
if [ "$tl_used" -gt "$tl_peak" ]; then
  tl_peak=$tl_used # in place: a full /dev/shm still has the first check'\''s page
  { printf '\''%-20d\n'\'' "$tl_peak" 1<>/dev/shm/.trainlaunch-peak; } 2>/dev/null
fi
echo "shm used=$tl_used peak=$tl_peak size=$tl_size workers=$tl_workers/12"
' \
  --entrypoint /opt/nvidia/nvidia_entrypoint.sh \
  registry.example.com:5000/vision/trainer@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef \
  --quiet \
  /bin/sh \
  -c \
  '# trainlaunch preflight: proves this container before the job'\''s first line, then becomes the job.
# It exits with 78 when the files are wrong, with 75 when this machine is (docs/preflight.md).
# shellcheck disable=SC2317,SC3045 # a trap calls tl_pass; dash, busybox and bash have ulimit -H and -S
tl_ranks=2 tl_name=resnet50
tl_workers=3 tl_per_worker=924925952 tl_besides=925007872
tl_fix='\''batches pass through it, and without room workers die or hang; set shm_size to 5114Mi'\''
tl_say() { printf '\''trainlaunch: %s\n'\'' "$1" >&2; }
tl_stop() { # CODE SENTENCE
  tl_say "preflight stopped ($1): $2"
  if [ -w /dev/termination-log ]; then tl_say "preflight stopped ($1): $2" 2>/dev/termination-log; fi
  exit "$1"
}
tl_leftovers() { # FILE...: of a dead attempt where /dev/shm outlives its container, or of those who share it
  for tl_file; do [ ! -e "$tl_file" ] || tl_left=$((tl_left + 1)); done; [ "$tl_left" -gt 0 ] || return 0
  tl_say "warning: /dev/shm has $tl_left files of other runs, $(du -sk /dev/shm | cut -f1) KiB in all"
  if [ "${TRAINLAUNCH_CLEAN_SHM-}" = 1 ]; then printf '\''%s\0'\'' "$@" | xargs -0 rm -f; fi
}
# A batch is a file in /dev/shm, passed through a socket in the temporary directory that Python would pick.
[ -d /dev/shm ] || tl_stop 78 "/dev/shm is missing, as with ipc none; $tl_fix"
read -r tl_host </proc/sys/kernel/hostname; tl_probe=.trainlaunch-$tl_host-$$ tl_left=0
{ true >"/dev/shm/$tl_probe"; } 2>/dev/null ||
  tl_stop 78 "uid $(id -u) can'\''t make files in /dev/shm, and batches are files; mount it writable, mode 1777"
for tl_tmp in "${TMPDIR:-${TEMP:-${TMP:-/tmp}}}" /tmp /var/tmp /usr/tmp "$PWD" '\'''\''; do
  if { true >"$tl_tmp/$tl_probe"; } 2>/dev/null; then break; fi; done
rm -f "/dev/shm/$tl_probe" "$tl_tmp/$tl_probe"
[ "${TMPDIR:-$tl_tmp}" = "${tl_tmp:-none}" ] ||
  tl_stop 78 "uid $(id -u) can'\''t make files in ${TMPDIR:-/tmp}, so workers would hang; set TMPDIR to /dev/shm"
[ "${#tl_tmp}" -le 75 ] || tl_stop 78 "TMPDIR is ${#tl_tmp} long, a worker'\''s socket allows 75; set it to /tmp"
tl_leftovers /dev/shm/torch_* /dev/shm/nccl-* /dev/shm/psm_* /dev/shm/sem.*
tl_shm=$(stat -f -c '\''%T %S*%b %S*%a'\'' /dev/shm) || tl_stop 78 "the image has no stat; install coreutils in it"
[ "${tl_shm%% *}" = tmpfs ] || tl_stop 78 "/dev/shm is ${tl_shm%% *}, not tmpfs: drop that mount; $tl_fix"
tl_free=$((${tl_shm##* })) tl_shm=${tl_shm% *} tl_size=$((${tl_shm##* })) tl_shm="$((tl_size >> 20)) MiB"
if [ "$tl_size" -eq 0 ]; then tl_shm=unlimited tl_size=5362417664 tl_free=4611686018427387904; fi
[ "$tl_size" -ge 3699785728 ] || tl_stop 78 "/dev/shm has $tl_shm of the planned 3529 MiB; $tl_fix"
# CPUs by affinity and cpuset, then by the quota, which neither nproc nor Python sees; cgroup v1, then v2.
while read -r tl_key tl_list; do [ "$tl_key" != Cpus_allowed_list: ] || break; done </proc/self/status
tl_list=${tl_list:-1-$(grep -c ^processor /proc/cpuinfo)} tl_cpus=0 tl_cg=/sys/fs/cgroup IFS=,
for tl_range in $tl_list; do tl_cpus=$((tl_cpus + ${tl_range#*-} - ${tl_range%-*} + 1)); done; unset IFS
{ read -r tl_quota <$tl_cg/cpu/cpu.cfs_quota_us; read -r tl_period <$tl_cg/cpu/cpu.cfs_period_us
  read -r tl_limit <$tl_cg/memory/memory.limit_in_bytes; read -r tl_use <$tl_cg/memory/memory.usage_in_bytes
  read -r tl_quota tl_period <$tl_cg/cpu.max
  read -r tl_limit <$tl_cg/memory.max; read -r tl_use <$tl_cg/memory.current; } 2>/dev/null
case $tl_quota in *[!0-9]* | '\'''\'') tl_quota=$tl_cpus ;; *) tl_quota=$((tl_quota / ${tl_period:-100000})) ;; esac
tl_cpus=$((tl_quota < 1 ? 1 : tl_quota < tl_cpus ? tl_quota : tl_cpus))
tl_per_rank=$((tl_cpus > tl_ranks ? tl_cpus / tl_ranks : 1))
# num_workers is never raised; it is lowered to what CPUs and free /dev/shm allow.
tl_room=$((tl_free > tl_besides + tl_per_worker ? (tl_free - tl_besides) / tl_per_worker : 1))
for tl_most in "$tl_per_rank" "$tl_room"; do [ "$tl_most" -ge "$tl_workers" ] || tl_workers=$tl_most; done
tl_need=$((tl_workers > 0 ? tl_workers * tl_per_worker + tl_besides : 0))
tl_needs="$(((tl_need + 1048575) >> 20)) MiB"
[ "$tl_free" -ge "$tl_need" ] ||
  tl_stop 75 "/dev/shm has $((tl_free >> 20)) of $tl_shm free, the job needs $tl_needs; end what else uses it"
case $tl_limit in *[!0-9]* | '\'''\'' | ?????????????????*) tl_limit=4611686018427387904 tl_mem=unlimited ;;
  *) tl_mem="$((tl_limit >> 20)) MiB" ;; esac
[ $((tl_limit - tl_use)) -ge "$tl_need" ] || tl_stop $((tl_limit < tl_need ? 78 : 75)) \
  "/dev/shm needs $tl_needs of $tl_mem memory, $((tl_use >> 20)) are used; set resources.memory to 8704Mi"
tl_files=$(ulimit -H -n) && ulimit -S -n "$tl_files"
[ "$tl_files" -ge 72 ] || tl_stop 78 "$tl_files open files allowed, tensors need 72; set ulimits.nofile to 72"
for tl_gpu in /dev/nvidia[0-9]* /dev/dxg /dev/nvmap '\'''\''; do if [ -e "$tl_gpu" ]; then break; fi; done
[ "$tl_gpu" ] || tl_stop 75 "no /dev/nvidia0 is here, but the job asks for GPUs; start it where they are"
command -v torchrun >/dev/null || tl_stop 78 "torchrun is not on PATH $PATH; use an image that has torch"
for tl_dir in "$PWD" "${HOME:-/}" \
  /scratch /fast; do [ -w "$tl_dir" ] || tl_say "warning: can'\''t write to $tl_dir"; done
# What the job reads; a thread variable that the image or the job sets stays as it is.
export TRAINLAUNCH_NUM_WORKERS="$tl_workers" TRAINLAUNCH_PREFETCH_FACTOR=2 TRAINLAUNCH_PIN_MEMORY=1
export TRAINLAUNCH_BATCH_SIZE=128 TRAINLAUNCH_PERSISTENT_WORKERS=0 TRAINLAUNCH_TIMEOUT=0
export TRAINLAUNCH_SHM_BYTES="$tl_size" TRAINLAUNCH_RUN_ID="${TRAINLAUNCH_RUN_ID:-$tl_name-$tl_host}"
tl_threads=$((tl_per_rank < 8 ? 1 : tl_per_rank < 16 ? tl_per_rank / 4 : 4))
export OMP_NUM_THREADS="${OMP_NUM_THREADS-$tl_threads}" MKL_NUM_THREADS="${MKL_NUM_THREADS-$tl_threads}"
export TORCHINDUCTOR_COMPILE_THREADS="${TORCHINDUCTOR_COMPILE_THREADS-$tl_per_rank}"
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS-1}" NUMEXPR_NUM_THREADS="${NUMEXPR_NUM_THREADS-1}"
export RAYON_NUM_THREADS="${RAYON_NUM_THREADS-1}" OPENCV_FOR_THREADS_NUM="${OPENCV_FOR_THREADS_NUM-1}"
for tl_arg; do case $tl_arg in # a token stands alone or ends its argument after an equals sign
  '\''{num_workers}'\'' | *'\''={num_workers}'\'') tl_arg=${tl_arg%\{*}$tl_workers ;;
  '\''{batch_size}'\'' | *'\''={batch_size}'\'') tl_arg=${tl_arg%\{*}128 ;;
  esac; shift; set -- "$@" "$tl_arg"; done
tl_say "preflight passed: /dev/shm $tl_shm (needs $tl_needs), memory $tl_mem, \
$tl_cpus CPUs, num_workers $tl_workers"
if [ $$ -ne 1 ]; then exec "$@"; fi
# As pid 1 the job would miss signals that it doesn'\''t handle: stay, hand them on, return the job'\''s code.
tl_pass() { kill -s "$1" "$!" && tl_again=yes; } 2>/dev/null
if env --default-signal=INT true 2>/dev/null; then set -- env --default-signal=INT,QUIT "$@"; fi
for tl_signal in TERM INT HUP QUIT USR1 USR2; do eval "trap '\''tl_pass $tl_signal'\'' $tl_signal"; done
{ (exec "$@") <&3 3<&- & } 3<&0 # in the background a shell would read nothing and ignore INT
until tl_again='\'''\''; wait "$!"; tl_code=$?; [ -z "$tl_again" ]; do :; done; exit "$tl_code"
' \
  trainlaunch \
  torchrun --nnodes=1 --nproc-per-node=2 --max-restarts=0 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv-id=resnet50 --no-python python train.py --workers '{num_workers}' '--batch={batch_size}' --lr 1e3 'costs $5 and $(HOME)'
