"""health.sh.j2 as Python, written by launcher/render/compiler.py: change that and run `make regen`."""

from __future__ import annotations

from typing import Any

from launcher.render.quoting import number

SOURCES = {
    'health.sh.j2': '83ce31357b19f292e9bcea477b477ca857926f35834e399099ad06edf67a06ff',
}


def text(
    *,
    local: Any,
    minimum: Any,
    planned: Any,
    **_unused: Any,
) -> str:
    """Return the text of the template."""
    out: list[str] = []
    out += (
        '# trainlaunch health: /dev/shm as planned, or one sentence and exit 1 (full is healthy: an idle queue is)\ntl_bad() { printf \'unhealthy: %s\\n\' "$1"; exit 1; }\n[ -d /dev/shm ] || tl_bad \'/dev/shm is gone, so no batch can reach the training process\'\ntl_shm=$(stat -f -c \'%T %S*%b %S*%a\' /dev/shm 2>/dev/null) || tl_bad \'the size of /dev/shm is not readable\'\n[ "${tl_shm%% *}" = tmpfs ] || tl_bad "/dev/shm is ${tl_shm%% *}, not tmpfs: it is mounted over"\ntl_free=$((${tl_shm##* })) tl_size=${tl_shm% *} tl_size=$((${tl_size##* }))\n[ "$tl_size" -eq 0 ] || [ "$tl_size" -ge ',
        number(minimum),
        ' ] ||\n  tl_bad "/dev/shm has $tl_size bytes, below the planned ',
        number(minimum),
        ': it was replaced or shrunk"\ntl_probe=/dev/shm/.trainlaunch-health-$$\n{ true >"$tl_probe"; } 2>/dev/null || tl_bad "uid $(id -u) can\'t make files in /dev/shm, as batches are"\nrm -f "$tl_probe"\ntl_workers=0\nfor tl_comm in /proc/[0-9]*/comm; do\n  { read -r tl_name <"$tl_comm"; } 2>/dev/null || continue # it ended meanwhile\n  if [ "$tl_name" = pt_data_worker ]; then tl_workers=$((tl_workers + 1)); fi\ndone\nif [ "$tl_size" -eq 0 ]; then # size=0 has no limit, and the kernel then counts no use\n  echo "shm used=unknown peak=unknown size=unlimited workers=$tl_workers/',
        number(planned),
        '"\n  exit\nfi\n',
    )
    if local:
        out.append('echo "shm used=$((tl_size - tl_free)) size=$tl_size of the host, workers=$tl_workers on the host" # the runs share it\n')
    else:
        out += (
            'tl_used=$((tl_size - tl_free)) tl_peak=\'\'\n{ read -r tl_peak </dev/shm/.trainlaunch-peak; } 2>/dev/null\ncase $tl_peak in *[!0-9]* | \'\') tl_peak=-1 ;; esac\nif [ "$tl_used" -gt "$tl_peak" ]; then\n  tl_peak=$tl_used # in place: a full /dev/shm still has the first check\'s page\n  { printf \'%-20d\\n\' "$tl_peak" 1<>/dev/shm/.trainlaunch-peak; } 2>/dev/null\nfi\necho "shm used=$tl_used peak=$tl_peak size=$tl_size workers=$tl_workers/',
            number(planned),
            '"\n',
        )
    return "".join(out)
