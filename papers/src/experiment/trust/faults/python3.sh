cat > load.py <<'X'
import hashlib, json, threading, zlib
def rows(n):
    texts = {i: "x" * (i % 300) for i in range(n)}
    made = [json.dumps({"a": list(range(i % 50)), "b": texts[i]}) for i in range(0, n, 7)]
    return hashlib.sha256("".join(made).encode()).hexdigest()
found = []
threads = [threading.Thread(target=lambda n=n: found.append((n, rows(n)))) for n in (3000, 5000)]
for thread in threads: thread.start()
for thread in threads: thread.join()
large = bytearray()
for i in range(40): large += bytes([i]) * 500_000
parts = [large[i:] + b"!" for i in range(0, len(large), 3_000_000)]
found.append(hashlib.sha256(zlib.compress(parts[3], 1)).hexdigest())
print(sorted(map(str, found)))
X
python3 -c 'import sys; print(sys.executable)'
printf '%s\n' -S load.py
