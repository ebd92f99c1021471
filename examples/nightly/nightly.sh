#!/usr/bin/env bash
# Updates an index with the changes of a day, and keeps the result only if the questions are answered as well as before.
set -euo pipefail

[ -d films-index ] || kg-retrievers index films.csv --output films-index
[ -f figures.json ] || kg-retrievers evaluate --graph films-index --data questions.jsonl --output figures.json

changes=(--source "${1:-$(date +%F)}")
[ ! -f added.csv ] || changes+=(--add added.csv)
[ ! -f removed.csv ] || changes+=(--remove removed.csv)

rm -rf next-index
cp -r films-index next-index
kg-retrievers update next-index "${changes[@]}"
kg-retrievers evaluate --graph next-index --data questions.jsonl --output next-figures.json
python compare_hit.py figures.json next-figures.json

rm -rf films-index
mv next-index films-index
mv next-figures.json figures.json
