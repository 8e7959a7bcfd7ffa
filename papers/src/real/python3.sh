#!/usr/bin/env bash
# python3: dictionaries, lists and strings.
#
# The interpreter is measured, without a shell (`env` becomes it). PYTHONMALLOC=malloc, since
# Python's allocator of small objects would hide the load; so every object is a call of the C
# library's malloc, or the preloaded one. The system's python3 where there is one: a version
# manager's stand-in on PATH is a shell script.
source "${BASH_SOURCE[0]%/*}/common.sh"
[ "$verb" = prepare ] || fail "$verb: give prepare"
cat >"$name.py" <<'PY'
import sys

rounds, count = int(sys.argv[1]), 40000
live = {}
for round in range(rounds):
    words = ["word-%d-%d" % (round, i) for i in range(count)]
    index = {word: [i, str(i) * (i % 7), {"n": i}] for i, word in enumerate(words)}
    live[round % 3] = {word: index[word] for word in words[::4]}
    joined = " ".join(sorted(words, key=lambda word: word[::-1]))
    parts = joined.split()
    if len(parts) != count or any(a[::-1] > b[::-1] for a, b in zip(parts, parts[1:])):
        sys.exit("the words are not sorted")
for last, kept in live.items():
    for i, (word, (number, digits, nested)) in zip(range(0, count, 4), kept.items()):
        if not word.endswith("-%d" % i) or (number, digits, nested) != (i, str(i) * (i % 7), {"n": i}):
            sys.exit("%s: what was kept of round %d has changed" % (word, last))
PY
python=$(PATH=/usr/bin:/bin command -v python3 || command -v python3) || fail "python3 is not on PATH"
measure env PYTHONMALLOC=malloc PYTHONHASHSEED=0 "$python" -s "$dir/$name.py" "$(sized 1 8)"
