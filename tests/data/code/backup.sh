#!/usr/bin/env bash
# 备份一个目录
set -euo pipefail

target="${1:-/var/backups}"

say() {
  printf '%s\n' "$*" >&2
}

function pack {
  local from=$1
  if [ ! -d "$from" ]; then
    say "no such folder: $from"
    return 1
  fi

  tar -czf "$target/backup.tgz" "$from"
}

pack "${2:-.}"
