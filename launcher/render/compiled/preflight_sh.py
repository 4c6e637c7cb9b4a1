"""preflight.sh.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.text import batches
from launcher.render.quoting import number
from launcher.render.quoting import sh_name
from launcher.render.quoting import sh_variable
from launcher.render.quoting import sh_word
from launcher.render.quoting import sh_words

SOURCES = {
    'preflight.sh.j2': 'aa64760a32085ba6cf4119f5a86fbb978075f38e0ca01c49d5d94ef66e858878',
}


def text(
    *,
    amd: Any,
    auto: Any,
    batch: Any,
    constants: Any,
    cpus_per_worker: Any,
    disks: Any,
    fewest_cpus: Any,
    fixed: Any,
    gpus: Any,
    inject: Any,
    literals: Any,
    local: Any,
    longest_tmpdir: Any,
    maybe_none: Any,
    memory: Any,
    minimum: Any,
    minimum_mib: Any,
    name: Any,
    need: Any,
    need_mib: Any,
    node_patience: Any,
    nodes: Any,
    open_files: Any,
    path_variables: Any,
    per_worker: Any,
    persistent: Any,
    pin: Any,
    prefetch: Any,
    ranks: Any,
    read_secrets: Any,
    script: Any,
    shm_mount: Any,
    shm_size: Any,
    signals: Any,
    size: Any,
    stated: Any,
    timeout: Any,
    tokens: Any,
    torchrun: Any,
    unlimited: Any,
    unsized: Any,
    variables: Any,
    without_workers: Any,
    workers: Any,
    written_secrets: Any,
    **_unused: Any,
) -> str:
    """Return the text of the template."""
    out: list[str] = []
    out.append("# trainlaunch preflight: proves this container before the job's first line, then becomes the job.\n# It exits with 78 when the files are wrong, with 75 when this machine is (docs/preflight.md).\n# shellcheck disable=SC2317,SC3045 # a trap calls tl_pass; dash, busybox and bash have ulimit -H and -S\n")
    if ((inject or auto) or ('nproc_per_node' in tokens)):
        out += (
            'tl_ranks=',
            number(ranks),
        )
        if inject:
            out += (
                ' tl_name=',
                sh_word(name),
            )
        out.append('\n')
    out += (
        'tl_workers=',
        number(workers),
    )
    if auto:
        out += (
            ' tl_per_worker=',
            number(per_worker),
            ' tl_besides=',
            number(fixed),
        )
    else:
        out += (
            ' tl_need=',
            number(need),
            ' tl_needs=',
            sh_word((str(need_mib) + ' MiB')),
        )
    out.append('\n')
    if local:
        out += (
            'tl_fix=',
            sh_word(('batches pass through it, and without room workers die or hang; as root, mount -o remount,size=' + str(shm_mount) + ' /dev/shm')),
            '\n',
        )
    else:
        out += (
            'tl_fix=',
            sh_word(('batches pass through it, and without room workers die or hang; set shm_size to ' + str(shm_size))),
            '\n',
        )
    out.append('tl_say() { printf \'trainlaunch: %s\\n\' "$1" >&2; }\ntl_stop() { # CODE SENTENCE\n  tl_say "preflight stopped ($1): $2"\n  if [ -w /dev/termination-log ]; then tl_say "preflight stopped ($1): $2" 2>/dev/termination-log; fi\n  exit "$1"\n}\ntl_leftovers() { # FILE...: of a dead attempt where /dev/shm outlives its container, or of those who share it\n  for tl_file; do [ ! -e "$tl_file" ] || tl_left=$((tl_left + 1)); done; [ "$tl_left" -gt 0 ] || return 0\n  tl_say "warning: /dev/shm has $tl_left files of other runs, $(du -sk /dev/shm | cut -f1) KiB in all"\n  if [ "${TRAINLAUNCH_CLEAN_SHM-}" = 1 ]; then printf \'%s\\0\' "$@" | xargs -0 rm -f; fi\n}\n')
    for name_1, path_2 in written_secrets:
        out += (
            '# A secret of the environment becomes a file in memory that this uid alone can read.\n(umask 377 && printf %s ',
            sh_variable(name_1),
            ' >',
            sh_word(path_2),
            ') 2>/dev/null ||\n  tl_stop 78 "uid $(id -u) can\'t write ',
            sh_word(path_2),
            '; remove its folder from the image, or write as: env"\nunset ',
            sh_name(name_1),
            '\n',
        )
    for name_3 in path_variables:
        out += (
            '[ -r ',
            sh_variable(name_3),
            ' ] || tl_stop 78 "uid $(id -u) can\'t read $',
            sh_name(name_3),
            '; let it read that file, or set user"\n',
        )
    for name_4, path_5 in read_secrets:
        out += (
            sh_name(name_4),
            '=$(cat ',
            sh_word(path_5),
            ') && export ',
            sh_name(name_4),
            ' ||\n  tl_stop 78 "uid $(id -u) can\'t read ',
            sh_word(path_5),
            '; let it read that file, or set user"\n',
        )
    out += (
        '# A batch is a file in /dev/shm, passed through a socket in the temporary directory that Python would pick.\n[ -d /dev/shm ] || tl_stop 78 "/dev/shm is missing, as with ipc none; $tl_fix"\nread -r tl_host </proc/sys/kernel/hostname; tl_probe=.trainlaunch-$tl_host-$$ tl_left=0\n{ true >"/dev/shm/$tl_probe"; } 2>/dev/null ||\n  tl_stop 78 "uid $(id -u) can\'t make files in /dev/shm, and batches are files; mount it writable, mode 1777"\nfor tl_tmp in "${TMPDIR:-${TEMP:-${TMP:-/tmp}}}" /tmp /var/tmp /usr/tmp "$PWD" \'\'; do\n  if { true >"$tl_tmp/$tl_probe"; } 2>/dev/null; then break; fi; done\nrm -f "/dev/shm/$tl_probe" "$tl_tmp/$tl_probe"\n[ "${TMPDIR:-$tl_tmp}" = "${tl_tmp:-none}" ] ||\n  tl_stop 78 "uid $(id -u) can\'t make files in ${TMPDIR:-/tmp}, so workers would hang; set TMPDIR to /dev/shm"\n[ "${#tl_tmp}" -le ',
        number(longest_tmpdir),
        ' ] || tl_stop 78 "TMPDIR is ${#tl_tmp} long, a worker\'s socket allows ',
        number(longest_tmpdir),
        '; set it to /tmp"\ntl_leftovers /dev/shm/torch_* /dev/shm/nccl-* /dev/shm/psm_* /dev/shm/sem.*\ntl_shm=$(stat -f -c \'%T %S*%b %S*%a\' /dev/shm) || tl_stop 78 "the image has no stat; install coreutils in it"\n[ "${tl_shm%% *}" = tmpfs ] || tl_stop 78 "/dev/shm is ${tl_shm%% *}, not tmpfs: drop that mount; $tl_fix"\ntl_free=$((${tl_shm##* })) tl_shm=${tl_shm% *} tl_size=$((${tl_shm##* })) tl_shm="$((tl_size >> 20)) MiB"\nif [ "$tl_size" -eq 0 ]; then tl_shm=unlimited tl_size=',
        number(size),
        ' tl_free=',
        number(unlimited),
        '; fi\n[ "$tl_size" -ge ',
        number(minimum),
        ' ] || tl_stop 78 "/dev/shm has $tl_shm of the planned ',
        number(minimum_mib),
        ' MiB; $tl_fix"\n# CPUs by affinity and cpuset, then by the quota, which neither nproc nor Python sees; cgroup v1, then v2.\nwhile read -r tl_key tl_list; do [ "$tl_key" != Cpus_allowed_list: ] || break; done </proc/self/status\ntl_list=${tl_list:-1-$(grep -c ^processor /proc/cpuinfo)} tl_cpus=0 tl_cg=/sys/fs/cgroup IFS=,\nfor tl_range in $tl_list; do tl_cpus=$((tl_cpus + ${tl_range#*-} - ${tl_range%-*} + 1)); done; unset IFS\n{ read -r tl_quota <$tl_cg/cpu/cpu.cfs_quota_us; read -r tl_period <$tl_cg/cpu/cpu.cfs_period_us\n  read -r tl_limit <$tl_cg/memory/memory.limit_in_bytes; read -r tl_use <$tl_cg/memory/memory.usage_in_bytes\n  read -r tl_quota tl_period <$tl_cg/cpu.max\n  read -r tl_limit <$tl_cg/memory.max; read -r tl_use <$tl_cg/memory.current; } 2>/dev/null\ncase $tl_quota in *[!0-9]* | \'\') tl_quota=$tl_cpus ;; *) tl_quota=$((tl_quota / ${tl_period:-100000})) ;; esac\ntl_cpus=$((tl_quota < 1 ? 1 : tl_quota < tl_cpus ? tl_quota : tl_cpus))\n',
    )
    if (inject or (auto and gpus)):
        out.append('tl_per_rank=$((tl_cpus > tl_ranks ? tl_cpus / tl_ranks : 1))\n')
    if auto:
        out.append('# num_workers is never raised; it is lowered to what CPUs and free /dev/shm allow.\n')
        if (not gpus):
            out += (
                'tl_budget=$((tl_cpus < ',
                number(fewest_cpus),
                ' ? 0 : tl_cpus / (',
                number(cpus_per_worker),
                ' * tl_ranks)))\n',
            )
        if per_worker:
            out.append('tl_room=$((tl_free > tl_besides + tl_per_worker ? (tl_free - tl_besides) / tl_per_worker : 1))\n')
        out.append('for tl_most in ')
        if gpus:
            out.append('"$tl_per_rank"')
        else:
            out.append('"$tl_budget"')
        if per_worker:
            out.append(' "$tl_room"')
        out += (
            '; do [ "$tl_most" -ge "$tl_workers" ] || tl_workers=$tl_most; done\ntl_need=$((tl_workers > 0 ? tl_workers * tl_per_worker + tl_besides : ',
            number(without_workers),
            '))\ntl_needs="$(((tl_need + 1048575) >> 20)) MiB"\n',
        )
    if stated:
        out += (
            '[ ',
            number(stated),
            ' -le "$tl_cpus" ] || tl_say "warning: ',
            number(stated),
            ' DataLoader workers share $tl_cpus CPUs"\n',
        )
    out += (
        '[ "$tl_free" -ge "$tl_need" ] ||\n  tl_stop 75 "/dev/shm has $((tl_free >> 20)) of $tl_shm free, the job needs $tl_needs; end what else uses it"\ncase $tl_limit in *[!0-9]* | \'\' | ?????????????????*) tl_limit=',
        number(unlimited),
        ' tl_mem=unlimited ;;\n  *) tl_mem="$((tl_limit >> 20)) MiB" ;; esac\n',
    )
    if local:
        out.append('# A host\'s processes share the group: files that the kernel caches count as used, and it gives them back.\nif [ $((tl_limit - tl_use)) -lt "$tl_need" ]; then\n  for tl_stat in memory/memory.stat:total_ memory.stat:; do\n    while read -r tl_key tl_bytes; do case $tl_key in\n      "${tl_stat#*:}active_file" | "${tl_stat#*:}inactive_file") tl_use=$((tl_use - tl_bytes)) ;; esac\n    done <"$tl_cg/${tl_stat%:*}"; done 2>/dev/null\nfi\n')
    out.append('[ $((tl_limit - tl_use)) -ge "$tl_need" ] || tl_stop $((tl_limit < tl_need ? 78 : 75)) \\\n  "/dev/shm needs $tl_needs of $tl_mem memory, $((tl_use >> 20)) are used; ')
    if local:
        out.append('end what else uses it, or lower num_workers')
    else:
        out += (
            'set resources.memory to ',
            sh_word(memory),
        )
    out.append('"\ntl_files=$(ulimit -H -n) && ulimit -S -n "$tl_files"\n')
    if open_files:
        out += (
            '[ "$tl_files" -ge ',
            number(open_files),
            ' ] || tl_stop 78 "$tl_files open files allowed, tensors need ',
            number(open_files),
            '; ',
        )
        if local:
            out.append('raise nofile in /etc/security/limits.conf')
        else:
            out += (
                'set ulimits.nofile to ',
                number(open_files),
            )
        out.append('"\n')
    if (gpus and amd):
        out.append('[ -e /dev/kfd ] || tl_stop 75 "no /dev/kfd is here, but the job asks for AMD GPUs; start it where they are"\n{ [ -r /dev/kfd ] && [ -w /dev/kfd ]; } ||\n  tl_stop 78 "uid $(id -u) can\'t open /dev/kfd; ')
        if local:
            out.append('join its group $(stat -c %G /dev/kfd)')
        else:
            out.append('add \\"$(stat -c %g /dev/kfd)\\" to group_add')
        out.append('"\n')
    elif gpus:
        out.append('for tl_gpu in /dev/nvidia[0-9]* /dev/dxg /dev/nvmap \'\'; do if [ -e "$tl_gpu" ]; then break; fi; done\n[ "$tl_gpu" ] || tl_stop 75 "no /dev/nvidia0 is here, but the job asks for GPUs; start it where they are"\n')
    if torchrun:
        out.append('command -v torchrun >/dev/null || tl_stop 78 "torchrun is not on PATH $PATH; ')
        if local:
            out.append('install torch')
        else:
            out.append('use an image that has torch')
        out.append('"\n')
    if (nodes > 1):
        out += (
            '# Node 0 keeps the rendezvous. torch would ask DNS who that is, which may not know yet. Images may come late.\ntl_node=${JOB_COMPLETION_INDEX:-${RANK:-}} tl_at=${PET_RDZV_ENDPOINT%%[.:]*}\nif [ -z "$tl_node" ] && [ "$tl_at" != "$tl_host" ]; then tl_node=1; fi\ntl_conf="join_timeout=',
            number(node_patience),
            ',read_timeout=',
            number(node_patience),
            ',is_host=$((${tl_node:-0} == 0))"\nexport PET_RDZV_CONF="$tl_conf${PET_RDZV_CONF:+,$PET_RDZV_CONF}"\n',
        )
    out.append('for tl_dir in "$PWD" "${HOME:-/}"')
    if disks:
        out += (
            ' \\\n  ',
            sh_words(disks),
        )
    out.append('; do [ -w "$tl_dir" ] || tl_say "warning: can\'t write to $tl_dir"; done\n')
    if maybe_none:
        out += (
            'tl_prefetch=',
            sh_word(prefetch),
            '; if [ "$tl_workers" -eq 0 ]; then tl_prefetch=\'\'; fi # torch refuses it without workers\n',
        )
    if inject:
        out.append('# What the job reads; a thread variable that the image or the job sets stays as it is.\n')
        if maybe_none:
            out.append('export TRAINLAUNCH_NUM_WORKERS="$tl_workers" TRAINLAUNCH_PREFETCH_FACTOR="$tl_prefetch"\nexport TRAINLAUNCH_PERSISTENT_WORKERS=')
            if persistent:
                out.append('"$((tl_workers > 0))"')
            else:
                out.append('0')
            out.append(' TRAINLAUNCH_TIMEOUT=')
            if timeout:
                out += (
                    '"$((tl_workers > 0 ? ',
                    number(timeout),
                    ' : 0))"',
                )
            else:
                out.append('0')
            out += (
                '\nexport TRAINLAUNCH_BATCH_SIZE=',
                sh_word(batch),
                ' TRAINLAUNCH_PIN_MEMORY=',
                number(pin),
                '\n',
            )
        else:
            out += (
                'export TRAINLAUNCH_NUM_WORKERS="$tl_workers" TRAINLAUNCH_PREFETCH_FACTOR=',
                sh_word(prefetch),
                ' TRAINLAUNCH_PIN_MEMORY=',
                number(pin),
                '\nexport TRAINLAUNCH_BATCH_SIZE=',
                sh_word(batch),
                ' TRAINLAUNCH_PERSISTENT_WORKERS=',
                number(persistent),
                ' TRAINLAUNCH_TIMEOUT=',
                number(timeout),
                '\n',
            )
        out.append('export TRAINLAUNCH_SHM_BYTES="$tl_size" TRAINLAUNCH_RUN_ID="${TRAINLAUNCH_RUN_ID:-$tl_name-$tl_host}"\n')
        if gpus:
            out.append('tl_threads=$((tl_per_rank < 8 ? 1 : tl_per_rank < 16 ? tl_per_rank / 4 : 4))\n')
        else:
            out.append('tl_threads=$((tl_per_rank > tl_workers ? tl_per_rank - tl_workers : 1))\n')
        out.append('export OMP_NUM_THREADS="${OMP_NUM_THREADS-$tl_threads}" MKL_NUM_THREADS="${MKL_NUM_THREADS-$tl_threads}"\nexport TORCHINDUCTOR_COMPILE_THREADS="${TORCHINDUCTOR_COMPILE_THREADS-$tl_per_rank}"\n')
        if maybe_none:
            out.append('if [ "$tl_workers" -gt 0 ]; then\n  export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS-1}" NUMEXPR_NUM_THREADS="${NUMEXPR_NUM_THREADS-1}"\n  export RAYON_NUM_THREADS="${RAYON_NUM_THREADS-1}" OPENCV_FOR_THREADS_NUM="${OPENCV_FOR_THREADS_NUM-1}"\nfi\n')
        elif workers:
            out.append('export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS-1}" NUMEXPR_NUM_THREADS="${NUMEXPR_NUM_THREADS-1}"\nexport RAYON_NUM_THREADS="${RAYON_NUM_THREADS-1}" OPENCV_FOR_THREADS_NUM="${OPENCV_FOR_THREADS_NUM-1}"\n')
    if (tokens or literals):
        out.append('for tl_arg; do case $tl_arg in # a token stands alone or ends its argument after an equals sign\n')
        for token_6 in tokens:
            out += (
                '  ',
                sh_word(('{' + str(token_6) + '}')),
                ' | *',
                sh_word(('={' + str(token_6) + '}')),
                ') tl_arg=${tl_arg%\\{*}',
            )
            if (token_6 in variables):
                out += (
                    '$tl_',
                    sh_name(variables[token_6]),
                )
            else:
                out.append(sh_word(constants[token_6]))
            out.append(' ;;\n')
        items_8 = list(batches(literals, 2, ''))
        for at_9, pair_7 in enumerate(items_8, 1):
            out += (
                '  ',
                sh_word(('{{' + str(pair_7[0]) + '}}')),
                ' | *',
                sh_word(('={{' + str(pair_7[0]) + '}}')),
            )
            if pair_7[1]:
                out += (
                    ' | ',
                    sh_word(('{{' + str(pair_7[1]) + '}}')),
                    ' | *',
                    sh_word(('={{' + str(pair_7[1]) + '}}')),
                )
            if at_9 == len(items_8):
                out.append(') # a literal\n    tl_arg=${tl_arg%?} tl_arg=${tl_arg%\\{\\{*}\\{${tl_arg##*\\{} ;;')
            else:
                out.append(' | \\')
            out.append('\n')
        out.append('  esac; shift; set -- "$@" "$tl_arg"; done\n')
    out.append('tl_say "preflight passed: /dev/shm $tl_shm (')
    if unsized:
        out.append('need unknown')
    else:
        out.append('needs $tl_needs')
    out.append('), memory $tl_mem, \\\n$tl_cpus CPUs, num_workers $tl_workers"\n')
    if script:
        out.append('# The script\'s shell passes no signal on to its child: stay, hand each to both unless exec made them one.\ntl_pass() { # SIGNAL\n  kill -s "$1" "$!" && tl_again=yes\n  read -r tl_key <"/proc/$!/comm"\n  for tl_stat in /proc/[0-9]*/stat; do\n    read -r tl_pid tl_comm _ tl_parent _ <"$tl_stat"\n    # tee ends with what it reads: killed first, it would break the pipe of a job that is still saving.\n    if [ "$tl_parent $tl_key" = "$! sh" ] && [ "$tl_comm" != \'(tee)\' ]; then kill -s "$1" "$tl_pid"; fi\n  done\n} 2>/dev/null\n')
    else:
        out.append('if [ $$ -ne 1 ]; then exec "$@"; fi\n# As pid 1 the job would miss signals that it doesn\'t handle: stay, hand them on, return the job\'s code.\ntl_pass() { kill -s "$1" "$!" && tl_again=yes; } 2>/dev/null\n')
    out += (
        'if env --default-signal=INT true 2>/dev/null; then set -- env --default-signal=INT,QUIT "$@"; fi\nfor tl_signal in ',
        sh_words(signals),
        '; do eval "trap \'tl_pass $tl_signal\' $tl_signal"; done\n{ (exec "$@") <&3 3<&- & } 3<&0 # in the background a shell would read nothing and ignore INT\nuntil tl_again=\'\'; wait "$!"; tl_code=$?; [ -z "$tl_again" ]; do :; done; exit "$tl_code"\n',
    )
    return "".join(out)
