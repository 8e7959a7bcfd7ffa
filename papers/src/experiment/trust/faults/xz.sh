seq 1 120000 > numbers
command -v xz
printf '%s\n' -6 -T1 -c numbers
