awk 'BEGIN { for (i = 0; i < 60000; i++) print (i * 7919) % 60013, "a line of text", i }' > lines
command -v sort
printf '%s\n' -S 8M --parallel=2 -k 1,1n -k 5 lines
