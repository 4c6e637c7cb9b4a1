#!/bin/sh
# Rendered by trainlaunch from secrets.yaml for docker: change that file and render again.
# rendering format 3
# Relative mounts are relative to the folder of secrets.yaml: run this there.
# image_entrypoint is not set: an ENTRYPOINT that the image has is not run.
# shellcheck disable=SC2016  # paths of secrets stand here as they are
docker_run() {
  # --shm-size is minimum size min(2 GiB, memory/2), above upper bound 590 MiB
  exec docker run \
    --rm --init --name uploads --pull missing \
    --label dev.trainlaunch.job=uploads \
    --label 'dev.trainlaunch.plan=processes=4 queued_batches=8 need=231325696' \
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
    --env "TRAINLAUNCH_PLAN=$(plan)" \
    --env WANDB_API_KEY \
    --env HF_TOKEN \
    --env S3_KEY \
    --stop-timeout 30 \
    --health-interval 30s --health-timeout 10s \
    --health-retries 3 --health-start-period 30m \
    --health-cmd "$(health)" \
    --entrypoint /bin/sh \
    rocm/pytorch:rocm7.0_ubuntu24.04_py3.12_pytorch_release_2.8.0 \
    -c "$(preflight)" trainlaunch \
    python upload.py
}
plan() {
  cat <<'END_OF_TEXT'
ranks=2 workers=2 stated=0 batch=32 files=68 memory=4608 need=231325696 size=2147483648 first=77094912:77135872 every=77119488:115736576 without=0 name=uploads pin=1 gpus=amd written=HF_TOKEN paths='HF_TOKEN_FILE SSH_KEY_FILE' disks='/fast /scratch'
END_OF_TEXT
}
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
if docker container inspect uploads >/dev/null 2>&1; then
  echo 'the name uploads is taken: trainlaunch down uploads ends and removes a run that up left, docker rm uploads another container; render --name gives this one another name' >&2
  exit 125
