#!/usr/bin/env bash
# Slurm epilog: stop the log of prolog.sh, and write the state at its end as Markdown. In slurm.conf: Epilog=/etc/slurm/busbound/epilog.sh
#
# It never fails: an epilog with another exit code than 0 drains the node.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=settings.sh
. "$here/settings.sh"

if [ -f "$pid_file" ]; then
  pid=$(cat "$pid_file")
  # Only if the number still belongs to busbound.
  if [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = "$(basename "$busbound" | cut -c1-15)" ]; then
    kill -TERM "$pid"
    for _ in $(seq 20); do
      kill -0 "$pid" 2> /dev/null || break
      sleep 0.1
    done
  fi
  rm -f "$pid_file"
fi

umask 027
if [ -s "$log" ]; then
  "$busbound" top --replay "$log" --once --quiet --output "$logs/$job.md" > /dev/null 2>&1 < /dev/null
  gzip --force "$log"
else
  rm -f "$log"
fi
# Logs of jobs that ended a month ago.
find "$logs" -maxdepth 1 -type f \( -name '*.jsonl.gz' -o -name '*.md' \) -mtime +30 -delete 2> /dev/null
exit 0
