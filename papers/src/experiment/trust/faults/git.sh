git init -q . 2>/dev/null
i=0
while [ $i -lt 12 ]; do
  seq $i 7 4000 > "numbers-$((i % 3))"
  git add . && git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -q -m "number $i" --date="2020-01-01 00:00:0$((i % 10))"
  i=$((i + 1))
done
command -v git
printf '%s\n' --no-pager log -p --stat --no-color
