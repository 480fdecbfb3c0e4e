# shellcheck shell=bash disable=SC2034
# What prolog.sh and epilog.sh have in common. The environment that slurmd gives them may change each of these.
busbound=${BUSBOUND:-/usr/local/bin/busbound}
logs=${BUSBOUND_LOGS:-/var/log/busbound/jobs}
interval=${BUSBOUND_INTERVAL:-5}
# nobody
user=${BUSBOUND_USER:-65534}
job=${SLURM_JOB_ID:-}
# Slurm's job IDs are numbers. Nothing else becomes part of a path.
case $job in
  "" | *[!0-9]*) exit 0 ;;
esac
log=$logs/$job.jsonl
pid_file=$logs/$job.pid
