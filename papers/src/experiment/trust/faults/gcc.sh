awk 'BEGIN { print "int f0(int x) { return x; }"
  for (i = 1; i < 300; i++) printf "int f%d(int x) { int s = x; for (int i = 0; i < %d; i++) s += f%d(i * s) %% %d; return s; }\n", i, i, i - 1, i + 1 }' > load.c
command -v gcc
printf '%s\n' -O1 -S -o - load.c
