"""Records read from text: fields, an index, and rows that live briefly."""
import random
random.seed(1)
records, index, kept = [], {}, []
for number in range(40000):
    line = ",".join(str(random.randrange(10**9)) for _ in range(12))
    fields = line.split(",")
    records.append(fields)
    index[fields[0]] = number
    kept.append({"id": number, "text": line * 3})
    if number % 4 == 0:
        rows = [tuple(fields[i:i + 3]) for i in range(0, 12, 3)]
print(len(records), len(index), len(kept))
