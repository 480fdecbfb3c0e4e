#!/usr/bin/env bash
# Slurm prolog: log the bus and the GPUs of this node while a job runs. In slurm.conf: Prolog=/etc/slurm/busbound/prolog.sh
#
# It never fails: a prolog with another exit code than 0 drains the node. A node without a GPU or driver gets no log.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=settings.sh
. "$here/settings.sh"

command -v "$busbound" > /dev/null || exit 0
umask 027
mkdir -p "$logs" || exit 0

# As nobody where slurmd runs as root. The log is opened by this shell, so nobody needs no permission to write anywhere.
as_user=()
if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
  as_user=(setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --bounding-set=-all)
fi
# In its own session: slurmd ends the processes of the prolog's group when the prolog is done.
setsid "${as_user[@]}" "$busbound" top --json --quiet --interval "$interval" < /dev/null >> "$log" 2> /dev/null &
echo $! > "$pid_file"
exit 0
