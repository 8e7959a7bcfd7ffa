# Sets $folder, where the Linux guests' scripts keep their files, and locks it: their runs use the same
# files. To be sourced.
folder=${CARGO_TARGET_DIR:-target}/linux-guest
mkdir -p "$folder"
folder=$(readlink -f "$folder")
# Runs of the guest's scripts use the same files.
if [ "${GUEST_LOCK:-}" != "$folder" ]; then
  exec 9>"$folder/lock"
  flock -n 9 || { echo "$0: waits for another run in $folder" >&2; flock 9; }
  export GUEST_LOCK=$folder
fi