fi
# From here on trainlaunch's own scripts, the same in every text of this format.
health() {
  cat <<'END_OF_TEXT'
# trainlaunch health, the same for every job: /dev/shm is as TRAINLAUNCH_PLAN has it, or one sentence and exit 1.
# A full one is healthy: an idle queue fills it. Called as liveness it fails even where readiness only records.
set +eufCxv # a SHELLOPTS of the image would end it without a word
tl_need='' tl_least='' tl_ranks=1 tl_workers=0 tl_planned='' tl_shared='' tl_stall='' tl_begin='' tl_records=''
tl_take() { for tl_key; do eval "tl_${tl_key%%=*}=\${tl_key#*=}"; done; } # WORD...: a variable each
eval "tl_take ${TRAINLAUNCH_PLAN-}" # what of these differs for this job
tl_planned=${tl_planned:-$((tl_ranks * tl_workers))}
[ -z "$tl_records" ] || [ "$0" = liveness ] || trap 'exit 0' EXIT # something acts on readiness here
tl_bad() { printf 'unhealthy: %s\n' "$1"; exit 1; }
tl_least=${tl_least:-$tl_need}; [ "$tl_least" ] || tl_bad 'TRAINLAUNCH_PLAN has no numbers of this job'
[ -d /dev/shm ] || tl_bad '/dev/shm is gone, so no batch can reach the training process'
tl_shm=$(stat -f -c '%T %S*%b %S*%a' /dev/shm 2>/dev/null) || tl_bad 'the size of /dev/shm is not readable'
[ "${tl_shm%% *}" = tmpfs ] || tl_bad "/dev/shm is ${tl_shm%% *}, not tmpfs: it is mounted over"
tl_free=$((${tl_shm##* })) tl_mount=${tl_shm% *} tl_mount=$((${tl_mount##* }))
[ "$tl_mount" -eq 0 ] || [ "$tl_mount" -ge "$tl_least" ] ||
  tl_bad "/dev/shm has $tl_mount bytes, below the planned $tl_least: it was replaced or shrunk"
tl_probe='' tl_peak='' tl_workers=0 tl_used=$((tl_mount - tl_free))
{ read -r tl_probe </proc/sys/kernel/random/uuid; } 2>/dev/null
tl_probe=/dev/shm/.trainlaunch-${tl_probe:-$$} # nobody guesses it, and no link is followed
(set -C && : >"$tl_probe") 2>/dev/null || tl_bad "uid $(id -u) can't make files in /dev/shm, as batches are"
rm -f "$tl_probe"
if [ "$tl_stall" ]; then
  # A process that loads data has a line: pid, its start, rank, the second of /proc/uptime since it waits, batches.
  tl_page=/dev/shm/.trainlaunch${tl_shared:+-${TRAINLAUNCH_RUN_ID-}}/heartbeat
  tl_waits() { # sets the longest wait, and in tl_stuck whose is too long
    tl_wait='' tl_stuck=''; read -r tl_now _ </proc/uptime
    while read -r tl_pid tl_start tl_rank tl_since tl_got; do
      tl_stat='' tl_nth=0; read -r tl_stat <"/proc/$tl_pid/stat"
      for tl_word in ${tl_stat##*) }; do tl_nth=$((tl_nth + 1)) # behind its name
        case $tl_nth in 1) tl_state=$tl_word ;; 20) break ;; esac; done
      # One that ended waits for nothing, nor does a later one that has its pid.
      [ "$tl_nth $tl_word" = "20 $tl_start" ] || continue; [ "$tl_state" != Z ] || continue
      case $tl_since:$tl_got in *[!0-9:]* | :* | *:) continue ;; esac
      tl_long=$((tl_since ? ${tl_now%%.*} - tl_since : 0)) tl_most=$((tl_got < 2 ? tl_begin : tl_stall))
      [ "$tl_long" -le "${tl_wait:--1}" ] || tl_wait=$tl_long
      [ "$tl_long" -lt "$tl_most" ] || tl_stuck="$tl_rank $tl_since $tl_most" tl_late=$tl_long
    done <"$tl_page"
  } 2>/dev/null
  tl_waits
  if [ "$tl_stuck" ]; then # unless that number was read while it was written
    tl_twice=$tl_stuck; tl_waits; [ "$tl_stuck" != "$tl_twice" ] ||
      tl_bad "rank ${tl_stuck%% *} has waited $tl_late s for one batch, ${tl_stuck##* } s are allowed (stall_after)"
  fi
  printf 'longest_wait=%s ' "${tl_wait:-unknown}"
fi
for tl_comm in /proc/[0-9]*/comm; do
  { read -r tl_name <"$tl_comm"; } 2>/dev/null || continue # it ended meanwhile
  if [ "$tl_name" = pt_data_worker ]; then tl_workers=$((tl_workers + 1)); fi
done
if [ "$tl_mount" -eq 0 ]; then # size=0 has no limit, and the kernel then counts no use
  echo "shm used=unknown peak=unknown size=unlimited workers=$tl_workers/$tl_planned"
  exit
fi
if [ "$tl_shared" ]; then # its other users' files and workers count here too
  echo "shm used=$tl_used size=$tl_mount of the host, workers=$tl_workers on the host"
  exit
fi
tl_own=/dev/shm/.trainlaunch; mkdir -m 700 "$tl_own" 2>/dev/null
if [ -O "$tl_own" ] && [ ! -L "$tl_own" ]; then # else somebody made it who isn't this job
  { read -r tl_peak <"$tl_own/peak"; } 2>/dev/null
  case $tl_peak in *[!0-9]* | '') tl_peak=-1 ;; esac
  if [ "$tl_used" -gt "$tl_peak" ]; then
    tl_peak=$tl_used # in place: a full /dev/shm still has the first check's page
    { printf '%-20d\n' "$tl_peak" 1<>"$tl_own/peak"; } 2>/dev/null
  fi
fi
echo "shm used=$tl_used peak=${tl_peak:-$tl_used} size=$tl_mount workers=$tl_workers/$tl_planned"
END_OF_TEXT
}
preflight() {
  cat <<'END_OF_TEXT'
# trainlaunch preflight, the same for every job: proves this container by TRAINLAUNCH_PLAN, then becomes the job.
# It exits with 78 when the files are wrong, with 75 when this machine is (docs/preflight.md).
set +eufCxv # a SHELLOPTS of the image would end it without a word
tl_name='' tl_ranks=1 tl_nodes=1 tl_workers=0 tl_stated='' tl_tuned='' tl_gpus='' tl_files=0 tl_memory='' tl_home=''
tl_need='' tl_size='' tl_first='' tl_every='' tl_without='' tl_unsized=0 tl_asks='' tl_shared='' tl_signal=''
tl_batch='' tl_prefetch=2 tl_persistent=0 tl_timeout=0 tl_pin=0 tl_inject='' tl_filled='' tl_script='' tl_restarts=''
tl_written='' tl_paths='' tl_read='' tl_disks='' tl_saves='' tl_bytes=0 tl_parts='' tl_planned=''
tl_take() { for tl_key; do eval "tl_${tl_key%%=*}=\${tl_key#*=}"; done; } # WORD...: a variable each
eval "tl_take ${TRAINLAUNCH_PLAN-}"; unset TRAINLAUNCH_PLAN # what of these differs for this job
tl_stated=${tl_stated:-$((tl_ranks * tl_workers))}; [ "$tl_workers" -gt 0 ] || tl_prefetch=''
tl_unpack='' tl_inside=''; if [ "$tl_parts" ]; then tl_unpack=$1; shift; fi
tl_say() { printf 'trainlaunch: %s\n' "$1" >&2; }
tl_stop() { # CODE SENTENCE
  tl_say "preflight stopped ($1): $2"
  [ ! -w /dev/termination-log ] || tl_say "preflight stopped ($1): $2" 2>/dev/termination-log; exit "$1"; }
tl_number() { case $1 in 0) ;; *[!0-9]* | '' | 0* | ?????????????????*) return 1 ;; esac; } # may arithmetic take it
tl_counts() { tl_number "$1" && [ "$1" -gt 0 ]; }
tl_makes() { (set -C && : >"$1/$tl_probe" && { rm -f "$1/$tl_probe" || :; }) 2>/dev/null; } # FOLDER: a file there
tl_room() { # FOLDER: sets the type of its file system, and the bytes that it has and has left
  tl_list=$(stat -f -c '%T %S %b %a' "$1" 2>/dev/null) tl_type=${tl_list%% *} tl_list=${tl_list#* }
  tl_key=${tl_list%% *} tl_free=${tl_list##* } tl_list=${tl_list#* } tl_all=${tl_list%% *}
  { tl_counts "$tl_key" && tl_number "$tl_all" && tl_number "$tl_free"; } ||
    tl_stop 78 "the image has no stat that tells a file system's size; install coreutils in it"
  tl_all=$((tl_all * tl_key)) tl_free=$((tl_free * tl_key)); }
tl_or() { if [ "$tl_shared" ]; then echo "$2"; else echo "$1"; fi; } # what to type: for a container, for this host
tl_leftovers() { # FILE...: of a dead attempt where /dev/shm outlives its container, or of those who share it
  for tl_key; do [ ! -e "$tl_key" ] || tl_left=$((tl_left + 1)); done; [ "$tl_left" -gt 0 ] || return 0
  tl_say "warning: /dev/shm has $tl_left files of other runs, $(du -sk /dev/shm 2>/dev/null | cut -f1) KiB in all"
  if [ "${TRAINLAUNCH_CLEAN_SHM-}" = 1 ]; then printf '%s\0' "$@" | xargs -0 rm -f; fi; }
tl_host='' tl_probe='' tl_list='' tl_quota='' tl_period='' tl_limit='' tl_use='' tl_idle=0 tl_busy=0 tl_cpus=0
tl_user="uid $(id -u 2>/dev/null || echo unknown)" tl_left=0 tl_mem=unlimited
[ "$tl_need" ] || tl_stop 78 "TRAINLAUNCH_PLAN has no numbers of this job; render its files again"
tl_mib=$(((tl_size + 1048575) >> 20))
{ read -r tl_host </proc/sys/kernel/hostname; read -r tl_probe </proc/sys/kernel/random/uuid; } 2>/dev/null
tl_probe=.trainlaunch-${tl_probe:-$tl_host-$$} # nobody guesses it
for tl_key in $tl_written; do # a secret of the environment becomes a file in memory that this uid alone can read
  (umask 377 && eval "printf %s \"\${$tl_key-}\"" >"/run/secrets/$tl_key") 2>/dev/null ||
    tl_stop 78 "$tl_user can't write /run/secrets/$tl_key; remove its folder from the image, or write as: env"
  unset "$tl_key"; done
for tl_key in $tl_paths; do eval "tl_list=\${$tl_key-}"
  [ -r "$tl_list" ] || tl_stop 78 "$tl_user can't read $tl_list; let it read that file, or set user"; done
for tl_key in $tl_read; do eval "$tl_key=\$(cat /run/secrets/$tl_key) && export $tl_key" ||
  tl_stop 78 "$tl_user can't read /run/secrets/$tl_key; let it read that file, or set user"; done
# A batch is a file in /dev/shm, passed through a socket in the temporary directory that Python would pick.
tl_fix="batches pass through it, and without room workers die or hang; $(
  tl_or "set shm_size to ${tl_mib}Mi" "as root, mount -o remount,size=${tl_mib}m /dev/shm")"
[ -d /dev/shm ] || tl_stop 78 "/dev/shm is missing, as with ipc none; $tl_fix"
tl_makes /dev/shm ||
  tl_stop 78 "$tl_user can't make files in /dev/shm, and batches are files; mount it writable, mode 1777"
for tl_tmp in "${TMPDIR:-${TEMP:-${TMP:-/tmp}}}" /tmp /var/tmp /usr/tmp "$PWD" ''; do
  if [ -z "$tl_tmp" ] || tl_makes "$tl_tmp"; then break; fi; done
tl_workers_stop() { if [ "${tl_planned:-$tl_workers}" -gt 0 ]; then tl_stop 78 "$1"; else tl_say "warning: $1"; fi; }
[ "${TMPDIR:-$tl_tmp}" = "${tl_tmp:-none}" ] ||
  tl_workers_stop "$tl_user can't make files in ${TMPDIR:-/tmp}, so workers would hang; set TMPDIR to /dev/shm"
[ "${#tl_tmp}" -le 75 ] || tl_workers_stop "TMPDIR is ${#tl_tmp} long, a worker's socket allows 75; set it to /tmp"
if [ "$tl_parts" ]; then
  # Python that the job's own processes import: in a folder that this uid made and nobody else can enter.
  tl_inside=/dev/shm/.trainlaunch${tl_shared:+-${TRAINLAUNCH_RUN_ID:-$tl_name-$tl_host}}
  mkdir -m 700 "$tl_inside" 2>/dev/null
  if [ -O "$tl_inside" ] && [ -d "$tl_inside" ] && [ ! -L "$tl_inside" ] && chmod 700 "$tl_inside" 2>/dev/null; then
    for tl_key in sitecustomize.py trainlaunch_inside __pycache__ heartbeat; do # of an earlier attempt of this run
      rm -rf "${tl_inside:?}/$tl_key"; done
  else tl_say "warning: $tl_inside is not of $tl_user, so $tl_parts is off"; tl_inside=''; fi
fi
tl_leftovers /dev/shm/torch_* /dev/shm/nccl-* /dev/shm/psm_* /dev/shm/sem.*
tl_room /dev/shm
[ "$tl_type" = tmpfs ] || tl_stop 78 "/dev/shm is $tl_type, not tmpfs: drop that mount; $tl_fix"
tl_mount=$tl_all tl_shm="$((tl_all >> 20)) MiB"
if [ "$tl_mount" -eq 0 ]; then tl_shm=unlimited tl_mount=$tl_size tl_free=4611686018427387904; fi
tl_least=$((tl_unsized ? tl_size : tl_need)) tl_key=needs; [ "$tl_unsized" -eq 0 ] || tl_key='is planned with'
[ "$tl_mount" -ge "$tl_least" ] ||
  tl_stop 78 "/dev/shm has $tl_shm, the job $tl_key $(((tl_least + 1048575) >> 20)) MiB; $tl_fix"
# CPUs by affinity and cpuset, then by the quota, which neither nproc nor Python sees; cgroup v1, then v2.
while read -r tl_key tl_list; do [ "$tl_key" != Cpus_allowed_list: ] || break; done </proc/self/status
IFS=,; for tl_key in ${tl_list:-1-$(grep -c ^processor /proc/cpuinfo)}; do
  tl_cpus=$((tl_cpus + ${tl_key#*-} - ${tl_key%-*} + 1)); done; unset IFS
tl_cg=/sys/fs/cgroup; { read -r tl_quota <$tl_cg/cpu/cpu.cfs_quota_us; read -r tl_period <$tl_cg/cpu/cpu.cfs_period_us
  read -r tl_limit <$tl_cg/memory/memory.limit_in_bytes; read -r tl_use <$tl_cg/memory/memory.usage_in_bytes
  read -r tl_quota tl_period <$tl_cg/cpu.max
  read -r tl_limit <$tl_cg/memory.max; read -r tl_use <$tl_cg/memory.current; } 2>/dev/null
tl_counts "$tl_period" || tl_period=100000
if tl_counts "${TRAINLAUNCH_CPUS-}" && [ "$TRAINLAUNCH_CPUS" -lt "$tl_cpus" ]; then tl_cpus=$TRAINLAUNCH_CPUS; fi
tl_has=$tl_cpus # as it is said: 0.3 is no whole CPU, and counts as one
if tl_counts "$tl_quota" && [ "$((tl_quota / tl_period))" -lt "$tl_cpus" ]; then
  tl_list=$((1000 + tl_quota * 1000 / tl_period % 1000)) tl_cpus=$((tl_quota / tl_period))
  tl_has=$tl_cpus.${tl_list#1}; while case $tl_has in *0) true ;; *) false ;; esac; do tl_has=${tl_has%0}; done
  tl_has=${tl_has%.} tl_cpus=$((tl_cpus < 1 ? 1 : tl_cpus))
fi
tl_per_rank=$((tl_cpus > tl_ranks ? tl_cpus / tl_ranks : 1))
if [ "$tl_without" ]; then
  # num_workers is never raised; it is lowered to what CPUs and free /dev/shm allow. A GPU job keeps one.
  tl_most=$tl_per_rank; [ "$tl_gpus" ] || tl_most=$((tl_cpus < 4 ? 0 : tl_cpus / (4 * tl_ranks)))
  [ -z "$tl_tuned" ] || [ "$tl_cpus" -lt "$tl_tuned" ] || tl_most=$tl_workers # measured: the rule knows less
  for tl_key in $tl_every; do tl_list=$(((tl_free - ${tl_key#*:}) / ${tl_key%:*})) # A:B, A*W + B bytes of W workers
    tl_most=$((tl_list >= tl_most ? tl_most : tl_list > 1 ? tl_list : tl_most > 0)); done
  tl_workers=$((tl_most < tl_workers ? tl_most : tl_workers)) tl_need=$tl_without
  if [ "$tl_workers" -eq 0 ]; then tl_first='' tl_prefetch='' tl_persistent=0 tl_timeout=0; fi # refused without workers
  for tl_key in $tl_first; do tl_list=$((${tl_key%:*} * tl_workers + ${tl_key#*:})) # likewise, of one epoch
    tl_need=$((tl_list > tl_need ? tl_list : tl_need)); done
fi
[ "$tl_stated" -le "$tl_cpus" ] || tl_say "warning: $tl_stated DataLoader workers share $tl_has CPUs"
tl_needs="$(((tl_need + 1048575) >> 20)) MiB"
[ "$tl_free" -ge "$tl_need" ] ||
  tl_stop 75 "/dev/shm has $((tl_free >> 20)) of $tl_shm free, the job needs $tl_needs; end what else uses it"
for tl_list in $tl_cg/memory/memory.stat $tl_cg/memory.stat; do # files that the kernel caches it gives back
  while read -r tl_key tl_file; do case $tl_key in
    *inactive_file) tl_idle=$tl_file ;; *active_file) tl_busy=$tl_file ;; esac; done <"$tl_list"; done 2>/dev/null
tl_number "$tl_idle" || tl_idle=0; tl_number "$tl_busy" || tl_busy=0
if tl_counts "$tl_limit" && tl_number "$tl_use"; then tl_mem="$((tl_limit >> 20)) MiB"
  [ $((tl_limit - tl_use + tl_idle + tl_busy)) -ge "$tl_need" ] || tl_stop $((tl_limit < tl_need ? 78 : 75)) \
    "/dev/shm needs $tl_needs of $tl_mem memory, $((tl_use >> 20)) are used; $(
    tl_or "set resources.memory to ${tl_memory}Mi" "end what else uses it, or lower num_workers")"; fi
tl_list=$(ulimit -H -n) && ulimit -S -n "$tl_list"
if tl_number "$tl_list" && [ "$tl_list" -lt "$tl_files" ]; then
  tl_stop 78 "$tl_list open files allowed, tensors need $tl_files; $(
    tl_or "set ulimits.nofile to $tl_files" "raise nofile in /etc/security/limits.conf")"; fi
case $tl_gpus in
  nvidia) for tl_key in /dev/nvidia[0-9]* /dev/dxg /dev/nvmap ''; do if [ -e "$tl_key" ]; then break; fi; done
    [ "$tl_key" ] || tl_stop 75 "no /dev/nvidia0 is here, but the job asks for GPUs; start it where they are" ;;
  amd) [ -e /dev/kfd ] || tl_stop 75 "no /dev/kfd is here, but the job asks for AMD GPUs; start it where they are"
    { [ -r /dev/kfd ] && [ -w /dev/kfd ]; } || tl_stop 78 "$tl_user can't open /dev/kfd; $(
      tl_or "add \"$(stat -c %g /dev/kfd)\" to group_add" "join its group $(stat -c %G /dev/kfd)")" ;;
esac
[ "${1-}" != torchrun ] || command -v torchrun >/dev/null ||
  tl_stop 78 "torchrun is not on PATH $PATH; $(tl_or 'use an image that has torch' 'install torch')"
if [ "$tl_nodes" -gt 1 ]; then
  # Node 0 keeps the rendezvous. torch would ask DNS who that is, which may not know yet. Images come late: 30 min.
  tl_key=${JOB_COMPLETION_INDEX:-${RANK:-}} tl_list=${PET_RDZV_ENDPOINT%%[.:]*}
  if [ -z "$tl_key" ] && [ "$tl_list" != "$tl_host" ]; then tl_key=1; fi
  tl_key="join_timeout=1800,read_timeout=1800,is_host=$((${tl_key:-0} == 0))"
  export PET_RDZV_CONF="$tl_key${PET_RDZV_CONF:+,$PET_RDZV_CONF}"
fi
# A uid that the image doesn't know has no name, which getpass.getuser() asks for, as torch.compile does. Podman
# makes the number one.
case $tl_shared$(id -un 2>/dev/null) in yes* | *[!0-9]*) ;;
  *) export USER="${USER:-trainlaunch}" LOGNAME="${LOGNAME:-trainlaunch}" ;; esac
# Nor has it a home, and without one no library has a place for its caches.
if [ -z "$tl_shared$tl_home" ] && [ ! -w "${HOME:-/}" ] && [ "${tl_tmp#/dev/shm}" = "$tl_tmp" ]; then
  tl_list=$tl_tmp/trainlaunch-home; mkdir -m 700 "$tl_list" 2>/dev/null
  if [ -O "$tl_list" ] && [ -d "$tl_list" ] && [ ! -L "$tl_list" ]; then # else somebody else's
    export HOME="$tl_list" XDG_CACHE_HOME="${XDG_CACHE_HOME:-$tl_list/.cache}"
    export TORCHINDUCTOR_CACHE_DIR="${TORCHINDUCTOR_CACHE_DIR:-$tl_list/.cache/torchinductor}"
    export TRITON_CACHE_DIR="${TRITON_CACHE_DIR:-$tl_list/.cache/triton}"
    export MPLCONFIGDIR="${MPLCONFIGDIR:-$tl_list/.cache/matplotlib}"; fi; fi
case $PWD in / | "${HOME:-/}") ;; *) [ -w "$PWD" ] || tl_say "warning: can't write to $PWD" ;; esac # nobody means /
[ -w "${HOME:-/}" ] || tl_say "warning: can't write to ${HOME:-/}"
(eval "set -- $tl_disks"; for tl_key; do [ -w "$tl_key" ] || tl_say "warning: can't write to $tl_key"; done)
if [ "$tl_saves" ]; then
  # What this attempt saves the next one reads: proved now, not after the first epoch.
  [ -d "$tl_saves" ] || mkdir -p "$tl_saves" 2>/dev/null
  tl_makes "$tl_saves" ||
    tl_stop 78 "$tl_user can't make files in checkpoint_dir $tl_saves; let it write there, or set user"
  if [ "$tl_bytes" -gt 0 ]; then tl_room "$tl_saves"
    [ "$tl_all" -eq 0 ] || [ "$tl_free" -ge "$tl_bytes" ] || tl_stop $((tl_all < tl_bytes ? 78 : 75)) \
      "checkpoint_dir $tl_saves has $((tl_free >> 20)) MiB free of the $(((tl_bytes + 1048575) >> 20)) asked; make room"
  fi
  export TRAINLAUNCH_CHECKPOINT_DIR="$tl_saves"
fi
case ${tl_restarts:+${TRAINLAUNCH_RESTARTS-}} in '' | *[!0-9]* | 0?*) ;;
*) export TRAINLAUNCH_ATTEMPT=$((TRAINLAUNCH_RESTARTS + 1)) ;; esac
tl_set() { eval "export $1=\"\${$1-\$2}\""; } # NAME VALUE
if [ "$tl_inject" != off ]; then # what the job reads; a thread variable that the image or the job sets stays as it is
  export TRAINLAUNCH_NUM_WORKERS="$tl_workers" TRAINLAUNCH_PREFETCH_FACTOR="$tl_prefetch" \
    TRAINLAUNCH_PIN_MEMORY="$tl_pin" TRAINLAUNCH_SHM_BYTES="$tl_mount"
  export TRAINLAUNCH_BATCH_SIZE="$tl_batch" TRAINLAUNCH_PERSISTENT_WORKERS="$tl_persistent"
  export TRAINLAUNCH_TIMEOUT="$tl_timeout" TRAINLAUNCH_RUN_ID="${TRAINLAUNCH_RUN_ID:-$tl_name-$tl_host}"
  tl_threads=$((tl_per_rank > tl_workers ? tl_per_rank - tl_workers : 1))
  [ -z "$tl_gpus" ] || tl_threads=$((tl_per_rank < 8 ? 1 : tl_per_rank < 16 ? tl_per_rank / 4 : 4))
  for tl_key in OMP MKL; do tl_set "${tl_key}_NUM_THREADS" "$tl_threads"; done
  tl_set TORCHINDUCTOR_COMPILE_THREADS "$tl_per_rank"
  if [ "$tl_workers" -gt 0 ]; then tl_set OPENCV_FOR_THREADS_NUM 1
    for tl_key in OPENBLAS NUMEXPR RAYON; do tl_set "${tl_key}_NUM_THREADS" 1; done; fi
