# Rendered by trainlaunch from job.yaml for dockerfile: change that file and render again.
# rendering format 3
# image_entrypoint is not set: an ENTRYPOINT that the image has is not run.
# active_deadline 12h: only `trainlaunch up` ends the job then.
# Build it from the repository's root: docker build -f THIS_FILE -t NAME .
# --shm-size is upper bound: multi-epoch peak 1.6 GiB + one storage per worker + 64 KiB pages + NCCL.
# An image can't size /dev/shm, limit memory or take GPUs; who starts it does:
# docker run --rm --init --shm-size 2468m --memory 32768m --cpus 8 --gpus '"device=0,1"' --ulimit memlock=-1:-1 --group-add video --tmpfs /fast:exec,size=32768m --mount type=bind,source=/data/imagenet,target=/data,readonly --mount type=volume,source=cache,target=/cache --mount type=volume,target=/scratch --env WANDB_API_KEY --stop-timeout 30 resnet50:local
FROM pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
ENV WANDB_MODE="offline"
ENV NOTE="a \"b\" \$c \\d \${{ x }} #"
ENV TRAINLAUNCH_PLAN="ranks=2 workers=4 stated=0 batch=128 files=72 memory=6144 need=1541652480 size=2587885568 first=308322304:308363264 every=308346880:462577664 without=0 name=resnet50 pin=1 gpus=nvidia disks='/scratch /fast'"
COPY ["jobs/requirements.txt", "/workspace/requirements.txt"]
RUN ["python", "-m", "pip", "install", "--no-cache-dir", "--requirement", "/workspace/requirements.txt"]
COPY ["jobs/", "/workspace/"]
WORKDIR "/workspace"
USER 1000:1000
HEALTHCHECK --interval=30s --timeout=10s --start-period=30m --retries=3 CMD ["/bin/sh", "-c", "# trainlaunch health, the same for every job: /dev/shm is as TRAINLAUNCH_PLAN has it, or one sentence and exit 1.\
\n# A full one is healthy: an idle queue fills it. Called as liveness it fails even where readiness only records.\
\nset +eufCxv # a SHELLOPTS of the image would end it without a word\
\ntl_need='' tl_least='' tl_ranks=1 tl_workers=0 tl_planned='' tl_shared='' tl_stall='' tl_begin='' tl_records=''\
\ntl_take() { for tl_key; do eval \"tl_${tl_key%%=*}=\\${tl_key#*=}\"; done; } # WORD...: a variable each\
\neval \"tl_take ${TRAINLAUNCH_PLAN-}\" # what of these differs for this job\
\ntl_planned=${tl_planned:-$((tl_ranks * tl_workers))}\
\n[ -z \"$tl_records\" ] || [ \"$0\" = liveness ] || trap 'exit 0' EXIT # something acts on readiness here\
\ntl_bad() { printf 'unhealthy: %s\\n' \"$1\"; exit 1; }\
\ntl_least=${tl_least:-$tl_need}; [ \"$tl_least\" ] || tl_bad 'TRAINLAUNCH_PLAN has no numbers of this job'\
\n[ -d /dev/shm ] || tl_bad '/dev/shm is gone, so no batch can reach the training process'\
\ntl_shm=$(stat -f -c '%T %S*%b %S*%a' /dev/shm 2>/dev/null) || tl_bad 'the size of /dev/shm is not readable'\
\n[ \"${tl_shm%% *}\" = tmpfs ] || tl_bad \"/dev/shm is ${tl_shm%% *}, not tmpfs: it is mounted over\"\
\ntl_free=$((${tl_shm##* })) tl_mount=${tl_shm% *} tl_mount=$((${tl_mount##* }))\
\n[ \"$tl_mount\" -eq 0 ] || [ \"$tl_mount\" -ge \"$tl_least\" ] ||\
\n  tl_bad \"/dev/shm has $tl_mount bytes, below the planned $tl_least: it was replaced or shrunk\"\
\ntl_probe='' tl_peak='' tl_workers=0 tl_used=$((tl_mount - tl_free))\
\n{ read -r tl_probe </proc/sys/kernel/random/uuid; } 2>/dev/null\
\ntl_probe=/dev/shm/.trainlaunch-${tl_probe:-$$} # nobody guesses it, and no link is followed\
\n(set -C && : >\"$tl_probe\") 2>/dev/null || tl_bad \"uid $(id -u) can't make files in /dev/shm, as batches are\"\
\nrm -f \"$tl_probe\"\
\nif [ \"$tl_stall\" ]; then\
\n  # A process that loads data has a line: pid, its start, rank, the second of /proc/uptime since it waits, batches.\
\n  tl_page=/dev/shm/.trainlaunch${tl_shared:+-${TRAINLAUNCH_RUN_ID-}}/heartbeat\
\n  tl_waits() { # sets the longest wait, and in tl_stuck whose is too long\
\n    tl_wait='' tl_stuck=''; read -r tl_now _ </proc/uptime\
\n    while read -r tl_pid tl_start tl_rank tl_since tl_got; do\
\n      tl_stat='' tl_nth=0; read -r tl_stat <\"/proc/$tl_pid/stat\"\
\n      for tl_word in ${tl_stat##*) }; do tl_nth=$((tl_nth + 1)) # behind its name\
\n        case $tl_nth in 1) tl_state=$tl_word ;; 20) break ;; esac; done\
\n      # One that ended waits for nothing, nor does a later one that has its pid.\
\n      [ \"$tl_nth $tl_word\" = \"20 $tl_start\" ] || continue; [ \"$tl_state\" != Z ] || continue\
\n      case $tl_since:$tl_got in *[!0-9:]* | :* | *:) continue ;; esac\
\n      tl_long=$((tl_since ? ${tl_now%%.*} - tl_since : 0)) tl_most=$((tl_got < 2 ? tl_begin : tl_stall))\
\n      [ \"$tl_long\" -le \"${tl_wait:--1}\" ] || tl_wait=$tl_long\
\n      [ \"$tl_long\" -lt \"$tl_most\" ] || tl_stuck=\"$tl_rank $tl_since $tl_most\" tl_late=$tl_long\
\n    done <\"$tl_page\"\
\n  } 2>/dev/null\
\n  tl_waits\
\n  if [ \"$tl_stuck\" ]; then # unless that number was read while it was written\
\n    tl_twice=$tl_stuck; tl_waits; [ \"$tl_stuck\" != \"$tl_twice\" ] ||\
\n      tl_bad \"rank ${tl_stuck%% *} has waited $tl_late s for one batch, ${tl_stuck##* } s are allowed (stall_after)\"\
\n  fi\
\n  printf 'longest_wait=%s ' \"${tl_wait:-unknown}\"\
\nfi\
\nfor tl_comm in /proc/[0-9]*/comm; do\
\n  { read -r tl_name <\"$tl_comm\"; } 2>/dev/null || continue # it ended meanwhile\
\n  if [ \"$tl_name\" = pt_data_worker ]; then tl_workers=$((tl_workers + 1)); fi\
\ndone\
\nif [ \"$tl_mount\" -eq 0 ]; then # size=0 has no limit, and the kernel then counts no use\
\n  echo \"shm used=unknown peak=unknown size=unlimited workers=$tl_workers/$tl_planned\"\
\n  exit\
\nfi\
\nif [ \"$tl_shared\" ]; then # its other users' files and workers count here too\
\n  echo \"shm used=$tl_used size=$tl_mount of the host, workers=$tl_workers on the host\"\
\n  exit\
\nfi\
\ntl_own=/dev/shm/.trainlaunch; mkdir -m 700 \"$tl_own\" 2>/dev/null\
\nif [ -O \"$tl_own\" ] && [ ! -L \"$tl_own\" ]; then # else somebody made it who isn't this job\
\n  { read -r tl_peak <\"$tl_own/peak\"; } 2>/dev/null\
\n  case $tl_peak in *[!0-9]* | '') tl_peak=-1 ;; esac\
\n  if [ \"$tl_used\" -gt \"$tl_peak\" ]; then\
\n    tl_peak=$tl_used # in place: a full /dev/shm still has the first check's page\
\n    { printf '%-20d\\n' \"$tl_peak\" 1<>\"$tl_own/peak\"; } 2>/dev/null\
\n  fi\
\nfi\
\necho \"shm used=$tl_used peak=${tl_peak:-$tl_used} size=$tl_mount workers=$tl_workers/$tl_planned\""]
ENTRYPOINT ["/bin/sh", "-c", "# trainlaunch preflight, the same for every job: proves this container by TRAINLAUNCH_PLAN, then becomes the job.\
\n# It exits with 78 when the files are wrong, with 75 when this machine is (docs/preflight.md).\
\nset +eufCxv # a SHELLOPTS of the image would end it without a word\
\ntl_name='' tl_ranks=1 tl_nodes=1 tl_workers=0 tl_stated='' tl_tuned='' tl_gpus='' tl_files=0 tl_memory='' tl_home=''\
\ntl_need='' tl_size='' tl_first='' tl_every='' tl_without='' tl_unsized=0 tl_asks='' tl_shared='' tl_signal=''\
\ntl_batch='' tl_prefetch=2 tl_persistent=0 tl_timeout=0 tl_pin=0 tl_inject='' tl_filled='' tl_script='' tl_restarts=''\
\ntl_written='' tl_paths='' tl_read='' tl_disks='' tl_saves='' tl_bytes=0 tl_parts='' tl_planned=''\
\ntl_take() { for tl_key; do eval \"tl_${tl_key%%=*}=\\${tl_key#*=}\"; done; } # WORD...: a variable each\
\neval \"tl_take ${TRAINLAUNCH_PLAN-}\"; unset TRAINLAUNCH_PLAN # what of these differs for this job\
\ntl_stated=${tl_stated:-$((tl_ranks * tl_workers))}; [ \"$tl_workers\" -gt 0 ] || tl_prefetch=''\
\ntl_unpack='' tl_inside=''; if [ \"$tl_parts\" ]; then tl_unpack=$1; shift; fi\
\ntl_say() { printf 'trainlaunch: %s\\n' \"$1\" >&2; }\
\ntl_stop() { # CODE SENTENCE\
\n  tl_say \"preflight stopped ($1): $2\"\
\n  [ ! -w /dev/termination-log ] || tl_say \"preflight stopped ($1): $2\" 2>/dev/termination-log; exit \"$1\"; }\
\ntl_number() { case $1 in 0) ;; *[!0-9]* | '' | 0* | ?????????????????*) return 1 ;; esac; } # may arithmetic take it\
\ntl_counts() { tl_number \"$1\" && [ \"$1\" -gt 0 ]; }\
\ntl_makes() { (set -C && : >\"$1/$tl_probe\" && { rm -f \"$1/$tl_probe\" || :; }) 2>/dev/null; } # FOLDER: a file there\
\ntl_room() { # FOLDER: sets the type of its file system, and the bytes that it has and has left\
\n  tl_list=$(stat -f -c '%T %S %b %a' \"$1\" 2>/dev/null) tl_type=${tl_list%% *} tl_list=${tl_list#* }\
\n  tl_key=${tl_list%% *} tl_free=${tl_list##* } tl_list=${tl_list#* } tl_all=${tl_list%% *}\
\n  { tl_counts \"$tl_key\" && tl_number \"$tl_all\" && tl_number \"$tl_free\"; } ||\
\n    tl_stop 78 \"the image has no stat that tells a file system's size; install coreutils in it\"\
\n  tl_all=$((tl_all * tl_key)) tl_free=$((tl_free * tl_key)); }\
\ntl_or() { if [ \"$tl_shared\" ]; then echo \"$2\"; else echo \"$1\"; fi; } # what to type: for a container, for this host\
\ntl_leftovers() { # FILE...: of a dead attempt where /dev/shm outlives its container, or of those who share it\
\n  for tl_key; do [ ! -e \"$tl_key\" ] || tl_left=$((tl_left + 1)); done; [ \"$tl_left\" -gt 0 ] || return 0\
\n  tl_say \"warning: /dev/shm has $tl_left files of other runs, $(du -sk /dev/shm 2>/dev/null | cut -f1) KiB in all\"\
\n  if [ \"${TRAINLAUNCH_CLEAN_SHM-}\" = 1 ]; then printf '%s\\0' \"$@\" | xargs -0 rm -f; fi; }\
\ntl_host='' tl_probe='' tl_list='' tl_quota='' tl_period='' tl_limit='' tl_use='' tl_idle=0 tl_busy=0 tl_cpus=0\
\ntl_user=\"uid $(id -u 2>/dev/null || echo unknown)\" tl_left=0 tl_mem=unlimited\
\n[ \"$tl_need\" ] || tl_stop 78 \"TRAINLAUNCH_PLAN has no numbers of this job; render its files again\"\
\ntl_mib=$(((tl_size + 1048575) >> 20))\
\n{ read -r tl_host </proc/sys/kernel/hostname; read -r tl_probe </proc/sys/kernel/random/uuid; } 2>/dev/null\
\ntl_probe=.trainlaunch-${tl_probe:-$tl_host-$$} # nobody guesses it\
\nfor tl_key in $tl_written; do # a secret of the environment becomes a file in memory that this uid alone can read\
\n  (umask 377 && eval \"printf %s \u005c\"\\${$tl_key-}\u005c\"\" >\"/run/secrets/$tl_key\") 2>/dev/null ||\
\n    tl_stop 78 \"$tl_user can't write /run/secrets/$tl_key; remove its folder from the image, or write as: env\"\
\n  unset \"$tl_key\"; done\
\nfor tl_key in $tl_paths; do eval \"tl_list=\\${$tl_key-}\"\
\n  [ -r \"$tl_list\" ] || tl_stop 78 \"$tl_user can't read $tl_list; let it read that file, or set user\"; done\
\nfor tl_key in $tl_read; do eval \"$tl_key=\\$(cat /run/secrets/$tl_key) && export $tl_key\" ||\
\n  tl_stop 78 \"$tl_user can't read /run/secrets/$tl_key; let it read that file, or set user\"; done\
\n# A batch is a file in /dev/shm, passed through a socket in the temporary directory that Python would pick.\
\ntl_fix=\"batches pass through it, and without room workers die or hang; $(\
\n  tl_or \"set shm_size to ${tl_mib}Mi\" \"as root, mount -o remount,size=${tl_mib}m /dev/shm\")\"\
\n[ -d /dev/shm ] || tl_stop 78 \"/dev/shm is missing, as with ipc none; $tl_fix\"\
\ntl_makes /dev/shm ||\
\n  tl_stop 78 \"$tl_user can't make files in /dev/shm, and batches are files; mount it writable, mode 1777\"\
\nfor tl_tmp in \"${TMPDIR:-${TEMP:-${TMP:-/tmp}}}\" /tmp /var/tmp /usr/tmp \"$PWD\" ''; do\
\n  if [ -z \"$tl_tmp\" ] || tl_makes \"$tl_tmp\"; then break; fi; done\
\ntl_workers_stop() { if [ \"${tl_planned:-$tl_workers}\" -gt 0 ]; then tl_stop 78 \"$1\"; else tl_say \"warning: $1\"; fi; }\
\n[ \"${TMPDIR:-$tl_tmp}\" = \"${tl_tmp:-none}\" ] ||\
\n  tl_workers_stop \"$tl_user can't make files in ${TMPDIR:-/tmp}, so workers would hang; set TMPDIR to /dev/shm\"\
\n[ \"${#tl_tmp}\" -le 75 ] || tl_workers_stop \"TMPDIR is ${#tl_tmp} long, a worker's socket allows 75; set it to /tmp\"\
\nif [ \"$tl_parts\" ]; then\
\n  # Python that the job's own processes import: in a folder that this uid made and nobody else can enter.\
\n  tl_inside=/dev/shm/.trainlaunch${tl_shared:+-${TRAINLAUNCH_RUN_ID:-$tl_name-$tl_host}}\
\n  mkdir -m 700 \"$tl_inside\" 2>/dev/null\
\n  if [ -O \"$tl_inside\" ] && [ -d \"$tl_inside\" ] && [ ! -L \"$tl_inside\" ] && chmod 700 \"$tl_inside\" 2>/dev/null; then\
\n    for tl_key in sitecustomize.py trainlaunch_inside __pycache__ heartbeat; do # of an earlier attempt of this run\
\n      rm -rf \"${tl_inside:?}/$tl_key\"; done\
\n  else tl_say \"warning: $tl_inside is not of $tl_user, so $tl_parts is off\"; tl_inside=''; fi\
\nfi\
\ntl_leftovers /dev/shm/torch_* /dev/shm/nccl-* /dev/shm/psm_* /dev/shm/sem.*\
\ntl_room /dev/shm\
\n[ \"$tl_type\" = tmpfs ] || tl_stop 78 \"/dev/shm is $tl_type, not tmpfs: drop that mount; $tl_fix\"\
\ntl_mount=$tl_all tl_shm=\"$((tl_all >> 20)) MiB\"\
\nif [ \"$tl_mount\" -eq 0 ]; then tl_shm=unlimited tl_mount=$tl_size tl_free=4611686018427387904; fi\
\ntl_least=$((tl_unsized ? tl_size : tl_need)) tl_key=needs; [ \"$tl_unsized\" -eq 0 ] || tl_key='is planned with'\
\n[ \"$tl_mount\" -ge \"$tl_least\" ] ||\
\n  tl_stop 78 \"/dev/shm has $tl_shm, the job $tl_key $(((tl_least + 1048575) >> 20)) MiB; $tl_fix\"\
\n# CPUs by affinity and cpuset, then by the quota, which neither nproc nor Python sees; cgroup v1, then v2.\
\nwhile read -r tl_key tl_list; do [ \"$tl_key\" != Cpus_allowed_list: ] || break; done </proc/self/status\
\nIFS=,; for tl_key in ${tl_list:-1-$(grep -c ^processor /proc/cpuinfo)}; do\
\n  tl_cpus=$((tl_cpus + ${tl_key#*-} - ${tl_key%-*} + 1)); done; unset IFS\
\ntl_cg=/sys/fs/cgroup; { read -r tl_quota <$tl_cg/cpu/cpu.cfs_quota_us; read -r tl_period <$tl_cg/cpu/cpu.cfs_period_us\
\n  read -r tl_limit <$tl_cg/memory/memory.limit_in_bytes; read -r tl_use <$tl_cg/memory/memory.usage_in_bytes\
\n  read -r tl_quota tl_period <$tl_cg/cpu.max\
\n  read -r tl_limit <$tl_cg/memory.max; read -r tl_use <$tl_cg/memory.current; } 2>/dev/null\
\ntl_counts \"$tl_period\" || tl_period=100000\
\nif tl_counts \"${TRAINLAUNCH_CPUS-}\" && [ \"$TRAINLAUNCH_CPUS\" -lt \"$tl_cpus\" ]; then tl_cpus=$TRAINLAUNCH_CPUS; fi\
\ntl_has=$tl_cpus # as it is said: 0.3 is no whole CPU, and counts as one\
\nif tl_counts \"$tl_quota\" && [ \"$((tl_quota / tl_period))\" -lt \"$tl_cpus\" ]; then\
\n  tl_list=$((1000 + tl_quota * 1000 / tl_period % 1000)) tl_cpus=$((tl_quota / tl_period))\
\n  tl_has=$tl_cpus.${tl_list#1}; while case $tl_has in *0) true ;; *) false ;; esac; do tl_has=${tl_has%0}; done\
\n  tl_has=${tl_has%.} tl_cpus=$((tl_cpus < 1 ? 1 : tl_cpus))\
\nfi\
\ntl_per_rank=$((tl_cpus > tl_ranks ? tl_cpus / tl_ranks : 1))\
\nif [ \"$tl_without\" ]; then\
\n  # num_workers is never raised; it is lowered to what CPUs and free /dev/shm allow. A GPU job keeps one.\
\n  tl_most=$tl_per_rank; [ \"$tl_gpus\" ] || tl_most=$((tl_cpus < 4 ? 0 : tl_cpus / (4 * tl_ranks)))\
\n  [ -z \"$tl_tuned\" ] || [ \"$tl_cpus\" -lt \"$tl_tuned\" ] || tl_most=$tl_workers # measured: the rule knows less\
\n  for tl_key in $tl_every; do tl_list=$(((tl_free - ${tl_key#*:}) / ${tl_key%:*})) # A:B, A*W + B bytes of W workers\
\n    tl_most=$((tl_list >= tl_most ? tl_most : tl_list > 1 ? tl_list : tl_most > 0)); done\
\n  tl_workers=$((tl_most < tl_workers ? tl_most : tl_workers)) tl_need=$tl_without\
\n  if [ \"$tl_workers\" -eq 0 ]; then tl_first='' tl_prefetch='' tl_persistent=0 tl_timeout=0; fi # refused without workers\
\n  for tl_key in $tl_first; do tl_list=$((${tl_key%:*} * tl_workers + ${tl_key#*:})) # likewise, of one epoch\
\n    tl_need=$((tl_list > tl_need ? tl_list : tl_need)); done\
\nfi\
\n[ \"$tl_stated\" -le \"$tl_cpus\" ] || tl_say \"warning: $tl_stated DataLoader workers share $tl_has CPUs\"\
\ntl_needs=\"$(((tl_need + 1048575) >> 20)) MiB\"\
\n[ \"$tl_free\" -ge \"$tl_need\" ] ||\
\n  tl_stop 75 \"/dev/shm has $((tl_free >> 20)) of $tl_shm free, the job needs $tl_needs; end what else uses it\"\
\nfor tl_list in $tl_cg/memory/memory.stat $tl_cg/memory.stat; do # files that the kernel caches it gives back\
\n  while read -r tl_key tl_file; do case $tl_key in\
\n    *inactive_file) tl_idle=$tl_file ;; *active_file) tl_busy=$tl_file ;; esac; done <\"$tl_list\"; done 2>/dev/null\
\ntl_number \"$tl_idle\" || tl_idle=0; tl_number \"$tl_busy\" || tl_busy=0\
\nif tl_counts \"$tl_limit\" && tl_number \"$tl_use\"; then tl_mem=\"$((tl_limit >> 20)) MiB\"\
\n  [ $((tl_limit - tl_use + tl_idle + tl_busy)) -ge \"$tl_need\" ] || tl_stop $((tl_limit < tl_need ? 78 : 75)) \u005c\
\n    \"/dev/shm needs $tl_needs of $tl_mem memory, $((tl_use >> 20)) are used; $(\
\n    tl_or \"set resources.memory to ${tl_memory}Mi\" \"end what else uses it, or lower num_workers\")\"; fi\
\ntl_list=$(ulimit -H -n) && ulimit -S -n \"$tl_list\"\
\nif tl_number \"$tl_list\" && [ \"$tl_list\" -lt \"$tl_files\" ]; then\
\n  tl_stop 78 \"$tl_list open files allowed, tensors need $tl_files; $(\
\n    tl_or \"set ulimits.nofile to $tl_files\" \"raise nofile in /etc/security/limits.conf\")\"; fi\
\ncase $tl_gpus in\
\n  nvidia) for tl_key in /dev/nvidia[0-9]* /dev/dxg /dev/nvmap ''; do if [ -e \"$tl_key\" ]; then break; fi; done\
\n    [ \"$tl_key\" ] || tl_stop 75 \"no /dev/nvidia0 is here, but the job asks for GPUs; start it where they are\" ;;\
\n  amd) [ -e /dev/kfd ] || tl_stop 75 \"no /dev/kfd is here, but the job asks for AMD GPUs; start it where they are\"\
\n    { [ -r /dev/kfd ] && [ -w /dev/kfd ]; } || tl_stop 78 \"$tl_user can't open /dev/kfd; $(\
\n      tl_or \"add \u005c\"$(stat -c %g /dev/kfd)\u005c\" to group_add\" \"join its group $(stat -c %G /dev/kfd)\")\" ;;\
\nesac\
\n[ \"${1-}\" != torchrun ] || command -v torchrun >/dev/null ||\
\n  tl_stop 78 \"torchrun is not on PATH $PATH; $(tl_or 'use an image that has torch' 'install torch')\"\
\nif [ \"$tl_nodes\" -gt 1 ]; then\
\n  # Node 0 keeps the rendezvous. torch would ask DNS who that is, which may not know yet. Images come late: 30 min.\
\n  tl_key=${JOB_COMPLETION_INDEX:-${RANK:-}} tl_list=${PET_RDZV_ENDPOINT%%[.:]*}\
\n  if [ -z \"$tl_key\" ] && [ \"$tl_list\" != \"$tl_host\" ]; then tl_key=1; fi\
\n  tl_key=\"join_timeout=1800,read_timeout=1800,is_host=$((${tl_key:-0} == 0))\"\
\n  export PET_RDZV_CONF=\"$tl_key${PET_RDZV_CONF:+,$PET_RDZV_CONF}\"\
\nfi\
\n# A uid that the image doesn't know has no name, which getpass.getuser() asks for, as torch.compile does. Podman\
\n# makes the number one.\
\ncase $tl_shared$(id -un 2>/dev/null) in yes* | *[!0-9]*) ;;\
\n  *) export USER=\"${USER:-trainlaunch}\" LOGNAME=\"${LOGNAME:-trainlaunch}\" ;; esac\
\n# Nor has it a home, and without one no library has a place for its caches.\
\nif [ -z \"$tl_shared$tl_home\" ] && [ ! -w \"${HOME:-/}\" ] && [ \"${tl_tmp#/dev/shm}\" = \"$tl_tmp\" ]; then\
\n  tl_list=$tl_tmp/trainlaunch-home; mkdir -m 700 \"$tl_list\" 2>/dev/null\
\n  if [ -O \"$tl_list\" ] && [ -d \"$tl_list\" ] && [ ! -L \"$tl_list\" ]; then # else somebody else's\
\n    export HOME=\"$tl_list\" XDG_CACHE_HOME=\"${XDG_CACHE_HOME:-$tl_list/.cache}\"\
\n    export TORCHINDUCTOR_CACHE_DIR=\"${TORCHINDUCTOR_CACHE_DIR:-$tl_list/.cache/torchinductor}\"\
\n    export TRITON_CACHE_DIR=\"${TRITON_CACHE_DIR:-$tl_list/.cache/triton}\"\
\n    export MPLCONFIGDIR=\"${MPLCONFIGDIR:-$tl_list/.cache/matplotlib}\"; fi; fi\
\ncase $PWD in / | \"${HOME:-/}\") ;; *) [ -w \"$PWD\" ] || tl_say \"warning: can't write to $PWD\" ;; esac # nobody means /\
\n[ -w \"${HOME:-/}\" ] || tl_say \"warning: can't write to ${HOME:-/}\"\
\n(eval \"set -- $tl_disks\"; for tl_key; do [ -w \"$tl_key\" ] || tl_say \"warning: can't write to $tl_key\"; done)\
\nif [ \"$tl_saves\" ]; then\
\n  # What this attempt saves the next one reads: proved now, not after the first epoch.\
\n  [ -d \"$tl_saves\" ] || mkdir -p \"$tl_saves\" 2>/dev/null\
\n  tl_makes \"$tl_saves\" ||\
\n    tl_stop 78 \"$tl_user can't make files in checkpoint_dir $tl_saves; let it write there, or set user\"\
\n  if [ \"$tl_bytes\" -gt 0 ]; then tl_room \"$tl_saves\"\
\n    [ \"$tl_all\" -eq 0 ] || [ \"$tl_free\" -ge \"$tl_bytes\" ] || tl_stop $((tl_all < tl_bytes ? 78 : 75)) \u005c\
\n      \"checkpoint_dir $tl_saves has $((tl_free >> 20)) MiB free of the $(((tl_bytes + 1048575) >> 20)) asked; make room\"\
\n  fi\
\n  export TRAINLAUNCH_CHECKPOINT_DIR=\"$tl_saves\"\
\nfi\
\ncase ${tl_restarts:+${TRAINLAUNCH_RESTARTS-}} in '' | *[!0-9]* | 0?*) ;;\
\n*) export TRAINLAUNCH_ATTEMPT=$((TRAINLAUNCH_RESTARTS + 1)) ;; esac\
\ntl_set() { eval \"export $1=\u005c\"\\${$1-\\$2}\u005c\"\"; } # NAME VALUE\
\nif [ \"$tl_inject\" != off ]; then # what the job reads; a thread variable that the image or the job sets stays as it is\
\n  export TRAINLAUNCH_NUM_WORKERS=\"$tl_workers\" TRAINLAUNCH_PREFETCH_FACTOR=\"$tl_prefetch\" \u005c\
\n    TRAINLAUNCH_PIN_MEMORY=\"$tl_pin\" TRAINLAUNCH_SHM_BYTES=\"$tl_mount\"\
\n  export TRAINLAUNCH_BATCH_SIZE=\"$tl_batch\" TRAINLAUNCH_PERSISTENT_WORKERS=\"$tl_persistent\"\
\n  export TRAINLAUNCH_TIMEOUT=\"$tl_timeout\" TRAINLAUNCH_RUN_ID=\"${TRAINLAUNCH_RUN_ID:-$tl_name-$tl_host}\"\
\n  tl_threads=$((tl_per_rank > tl_workers ? tl_per_rank - tl_workers : 1))\
\n  [ -z \"$tl_gpus\" ] || tl_threads=$((tl_per_rank < 8 ? 1 : tl_per_rank < 16 ? tl_per_rank / 4 : 4))\
\n  for tl_key in OMP MKL; do tl_set \"${tl_key}_NUM_THREADS\" \"$tl_threads\"; done\
\n  tl_set TORCHINDUCTOR_COMPILE_THREADS \"$tl_per_rank\"\
\n  if [ \"$tl_workers\" -gt 0 ]; then tl_set OPENCV_FOR_THREADS_NUM 1\
\n    for tl_key in OPENBLAS NUMEXPR RAYON; do tl_set \"${tl_key}_NUM_THREADS\" 1; done; fi\
\nfi\
\nif [ -z \"$tl_inside\" ]; then :\
\nelif ( # bash keeps a long text in TMPDIR; a file __pycache__ stops Python from making a folder of that name\
\n  set -C; umask 077; TMPDIR=$tl_inside; cd \"$tl_inside\" && : >__pycache__ || exit 1\
\n  eval \"$tl_unpack\"\
\n) 2>/dev/null; then export TRAINLAUNCH_INSIDE=\"$tl_parts\" PYTHONPATH=\"$tl_inside${PYTHONPATH:+:$PYTHONPATH}\"\
\nelse tl_say \"warning: $tl_user can't write $tl_inside, so $tl_parts is off\"; fi\
\n# A token ends its argument, alone or after an equals sign. Variables of env stand in front as NAME=VALUE meanwhile.\
\nfor tl_key in $tl_filled; do eval \"set -- \u005c\"$tl_key=\\${$tl_key-}\u005c\" \u005c\"\\$@\u005c\"\"; done\
\nfor tl_arg; do case $tl_arg in *'}') tl_key=${tl_arg##*=} ;; *) tl_key='' ;; esac # that search is slow in long texts\
\n  tl_in=$tl_key; while case $tl_in in \\{\\{*\\}\\}) ;; *) false ;; esac; do tl_in=${tl_in#?} tl_in=${tl_in%?}; done\
\n  case $tl_in in '{num_workers}') tl_list=$tl_workers ;; '{prefetch_factor}') tl_list=$tl_prefetch ;;\
\n    '{batch_size}') tl_list=$tl_batch ;; '{nproc_per_node}') tl_list=$tl_ranks ;; *) tl_list=$tl_key tl_in=$tl_key; esac\
\n  [ \"$tl_in\" = \"$tl_key\" ] || { tl_list=${tl_key#?} tl_list=${tl_list%?}; } # a literal loses a pair of its braces\
\n  shift; set -- \"$@\" \"${tl_arg%\"$tl_key\"}$tl_list\"; done\
\nfor tl_key in $tl_filled; do export \"${1?}\"; shift; done\
\ntl_say \"preflight passed: /dev/shm $tl_shm (${tl_asks:+need }${tl_asks:-needs $tl_needs}), memory $tl_mem, \u005c\
\n$tl_has CPUs, num_workers $tl_workers\"\
\nif [ \"$tl_script\" ]; then\
\n  # The script's shell passes no signal on to its child: stay, hand each to both unless exec made them one.\
\n  tl_pass() { tl_again=yes; kill -s \"$1\" \"$!\"; read -r tl_key <\"/proc/$!/comm\"\
\n    for tl_stat in /proc/[0-9]*/stat; do read -r tl_pid tl_comm _ tl_parent _ <\"$tl_stat\"\
\n      # tee ends with what it reads: killed first, it would break the pipe of a job that is still saving.\
\n      if [ \"$tl_parent $tl_key\" = \"$! sh\" ] && [ \"$tl_comm\" != '(tee)' ]; then kill -s \"$1\" \"$tl_pid\"; fi; done\
\n  } 2>/dev/null\
\nelse\
\n  [ \"$tl_shared\" ] || [ ! -t 0 ] || trap '' TSTP # what Ctrl-Z stops nobody in a container would continue\
\n  if [ $$ -ne 1 ]; then exec \"$@\"; fi\
\n  # As pid 1 the job would miss signals that it doesn't handle: stay, hand them on, return the job's code.\
\n  tl_pass() { tl_again=yes; kill -s \"$1\" \"$!\"; } 2>/dev/null\
\nfi\
\nif env --default-signal=INT true 2>/dev/null; then set -- env --default-signal=INT,QUIT \"$@\"; fi\
\nfor tl_key in TERM INT HUP QUIT USR1 USR2 $tl_signal; do eval \"trap 'tl_pass $tl_key' $tl_key\"; done\
\n{ (exec \"$@\") <&3 3<&- & } 3<&0 # in the background a shell would read nothing and ignore INT\
\n# A wait that a signal cut short has that signal's code, the next one the job's; one too many has 127, bash's -1.\
\ntl_code=127\
\nuntil tl_again=''; wait \"$!\" 2>/dev/null; tl_stat=$?\
\n  case $tl_stat in 127 | -1) ;; *) tl_code=$tl_stat ;; esac; [ -z \"$tl_again\" ]; do :; done; exit \"$tl_code\"", "trainlaunch"]
CMD ["python", "train.py", "--workers", "{num_workers}", "it's \"quoted\" ${{ github.token }} $HOME"]
