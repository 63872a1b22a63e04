#!/usr/bin/env bash
# Checks that no proof is missing and that each theorem rests on no axiom. `make` runs it last.
set -euo pipefail
cd "$(dirname "$0")"
files=$(grep '\.v$' _CoqProject)
names=$(grep -hoE '^(Theorem|Corollary) [A-Za-z0-9_]+' $files | awk '{print $2}')
[ -n "$names" ] || { echo "no theorem found"; exit 1; }
if grep -nE '\b(Admitted|admit|Axiom|Axioms|Parameter|Conjecture)\b' $files; then
  echo "a proof is missing"; exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
  for file in $files; do echo "From Panprivacy Require Import ${file%.v}."; done
  for name in $names; do echo "Print Assumptions $name."; done
} > "$folder/assumptions.v"
coqc -w none -Q . Panprivacy "$folder/assumptions.v" > "$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
closed=$(grep -c '^Closed under the global context' "$folder/out" || true)
wanted=$(wc -w <<< "$names")
if [ "$closed" != "$wanted" ]; then
  cat "$folder/out"; echo "$closed of $wanted theorems are closed under the global context"; exit 1
fi
echo "$closed theorems, each closed under the global context"
