#!/bin/sh
# A batch that must not run twice at once: it takes every file of a folder, adds it to a ledger and removes it.
#
#   leasehold has to be on the path:      cargo install --path crates/cli
#   to be started from many crontabs:     examples/batch.sh INBOX LEDGER
#
# Where it already runs, it ends with 75 and says who runs it.
set -eu

# Without the lock yet: the same once more, under it.
if [ "${LEASEHOLD_NAME:-}" != nightly-batch ]; then
    exec leasehold run --nonblock nightly-batch -- "$0" "$@"
fi

inbox=$1 ledger=$2
echo "batch: begins, with fence $LEASEHOLD_FENCE"
for file in "$inbox"/*; do
    [ -e "$file" ] || continue
    cat "$file" >> "$ledger"
    rm "$file"
    echo "batch: took ${file##*/}"
done
echo "batch: ends"
