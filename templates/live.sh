# trainlaunch doctor: prints what /proc, /sys/fs/cgroup and /dev/shm say about processes, twice, a second apart.
# Arguments: the root of their files (/ for this one), then their pids (none: those of this very container).
# It only reads: no signal is sent and nothing is written.
set +euf # a SHELLOPTS of the image would end it without a word
LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export LC_ALL PATH
tl_root=${1%/} tl_own='' tl_most=512
shift
{ read -r tl_own </proc/self/cgroup; } 2>/dev/null
if [ $# = 0 ]; then
  for tl_each in /proc/[0-9]*; do
    tl_pid=${tl_each#/proc/} tl_group=''
    { read -r tl_group <"$tl_each/cgroup"; } 2>/dev/null || continue # it ended meanwhile
    [ "$tl_group" = "$tl_own" ] && [ "$tl_pid" != $$ ] && set -- "$@" "$tl_pid" # a pod's sidecars have others
  done
fi
[ $# -le "$tl_most" ] || echo "left out $(($# - tl_most))"

tl_moment() { # NAME PID...: CPU ticks, and when the main thread last ran and how long it waited to
  tl_name=$1 tl_at='' tl_now=''
  shift
  { read -r tl_at _ </proc/uptime; } 2>/dev/null
  tl_ran /proc/self/sched && tl_now=$tl_time
  echo "moment $tl_name $tl_at ${tl_now:--}"
  for tl_pid; do
    tl_stat=''
    { read -r tl_stat <"/proc/$tl_pid/stat"; } 2>/dev/null || continue
    tl_ran "/proc/$tl_pid/task/$tl_pid/sched" || tl_time='' tl_delay=''
    { read -r _ tl_delay _ <"/proc/$tl_pid/schedstat"; } 2>/dev/null
    echo "at $tl_name $tl_pid ${tl_time:--} ${tl_delay:--} $tl_stat"
  done
}
tl_ran() { # FILE: sets tl_time, milliseconds on the scheduler's clock
  tl_time=''
  while read -r tl_key _ tl_value; do
    if [ "$tl_key" = se.exec_start ]; then tl_time=$tl_value; return 0; fi
  done 2>/dev/null <"$1"
  return 1
} 2>/dev/null
tl_lines() { # WORD FILE: each line of a file after a word
  [ -r "$2" ] || return 0
  while IFS= read -r tl_line || [ "$tl_line" ]; do echo "$1 $tl_line"; tl_line=''; done 2>/dev/null <"$2"
}
tl_groups() { # the cgroup of the first process: where its own path is there, else the root of what is mounted
  tl_v2='' tl_memory=/ tl_cpu=/ tl_pids=/ tl_base=$tl_root/sys/fs/cgroup
  while IFS=: read -r _ tl_names tl_path; do
    case ",$tl_names," in
      ,,) tl_v2=$tl_path ;;
      *,memory,*) tl_memory=$tl_path ;;
    esac
    case ",$tl_names," in *,cpu,*) tl_cpu=$tl_path ;; esac
    case ",$tl_names," in *,pids,*) tl_pids=$tl_path ;; esac
  done 2>/dev/null <"/proc/${1:-self}/cgroup"
  if [ -f "$tl_base/cgroup.controllers" ] || [ -f "$tl_base/memory.current" ]; then
    tl_dir=$tl_base$tl_v2
    [ -f "$tl_dir/memory.current" ] || tl_dir=$tl_base
    tl_memory=$tl_dir tl_cpu=$tl_dir tl_pids=$tl_dir
    return
  fi
  tl_memory=$(tl_there "$tl_base/memory" "$tl_memory") tl_pids=$(tl_there "$tl_base/pids" "$tl_pids")
  tl_dir=$tl_base/cpu
  [ -d "$tl_dir" ] || tl_dir=$tl_base/cpu,cpuacct
  tl_cpu=$(tl_there "$tl_dir" "$tl_cpu")
}
tl_there() { if [ -d "$1$2" ]; then echo "$1$2"; else echo "$1"; fi; }
tl_gpus() {
  command -v nvidia-smi >/dev/null 2>&1 || return 0
  $tl_limit nvidia-smi --query-gpu=uuid,index,utilization.gpu,memory.used,memory.total \
    --format=csv,noheader,nounits 2>/dev/null | while IFS= read -r tl_line; do echo "gpu $1 $tl_line"; done
}
tl_one() { # PID: what is asked of a process once
  tl_dir=/proc/$1
  while IFS= read -r tl_line; do
    case $tl_line in
      NSpid:* | Uid:* | VmRSS:* | RssShmem:* | Cpus_allowed_list:*) echo "status $1 $tl_line" ;;
    esac
  done 2>/dev/null <"$tl_dir/status"
  tl_word=''
  { IFS= read -r tl_word <"$tl_dir/wchan"; } 2>/dev/null
  echo "wchan $1 $tl_word"
  { read -r tl_word _ <"$tl_dir/syscall"; } 2>/dev/null && echo "syscall $1 $tl_word"
  tl_lines "stack $1" "$tl_dir/stack"
  while IFS= read -r tl_line; do
    case $tl_line in "Max open files"*) echo "limit $1 $tl_line" ;; esac
  done 2>/dev/null <"$tl_dir/limits"
  tl_count "$1" "$tl_dir"/fd/*
  grep -s ' /dev/shm/' "$tl_dir/maps" 2>/dev/null | head -n 4096 | while IFS= read -r tl_line; do echo "map $1 $tl_line"; done
  tr '\0' '\n' 2>/dev/null <"$tl_dir/environ" | while IFS= read -r tl_line; do
    case $tl_line in
      RANK=* | WORLD_SIZE=* | LOCAL_RANK=* | LOCAL_WORLD_SIZE=*) echo "env $1 $tl_line" ;; # no other variable is read
    esac
  done
}
tl_count() { tl_pid=$1; shift; [ "$1" = "/proc/$tl_pid/fd/*" ] || echo "fds $tl_pid $#"; }
tl_stacks() { # PID: where its Python stands, by py-spy, which stops nothing with --nonblocking
  tl_comm=''
  { read -r tl_comm <"/proc/$1/comm"; } 2>/dev/null
  case $tl_comm in pt_data_worker | pt_main_thread | python* | torchrun | accelerate | ray*) ;; *) return ;; esac
  [ "$tl_dumped" -lt 32 ] || return
  tl_dumped=$((tl_dumped + 1))
  echo "spy $1"
  $tl_limit py-spy dump --nonblocking --json --pid "$1" 2>&1
  echo "spied $1"
}

tl_limit=''
command -v timeout >/dev/null 2>&1 && tl_limit='timeout 10'
tl_groups "$1"
tl_moment a "$@"
tl_lines 'throttled a' "$tl_cpu/cpu.stat"
tl_gpus a
sleep 1
tl_moment b "$@"
tl_lines 'throttled b' "$tl_cpu/cpu.stat"
tl_gpus b
for tl_file in memory.max memory.current memory.limit_in_bytes memory.usage_in_bytes; do
  tl_lines "cg $tl_file" "$tl_memory/$tl_file"
done
for tl_file in cpu.max cpu.cfs_quota_us cpu.cfs_period_us; do tl_lines "cg $tl_file" "$tl_cpu/$tl_file"; done
for tl_file in pids.max pids.current; do tl_lines "cg $tl_file" "$tl_pids/$tl_file"; done
while read -r tl_key tl_value; do
  case $tl_key in
    anon | shmem | file | total_rss | total_shmem | total_cache | cache | rss) echo "memory $tl_key $tl_value" ;;
  esac
done 2>/dev/null <"$tl_memory/memory.stat"
echo "shm $(stat -f -c '%T %S %b %f' "$tl_root/dev/shm" 2>/dev/null)"
# shellcheck disable=SC2012 # names are only shown, and `find` may be missing
ls -ln "$tl_root/dev/shm/" 2>/dev/null | head -n 4096 | while IFS= read -r tl_line; do echo "file $tl_line"; done
tl_count=0 tl_dumped=0
for tl_pid; do
  tl_count=$((tl_count + 1))
  [ "$tl_count" -le "$tl_most" ] || break
  tl_one "$tl_pid"
done
if command -v py-spy >/dev/null 2>&1; then
  for tl_pid; do tl_stacks "$tl_pid"; done
else
  echo 'nospy'
fi
echo 'end'
