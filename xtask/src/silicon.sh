#!/bin/sh
# Runs what `cargo xtask silicon` built, and writes report/report.txt beside this script.
#
#   sh run.sh [cuda|hip|emulator] [GROUP...]
#
# Groups: devices, hip, load, verify, host, candle, tests, examples, bench, report. Default: all. CASES is the number of random cases that verify
# draws for each kernel.
cd "$(dirname "$0")" || exit 2
CANDLE_AMDGPU_DEVICE=${1:-cuda}
export CANDLE_AMDGPU_DEVICE
[ $# -gt 0 ] && shift
groups=" $* "
# The driver keeps what it compiles, for all processes.
CUDA_CACHE_MAXSIZE=${CUDA_CACHE_MAXSIZE:-4294967296}
RUST_BACKTRACE=0
export CUDA_CACHE_MAXSIZE RUST_BACKTRACE
report=${REPORT:-report}
mkdir -p "$report"
rm -f "$report"/*.log "$report"/*.result
chmod +x bin/*

# step GROUP NAME SECONDS COMMAND...: those of verify run side by side.
step() {
    group=$1 name=$2 seconds=$3
    shift 3
    case "$groups" in "  " | *" $group "*) ;; *) return ;; esac
    # The commands are this script's own, and may name variables.
    run() {
        start=$(date +%s)
        timeout "$seconds" sh -c "$(eval "echo \"$*\"")" >"$report/$name.log" 2>&1
        code=$?
        echo "$name: exit $code, $(($(date +%s) - start)) s, $(grep -E '^test result|agree|wrong; repeat' "$report/$name.log" | tail -1)" \
            >"$report/$name.result"
    }
    if [ "$group" = verify ]; then
        run "$@" &
    else
        wait
        run "$@"
    fi
}

# STEPS
wait
{
    echo "devices: $CANDLE_AMDGPU_DEVICE; $(uname -srm); $(date -u +%Y-%m-%d)"
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
    cat "$report"/*.result
    for log in "$report"/*.log; do
        printf '\n==== %s\n' "$log"
        # Each test that passed is a line of its own.
        grep -v '^test .* ok$' "$log" | tail -${LINES_OF_LOG:-400}
    done
} >"$report/report.txt"
cat "$report"/*.result
