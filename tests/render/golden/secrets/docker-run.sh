#!/bin/sh
# Rendered by trainlaunch from secrets.yaml for docker: change that file and render again.
# rendering format 1, input 0225a9d2
# Relative mounts are relative to the folder of secrets.yaml: run this there.
# image_entrypoint is not stated: an ENTRYPOINT that the image has is not run.
# shm_size 2Gi = the floor min(2 GiB, memory/2), above hard 552 MiB (secrets.yaml:16)
# num_workers 2 = min(max_workers 16, max(1, ⌊cpus 4 / ranks 2⌋)) (secrets.yaml:16)
# ranks 2 = one per GPU (secrets.yaml:16)
# OMP_NUM_THREADS MKL_NUM_THREADS 1 = max(1, min(4, ⌊cpus 4 / (4·ranks 2)⌋)) (secrets.yaml:16)
# OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS RAYON_NUM_THREADS OPENCV_FOR_THREADS_NUM 1 = one per worker process (default)
# TORCHINDUCTOR_COMPILE_THREADS 2 = ⌊cpus 4 / ranks 2⌋ (secrets.yaml:16)
# working set (estimate) 4352Mi = estimate: ranks 2 × 2.0 GiB + workers 4 × 64 MiB (default)
# shellcheck disable=SC2016  # paths of secrets stand here as they are
if [ ! -f '/etc/keys, $1/it'\''s' ] || [ ! -r '/etc/keys, $1/it'\''s' ] || [ ! -s '/etc/keys, $1/it'\''s' ]; then
  echo 'secret SSH_KEY: file /etc/keys, $1/it'\''s can'\''t be read, or is empty' >&2
  exit 125
fi
if [ -z "${WANDB_API_KEY:-}" ]; then
  echo "secret WANDB_API_KEY: variable WANDB_API_KEY of this shell is not set" >&2
  exit 125
fi
if [ -z "${MY_HF_TOKEN:-}" ]; then
  echo "secret HF_TOKEN: variable MY_HF_TOKEN of this shell is not set" >&2
  exit 125
fi
trainlaunch_secret_2=$(cat ./keys/s3)
if [ -z "${trainlaunch_secret_2:-}" ]; then
  echo 'secret S3_KEY: file ./keys/s3 can'\''t be read, or is empty' >&2
  exit 125
fi
trainlaunch_secret_1="${MY_HF_TOKEN:-}"
HF_TOKEN=$trainlaunch_secret_1
S3_KEY=$trainlaunch_secret_2
export WANDB_API_KEY HF_TOKEN S3_KEY
# shellcheck disable=SC2016  # the container's shell expands what stands in single quotes, not this one
exec docker run \
  --rm \
  --init \
  --name uploads \
  --pull missing \
  --label dev.trainlaunch.job=uploads \
  --label dev.trainlaunch.format=1 \
  --label dev.trainlaunch.input=0225a9d2 \
  --label dev.trainlaunch.num-workers=2 \
  --label dev.trainlaunch.planned-processes=4 \
  --label dev.trainlaunch.queued-batches=8 \
  --label dev.trainlaunch.shm-need=231325696 \
  --label dev.trainlaunch.shm-size=2147483648 \
  --label dev.trainlaunch.unsized=false \
  --shm-size 2048m \
  --memory 16384m \
  --cpus 4 \
  --device /dev/kfd \
  --device /dev/dri/renderD128 \
  --device /dev/dri/renderD129 \
  --user 1000 \
  --group-add 992 \
  --tmpfs /run/secrets:mode=1777 \
  --tmpfs /fast:exec,size=16384m \
  --mount type=volume,target=/scratch \
  --mount 'type=bind,"source=/etc/keys, $1/it'\''s",target=/run/secrets/SSH_KEY,readonly' \
  --env WANDB_MODE=online \
  --env HF_TOKEN_FILE=/run/secrets/HF_TOKEN \
  --env SSH_KEY_FILE=/run/secrets/SSH_KEY \
  --env WANDB_API_KEY \
  --env HF_TOKEN \
  --env S3_KEY \
  --stop-timeout 30 \
  --health-interval 30s \
  --health-timeout 10s \
  --health-retries 3 \
  --health-start-period 30m \
  --health-cmd '# trainlaunch health: /dev/shm as planned, or one sentence and exit 1 (full is healthy: an idle queue is)
tl_bad() { printf '\''unhealthy: %s\n'\'' "$1"; exit 1; }
[ -d /dev/shm ] || tl_bad '\''/dev/shm is gone, so no batch can reach the training process'\''
tl_shm=$(stat -f -c '\''%T %S*%b %S*%a'\'' /dev/shm 2>/dev/null) || tl_bad '\''the size of /dev/shm is not readable'\''
[ "${tl_shm%% *}" = tmpfs ] || tl_bad "/dev/shm is ${tl_shm%% *}, not tmpfs: it is mounted over"
tl_free=$((${tl_shm##* })) tl_size=${tl_shm% *} tl_size=$((${tl_size##* }))
[ "$tl_size" -eq 0 ] || [ "$tl_size" -ge 231325696 ] ||
  tl_bad "/dev/shm has $tl_size bytes, below the planned 231325696: it was replaced or shrunk"
tl_probe=/dev/shm/.trainlaunch-health-$$
{ true >"$tl_probe"; } 2>/dev/null || tl_bad "uid $(id -u) can'\''t make files in /dev/shm, as batches are"
rm -f "$tl_probe"
tl_workers=0
for tl_comm in /proc/[0-9]*/comm; do
  { read -r tl_name <"$tl_comm"; } 2>/dev/null || continue # it ended meanwhile
  if [ "$tl_name" = pt_data_worker ]; then tl_workers=$((tl_workers + 1)); fi
done
if [ "$tl_size" -eq 0 ]; then # size=0 has no limit, and the kernel then counts no use
  echo "shm used=unknown peak=unknown size=unlimited workers=$tl_workers/4"
  exit
fi
tl_used=$((tl_size - tl_free)) tl_peak='\'''\''
{ read -r tl_peak </dev/shm/.trainlaunch-peak; } 2>/dev/null
case $tl_peak in *[!0-9]* | '\'''\'') tl_peak=-1 ;; esac
if [ "$tl_used" -gt "$tl_peak" ]; then
  tl_peak=$tl_used # in place: a full /dev/shm still has the first check'\''s page
  { printf '\''%-20d\n'\'' "$tl_peak" 1<>/dev/shm/.trainlaunch-peak; } 2>/dev/null
fi
echo "shm used=$tl_used peak=$tl_peak size=$tl_size workers=$tl_workers/4"
' \
  --entrypoint /bin/sh \
  rocm/pytorch:rocm7.0_ubuntu24.04_py3.12_pytorch_release_2.8.0 \
  -c \
  '# trainlaunch preflight: proves this container before the job'\''s first line, then becomes the job.
# It exits with 78 when the files are wrong, with 75 when this machine is (docs/preflight.md).
# shellcheck disable=SC2317,SC3045 # a trap calls tl_pass; dash, busybox and bash have ulimit -H and -S
tl_ranks=2 tl_name=uploads
tl_workers=2 tl_per_worker=77094912 tl_besides=77135872
tl_fix='\''batches pass through it, and without room workers die or hang; set shm_size to 2Gi'\''
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
# A secret of the environment becomes a file in memory that this uid alone can read.
(umask 377 && printf %s "${HF_TOKEN:-}" >/run/secrets/HF_TOKEN) 2>/dev/null ||
  tl_stop 78 "uid $(id -u) can'\''t write /run/secrets/HF_TOKEN; remove its folder from the image, or write as: env"
unset HF_TOKEN
[ -r "${HF_TOKEN_FILE:-}" ] || tl_stop 78 "uid $(id -u) can'\''t read $HF_TOKEN_FILE; let it read that file, or set user"
[ -r "${SSH_KEY_FILE:-}" ] || tl_stop 78 "uid $(id -u) can'\''t read $SSH_KEY_FILE; let it read that file, or set user"
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
if [ "$tl_size" -eq 0 ]; then tl_shm=unlimited tl_size=2147483648 tl_free=4611686018427387904; fi
[ "$tl_size" -ge 231325696 ] || tl_stop 78 "/dev/shm has $tl_shm of the planned 221 MiB; $tl_fix"
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
  "/dev/shm needs $tl_needs of $tl_mem memory, $((tl_use >> 20)) are used; set resources.memory to 4608Mi"
tl_files=$(ulimit -H -n) && ulimit -S -n "$tl_files"
[ "$tl_files" -ge 68 ] || tl_stop 78 "$tl_files open files allowed, tensors need 68; set ulimits.nofile to 68"
[ -e /dev/kfd ] || tl_stop 75 "no /dev/kfd is here, but the job asks for AMD GPUs; start it where they are"
{ [ -r /dev/kfd ] && [ -w /dev/kfd ]; } ||
  tl_stop 78 "uid $(id -u) can'\''t open /dev/kfd; add \"$(stat -c %g /dev/kfd)\" to group_add"
for tl_dir in "$PWD" "${HOME:-/}" \
  /fast /scratch; do [ -w "$tl_dir" ] || tl_say "warning: can'\''t write to $tl_dir"; done
# What the job reads; a thread variable that the image or the job sets stays as it is.
export TRAINLAUNCH_NUM_WORKERS="$tl_workers" TRAINLAUNCH_PREFETCH_FACTOR=2 TRAINLAUNCH_PIN_MEMORY=1
export TRAINLAUNCH_BATCH_SIZE=32 TRAINLAUNCH_PERSISTENT_WORKERS=0 TRAINLAUNCH_TIMEOUT=0
export TRAINLAUNCH_SHM_BYTES="$tl_size" TRAINLAUNCH_RUN_ID="${TRAINLAUNCH_RUN_ID:-$tl_name-$tl_host}"
tl_threads=$((tl_per_rank < 8 ? 1 : tl_per_rank < 16 ? tl_per_rank / 4 : 4))
export OMP_NUM_THREADS="${OMP_NUM_THREADS-$tl_threads}" MKL_NUM_THREADS="${MKL_NUM_THREADS-$tl_threads}"
export TORCHINDUCTOR_COMPILE_THREADS="${TORCHINDUCTOR_COMPILE_THREADS-$tl_per_rank}"
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS-1}" NUMEXPR_NUM_THREADS="${NUMEXPR_NUM_THREADS-1}"
export RAYON_NUM_THREADS="${RAYON_NUM_THREADS-1}" OPENCV_FOR_THREADS_NUM="${OPENCV_FOR_THREADS_NUM-1}"
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
  python upload.py
