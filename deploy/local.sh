#!/usr/bin/env bash
# busbound, Prometheus and Grafana as plain programs on this machine, without containers and without root.
#
#   deploy/local.sh            # this machine's GPUs
#   deploy/local.sh --demo     # without a GPU: plays back a log
#
# It needs busbound and prometheus on the PATH, and shows the dashboard if grafana is there as well. Everything listens on
# 127.0.0.1 only, and Ctrl-C ends all of it. Other programs: BUSBOUND, PROMETHEUS, GRAFANA; other ports: BUSBOUND_PORT,
# PROMETHEUS_PORT, GRAFANA_PORT; where the data goes: BUSBOUND_DATA;
# seconds between samples: BUSBOUND_INTERVAL.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
busbound=${BUSBOUND:-busbound}
prometheus=${PROMETHEUS:-prometheus}
grafana=${GRAFANA:-grafana}
metrics=127.0.0.1:${BUSBOUND_PORT:-9401}
database=127.0.0.1:${PROMETHEUS_PORT:-9090}
data=${BUSBOUND_DATA:-${XDG_DATA_HOME:-$HOME/.local/share}/busbound/dashboard}

fail() {
  echo "local.sh: $1" >&2
  exit 2
}

source=()
case ${1:-} in
  "") ;;
  --demo) source=(--replay "$here/../fixtures/top/made.jsonl" --machine "$here/../fixtures/machines/h200.json") ;;
  *) fail "unknown argument $1: give --demo or nothing" ;;
esac
command -v "$busbound" > /dev/null || fail "busbound is not on the PATH: install it, or set BUSBOUND"
command -v "$prometheus" > /dev/null || fail "prometheus is not on the PATH: apt install prometheus, or unpack its release and set PROMETHEUS"

# A port in use, before anything starts: Debian's packages start a Prometheus, and a Grafana, of their own.
need_port() { # port, variable, what listens on it here, the package's service
  if (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; then
    fail "port $1 is in use, and $3 needs one: give another ($2=$(($1 + 10)))${4:+, or stop what the package started (sudo systemctl disable --now $4)}"
  fi
}
need_port "${metrics##*:}" BUSBOUND_PORT busbound
need_port "${database##*:}" PROMETHEUS_PORT prometheus prometheus
if command -v "$grafana" > /dev/null; then
  need_port "${GRAFANA_PORT:-3000}" GRAFANA_PORT grafana grafana-server
fi

mkdir -p "$data/prometheus" "$data/grafana"
sed -e "s|127.0.0.1:9401|$metrics|" -e "s|- alerts.yml|- '$here/prometheus/alerts.yml'|" "$here/prometheus/prometheus.yml" > "$data/prometheus.yml"

started=()
# shellcheck disable=SC2317,SC2329 # the trap calls it
stop() {
  trap - EXIT
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2> /dev/null || true
  wait
}
trap stop EXIT
trap 'exit 0' INT TERM

"$busbound" top "${source[@]}" --interval "${BUSBOUND_INTERVAL:-1}" --prometheus "$metrics" > /dev/null &
started+=($!)
"$prometheus" --config.file="$data/prometheus.yml" --storage.tsdb.path="$data/prometheus" --storage.tsdb.retention.time=15d \
  --web.listen-address="$database" --log.level=warn &
started+=($!)

if command -v "$grafana" > /dev/null; then
  export GRAFANA_PROMETHEUS_URL=http://$database BUSBOUND_DASHBOARDS=$here/grafana/dashboards
  export GF_SERVER_HTTP_ADDR=127.0.0.1 GF_SERVER_HTTP_PORT=${GRAFANA_PORT:-3000}
  export GF_PATHS_DATA=$data/grafana GF_PATHS_LOGS=$data/grafana GF_PATHS_PROVISIONING=$here/grafana/provisioning
  export GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH=$here/grafana/dashboards/busbound.json
  export GF_AUTH_ANONYMOUS_ENABLED=true GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer GF_AUTH_DISABLE_LOGIN_FORM=true
  export GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION=true GF_LOG_LEVEL=warn
  export GF_ANALYTICS_REPORTING_ENABLED=false GF_ANALYTICS_CHECK_FOR_UPDATES=false GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false
  "$grafana" server --homepath "${GRAFANA_HOME:-/usr/share/grafana}" > /dev/null &
  started+=($!)
  echo "local.sh: the dashboard is at http://127.0.0.1:$GF_SERVER_HTTP_PORT, the alerts are at http://$database/alerts; Ctrl-C ends all"
else
  echo "local.sh: grafana is not on the PATH, so there is no dashboard: graphs and alerts are at http://$database; Ctrl-C ends all"
fi

# One that ends early (no driver, a port in use) has said why.
status=0
wait -n "${started[@]}" || status=$?
echo "local.sh: one of the programs ended, so the others are stopped" >&2
# What busbound says without a driver.
[ "$status" -ne 4 ] || echo "local.sh: to look at it without a GPU: deploy/local.sh --demo" >&2
exit "$status"
