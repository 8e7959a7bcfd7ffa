# Ends QEMU with the script that started it. To be sourced.
# A signal may end the script alone, and its trap would wait for the guest's end. So another process
# watches the script, and ends QEMU by the number that it writes into its file, -pidfile "$pid_file".

watch_script() { # before QEMU starts; sets $pid_file
  pid_file=$(mktemp -u --suffix=.qemu)
  {
    while kill -0 $$; do sleep 1; done
    if [ -e "$pid_file" ]; then kill "$(cat "$pid_file")"; fi
  } </dev/null >/dev/null 2>&1 9>&- &
  watcher=$!
}

leave_script() { # after QEMU's end
  kill "$watcher" 2>/dev/null || true
}