fi
if [ -z "$tl_inside" ]; then :
elif ( # bash keeps a long text in TMPDIR; a file __pycache__ stops Python from making a folder of that name
  set -C; umask 077; TMPDIR=$tl_inside; cd "$tl_inside" && : >__pycache__ || exit 1
  eval "$tl_unpack"
) 2>/dev/null; then export TRAINLAUNCH_INSIDE="$tl_parts" PYTHONPATH="$tl_inside${PYTHONPATH:+:$PYTHONPATH}"
else tl_say "warning: $tl_user can't write $tl_inside, so $tl_parts is off"; fi
# A token ends its argument, alone or after an equals sign. Variables of env stand in front as NAME=VALUE meanwhile.
for tl_key in $tl_filled; do eval "set -- \"$tl_key=\${$tl_key-}\" \"\$@\""; done
for tl_arg; do case $tl_arg in *'}') tl_key=${tl_arg##*=} ;; *) tl_key='' ;; esac # that search is slow in long texts
  tl_in=$tl_key; while case $tl_in in \{\{*\}\}) ;; *) false ;; esac; do tl_in=${tl_in#?} tl_in=${tl_in%?}; done
  case $tl_in in '{num_workers}') tl_list=$tl_workers ;; '{prefetch_factor}') tl_list=$tl_prefetch ;;
    '{batch_size}') tl_list=$tl_batch ;; '{nproc_per_node}') tl_list=$tl_ranks ;; *) tl_list=$tl_key tl_in=$tl_key; esac
  [ "$tl_in" = "$tl_key" ] || { tl_list=${tl_key#?} tl_list=${tl_list%?}; } # a literal loses a pair of its braces
  shift; set -- "$@" "${tl_arg%"$tl_key"}$tl_list"; done
for tl_key in $tl_filled; do export "${1?}"; shift; done
tl_say "preflight passed: /dev/shm $tl_shm (${tl_asks:+need }${tl_asks:-needs $tl_needs}), memory $tl_mem, \
$tl_has CPUs, num_workers $tl_workers"
if [ "$tl_script" ]; then
  # The script's shell passes no signal on to its child: stay, hand each to both unless exec made them one.
  tl_pass() { tl_again=yes; kill -s "$1" "$!"; read -r tl_key <"/proc/$!/comm"
    for tl_stat in /proc/[0-9]*/stat; do read -r tl_pid tl_comm _ tl_parent _ <"$tl_stat"
      # tee ends with what it reads: killed first, it would break the pipe of a job that is still saving.
      if [ "$tl_parent $tl_key" = "$! sh" ] && [ "$tl_comm" != '(tee)' ]; then kill -s "$1" "$tl_pid"; fi; done
  } 2>/dev/null
else
  [ "$tl_shared" ] || [ ! -t 0 ] || trap '' TSTP # what Ctrl-Z stops nobody in a container would continue
  if [ $$ -ne 1 ]; then exec "$@"; fi
  # As pid 1 the job would miss signals that it doesn't handle: stay, hand them on, return the job's code.
  tl_pass() { tl_again=yes; kill -s "$1" "$!"; } 2>/dev/null
fi
if env --default-signal=INT true 2>/dev/null; then set -- env --default-signal=INT,QUIT "$@"; fi
for tl_key in TERM INT HUP QUIT USR1 USR2 $tl_signal; do eval "trap 'tl_pass $tl_key' $tl_key"; done
{ (exec "$@") <&3 3<&- & } 3<&0 # in the background a shell would read nothing and ignore INT
# A wait that a signal cut short has that signal's code, the next one the job's; one too many has 127, bash's -1.
tl_code=127
until tl_again=''; wait "$!" 2>/dev/null; tl_stat=$?
  case $tl_stat in 127 | -1) ;; *) tl_code=$tl_stat ;; esac; [ -z "$tl_again" ]; do :; done; exit "$tl_code"
END_OF_TEXT
}
docker_run
