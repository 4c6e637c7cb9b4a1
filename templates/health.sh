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
